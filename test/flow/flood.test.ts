import { expect, test } from 'vitest';
import { flood } from '../support/worlds/flood.ts';

test('Fix: the memory of a container of 512 MiB suffices for every body that SQS can carry, and usual events are indexed meanwhile', async () => {
  const result = await flood(2_000);
  expect(result).toMatchObject({ isRunning: true, missing: [], letters: result.lettersExpected });
  expect(result.memoryMiB).toBeLessThan(512);
});
