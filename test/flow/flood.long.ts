import { expect, test } from 'vitest';
import { flood, SIZES_OF_SQS } from '../support/worlds/flood.ts';

/** Some 3.5 GiB of bodies, of which the daemon reads 9 MiB a second and core: seven minutes, and several times that on a busy machine. */
const DURATION_MAX_MS = 5 * 3_600_000;

test(
  'the memory of a container of 512 MiB suffices for 120,000 of the worst bodies, of each size that SQS carries',
  async () => {
    const result = await flood(120_000, SIZES_OF_SQS);
    console.log(result);
    expect(result).toMatchObject({ isRunning: true, missing: [] });
    expect(result.letters).toBeGreaterThanOrEqual(result.lettersExpected);
    expect(result.memoryMiB).toBeLessThan(512);
  },
  DURATION_MAX_MS,
);
