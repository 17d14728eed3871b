/**
 * The scheduled re-index of every bucket, whatever its source: events may be lost where nothing sees it. It also shows that the
 * index is right. Each bucket has a schedule, whose interval is a week by default:
 *
 *   (new) ──► waits for its time in the interval ──► due ──job begun──► waits an interval
 *                                                     ▲                    │
 *                                                     └──── the job failed ┘ six hours later
 */
import { createHash } from 'node:crypto';
import type { JobRecord } from '../reindex/job.ts';
import type { ScheduleRecord } from './schedule.ts';

/** Four attempts a day: enough time between them for an operator to notice and correct the cause. */
const RETRY_MS = 21_600_000;

export type FullSweepAction =
  | { readonly kind: 'wait' }
  /** No job is due, but the record must be stored. */
  | { readonly kind: 'store'; readonly record: ScheduleRecord }
  | { readonly kind: 'begin' };

/** The name of a bucket's schedule. */
export function fullSweepName(bucket: string): string {
  return `full-sweep:${bucket}`;
}

export interface FullSweepLook {
  readonly bucket: string;
  readonly nowMs: number;
  readonly intervalMs: number;
  readonly job: JobRecord | undefined;
}

/** The action that is due now. `job`: the one that the record names, if it still exists. */
export function fullSweepAction(current: ScheduleRecord | undefined, { bucket, nowMs, intervalMs, job }: FullSweepLook): FullSweepAction {
  if (current === undefined)
    return { kind: 'store', record: { name: fullSweepName(bucket), dueAtMs: nowMs + offsetMs(bucket, intervalMs) } };
  // a paused job waits for an operator; a cancelled one was not wanted, so the next is begun an interval later
  if (job !== undefined && (job.state === 'queued' || job.state === 'running' || job.state === 'paused')) return { kind: 'wait' };
  if (job?.state === 'failed') {
    const { jobId: _, ...rest } = current;
    return { kind: 'store', record: { ...rest, dueAtMs: Math.min(current.dueAtMs, nowMs + RETRY_MS), lastError: `${job.id} failed` } };
  }
  // a time further ahead than this was set by a wrong clock, or under a longer interval
  const isDue = current.dueAtMs <= nowMs || current.dueAtMs > nowMs + 2 * intervalMs;
  return isDue ? { kind: 'begin' } : { kind: 'wait' };
}

/** The record once a job has begun. */
export function fullSweepBegun(
  bucket: string,
  jobId: string,
  { nowMs, intervalMs }: Pick<FullSweepLook, 'nowMs' | 'intervalMs'>,
): ScheduleRecord {
  return { name: fullSweepName(bucket), dueAtMs: nowMs + intervalMs, lastStartedAtMs: nowMs, jobId };
}

/** The bucket's time in the interval, derived from its name: buckets that were connected on one day must not all be listed in the same hour each week. */
function offsetMs(bucket: string, intervalMs: number): number {
  return Math.floor((createHash('sha256').update(bucket).digest().readUInt32BE(0) / 2 ** 32) * intervalMs);
}
