import { expect, test } from 'vitest';
import { flood } from '../support/worlds/flood.ts';

/** The daemon uses some 0.11 s of a core for each message: about four hours, and twice that on a busy machine. */
const DURATION_MAX_MS = 10 * 3_600_000;

test(
  'the memory of a container of 512 MiB suffices for 120,000 of the worst bodies',
  async () => {
    const result = await flood(120_000);
    console.log(result);
    expect(result).toMatchObject({ isRunning: true, missing: [] });
    expect(result.letters).toBeGreaterThanOrEqual(result.lettersExpected);
    expect(result.memoryMiB).toBeLessThan(512);
  },
  DURATION_MAX_MS,
);
