/**
 * The scheduled re-index of every bucket, whatever its source: events may be lost where nothing sees it. It also shows that the
 * index is right. Each bucket has one an interval, which is a week by default, at its own time in it:
 *
 *   (new) ──► waits for its time in the interval ──► due ──job begun──► waits an interval
 *                                                     ▲                    │
 *                                                     └──── the job failed ┘ six hours later
 */
import { createHash } from 'node:crypto';
import type { BucketRecord } from '../bucket.ts';
import { hasEnded, type JobRecord } from '../reindex/job.ts';

/** Four attempts a day: enough time between them for an operator to notice and correct the cause. */
const RETRY_MS = 21_600_000;

type Swept = Pick<BucketRecord, 'bucket' | 'createdAtMs' | 'sweep' | 'lastComparedAtMs'>;

interface SweepLook {
  readonly nowMs: number;
  readonly intervalMs: number;
}

/** Whether a job may be due, by the bucket's record alone. */
export function maySweepBeDue(bucket: Swept, look: SweepLook): boolean {
  const { sweep, lastComparedAtMs = 0 } = bucket;
  const mayHaveFailed = sweep !== undefined && lastComparedAtMs < sweep.atMs && look.nowMs >= sweep.atMs + RETRY_MS;
  return mayHaveFailed || isSweepDue(bucket, undefined, look);
}

/** Whether a job is due. `job`: the last one of the schedule, if it still exists. */
export function isSweepDue({ bucket, createdAtMs, sweep }: Swept, job: JobRecord | undefined, { nowMs, intervalMs }: SweepLook): boolean {
  // a paused job waits for an operator; a cancelled one was not wanted, so the next is begun an interval later
  if (job !== undefined && !hasEnded(job)) return false;
  if (job?.state === 'failed' && nowMs >= (job.finishedAtMs ?? job.createdAtMs) + RETRY_MS) return true;
  const dueAtMs = sweep === undefined ? createdAtMs + offsetMs(bucket, intervalMs) : sweep.atMs + intervalMs;
  // a time further ahead than this was set by a wrong clock, or under a longer interval
  return dueAtMs <= nowMs || dueAtMs > nowMs + 2 * intervalMs;
}

/** The bucket's time in the interval, derived from its name: buckets that were connected on one day must not all be listed in the same hour each week. */
function offsetMs(bucket: string, intervalMs: number): number {
  return Math.floor((createHash('sha256').update(bucket).digest().readUInt32BE(0) / 2 ** 32) * intervalMs);
}
