/**
 * One bucket is gone while 1,000 of its events come in each second, beside healthy buckets, with 20 workers and the limits of the
 * settings: 20 minutes of it (a few minutes of CPU), and 12 hours of a tenth of it. What it measured is printed.
 */
import { expect, it } from 'vitest';
import { runDeadBucket, type DeadBucketResult } from '../../support/worlds/dead-bucket.ts';

const TIMEOUT_MS = 4 * 3_600_000;

function expectBounded(result: DeadBucketResult, inFlightMax: number): void {
  console.log(JSON.stringify(result));
  expect(result.inFlightPeak).toBeLessThanOrEqual(inFlightMax);
  expect(result.receivesMax).toBeLessThanOrEqual(7);
  expect(result.letters).toBe(0);
  expect(result.deleted + result.left).toBe(result.sent);
  expect(result.healthyReceivesMax).toBeLessThanOrEqual(2);
  expect(result.healthy.p99S).toBeLessThan(5);
}

it('20 workers and 1,000 events/s for 20 minutes', { timeout: TIMEOUT_MS }, async () => {
  const whole = { workers: 20, deadPerS: 1_000, exactPerS: 50, inexactPerS: 10, inFlightMax: 80_000 };
  expectBounded(await runDeadBucket({ ...whole, minutes: 20 }), 60_000);
});

it('2 workers and 100 events/s for 12 hours', { timeout: TIMEOUT_MS }, async () => {
  const tenth = { workers: 2, deadPerS: 100, exactPerS: 5, inexactPerS: 1, inFlightMax: 8_000 };
  expectBounded(await runDeadBucket({ ...tenth, minutes: 12 * 60 }), 6_000);
});
