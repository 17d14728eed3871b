import { expect, test } from 'vitest';
import { flood } from '../support/worlds/flood.ts';

/** Two hours on two cores. */
const HOURS_MAX_MS = 6 * 3_600_000;

test(
  'the memory of a container of 512 MiB suffices for 120,000 of the worst bodies',
  async () => {
    const result = await flood(120_000);
    console.log(result);
    expect(result).toMatchObject({ isRunning: true, missing: [] });
    expect(result.letters).toBeGreaterThanOrEqual(result.lettersExpected);
    expect(result.memoryMiB).toBeLessThan(512);
  },
  HOURS_MAX_MS,
);
