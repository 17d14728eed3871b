/**
 * One bucket is gone while its events go on, beside healthy buckets: a tenth of an installation (2 workers for 20, 100 events/s for
 * 1,000, receiving that stops at 8,000 in flight for 80,000). What a worker hides between two readings of the number in flight is
 * the same, so all numbers of messages are a tenth.
 */
import { expect, it } from 'vitest';
import { runDeadBucket } from '../support/worlds/dead-bucket.ts';

const MINUTES = 12;
/** A tenth of 60,000: half of where SQS stops. */
const IN_FLIGHT_MAX = 6_000;
/** Batches of ten that were handed over a moment ago, of two workers. */
const DELETING_MAX = 100;

it('a bucket that is gone never has more messages in flight than SQS and the other buckets can bear', async () => {
  const tenth = { workers: 2, deadPerS: 100, exactPerS: 5, inexactPerS: 1, inFlightMax: 8_000 };
  const result = await runDeadBucket({ ...tenth, minutes: MINUTES });
  expect(result).toMatchObject({ letters: 0, sent: 100 * 60 * MINUTES });
  expect(result.inFlightPeak).toBeLessThanOrEqual(IN_FLIGHT_MAX);
  expect(result.receivesMax).toBeLessThanOrEqual(7);
  // what was sent is handed over and then deleted, but for what is in flight
  expect(result.deleted + result.left).toBe(result.sent);
  expect(result.handedOver - result.deleted).toBeGreaterThanOrEqual(0);
  expect(result.handedOver - result.deleted).toBeLessThanOrEqual(DELETING_MAX);
  expect(result.left).toBeLessThanOrEqual(IN_FLIGHT_MAX);
  // the peaks do not grow: after the first handovers the installation is in a steady state
  const [early, late] = [result.inFlightPeaks.slice(2, 8), result.inFlightPeaks.slice(9)];
  expect(Math.max(...late)).toBeLessThanOrEqual(Math.max(...early) * 1.1);
  expect(result.healthyReceivesMax).toBeLessThanOrEqual(2);
  expect(result.healthy.p99S).toBeLessThan(5);
});
