/**
 * The weekly re-index of buckets whose source is best effort, as a schedule of each bucket:
 *
 *   (new) ──► waits for its place in the week ──► due ──job begun──► waits a week
 *                                                  ▲                    │
 *                                                  └──── the job failed ┘ six hours later
 */
import { createHash } from 'node:crypto';
import type { JobRecord } from '../reindex/job.ts';
import type { ScheduleRecord } from './schedule.ts';

const WEEK_MS = 604_800_000;
/** Long enough for whatever made it fail to be seen, four times a day. */
const RETRY_MS = 21_600_000;

export type FullSweepStep =
  | { readonly kind: 'wait' }
  /** Nothing to begin, but this to be stored. */
  | { readonly kind: 'store'; readonly record: ScheduleRecord }
  | { readonly kind: 'begin' };

/** The name of a bucket's schedule. */
export function fullSweepName(bucket: string): string {
  return `full-sweep:${bucket}`;
}

/** What is to be done now. `job`: the one that the record names, if it is still there. */
export function fullSweepStep(
  current: ScheduleRecord | undefined,
  { bucket, nowMs, job }: { readonly bucket: string; readonly nowMs: number; readonly job: JobRecord | undefined },
): FullSweepStep {
  if (current === undefined) return { kind: 'store', record: { name: fullSweepName(bucket), dueAtMs: nowMs + placeInWeekMs(bucket) } };
  // one that is paused waits for a person; one that was cancelled was not wanted
  if (job !== undefined && (job.state === 'queued' || job.state === 'running' || job.state === 'paused')) return { kind: 'wait' };
  if (job?.state === 'failed') {
    const { jobId: _, ...rest } = current;
    return { kind: 'store', record: { ...rest, dueAtMs: Math.min(current.dueAtMs, nowMs + RETRY_MS), lastError: `${job.id} failed` } };
  }
  // further ahead than any right clock can have set it
  const isDue = current.dueAtMs <= nowMs || current.dueAtMs > nowMs + 2 * WEEK_MS;
  return isDue ? { kind: 'begin' } : { kind: 'wait' };
}

/** The record once a job is begun. */
export function fullSweepBegun(bucket: string, jobId: string, nowMs: number): ScheduleRecord {
  return { name: fullSweepName(bucket), dueAtMs: nowMs + WEEK_MS, lastStartedAtMs: nowMs, jobId };
}

/** Spread over the week by the bucket's name: many buckets connected in one day must not be listed in one hour for ever. */
function placeInWeekMs(bucket: string): number {
  return Math.floor((createHash('sha256').update(bucket).digest().readUInt32BE(0) / 2 ** 32) * WEEK_MS);
}
