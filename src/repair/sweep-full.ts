/**
 * The scheduled re-index of every bucket, whatever its source: events may be lost where nothing sees it. It also shows that the
 * index is right. Each bucket has one an interval, which is a week by default, at its own time in it:
 *
 *   (new) ──► waits for its time in the interval ──► due ──job begun──► waits an interval
 *                                                     ▲                    │
 *                                                     └──── the job failed ┘ six hours later
 */
import { createHash } from 'node:crypto';
import type { BucketRecord } from '../records/bucket.ts';
import { hasEnded, type JobRecord } from '../records/job.ts';
import { RequestError } from '../base/request-error.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import type { StartJob } from './close-gaps.ts';
import type { Visit } from '../observing/sweep.ts';
import type { WithPorts } from '../store/store.ts';

interface FullSweepDependencies extends WithPorts<'state' | 'clock'> {
  readonly startJob: StartJob;
  /** From one compare of a bucket to the next; 0: none is scheduled. */
  readonly intervalMs: number;
}

/** Creates the visit of one bucket. A bucket that a job occupies is visited again later. */
export function createVisitFull({ state, startJob, clock, intervalMs }: FullSweepDependencies): Visit {
  return async function visitFull(record, signal) {
    const { bucket, enrich, sweep } = record;
    const look = { nowMs: clock.nowMs(), intervalMs };
    // nothing is read where the record shows that nothing is due
    if (intervalMs === 0 || !maySweepBeDue(record, look)) return undefined;
    const last = sweep && (await readRecord(state, refs.job(sweep.jobId), signal));
    if (!isSweepDue(record, last, look)) return undefined;
    try {
      // its deletions are limited, whatever gaps it closes
      const tags = enrich === 'tags' ? { tags: true } : {};
      const { id: jobId } = await startJob({ bucket, prefix: '', mode: 'apply', requestedBy: 'schedule', ...tags }, signal);
      const begun = { jobId, atMs: clock.nowMs() };
      await updateRecord(state, refs.bucket(bucket), (current) => current && { ...current, sweep: begun });
      return 0;
    } catch (error) {
      if (error instanceof RequestError && error.code === 'job.conflict') return undefined;
      throw error;
    }
  };
}

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
