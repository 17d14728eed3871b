import { expect, test } from 'vitest';
import { flood } from '../support/worlds/flood.ts';

/** Each of the 30 kinds about twice. */
const MESSAGES = 75;

test('Fix: the memory of a container of 512 MiB suffices for every body that SQS can carry, and usual events are indexed meanwhile', async () => {
  const result = await flood(MESSAGES);
  expect(result).toMatchObject({ isRunning: true, missing: [] });
  expect(result.letters).toBeGreaterThanOrEqual(result.lettersExpected);
  console.log(result.memoryMiB);
  expect(result.memoryMiB).toBeLessThan(512);
});
