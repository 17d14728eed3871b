/**
 * How a gap closes itself:
 *
 *   open ──quiet, or long enough──► closing (a job) ──done, and its floor came after lastSeen──► closed
 *     ▲                                │
 *     └── failed, cancelled, paused, gone; or seen again after the job's floor
 */
import type { GapRecord } from './gap.ts';
import type { JobRecord } from '../reindex/job.ts';

/** A reconcile waits until nothing has been told for so long: one burst of deletes is one reconcile. */
export const GAP_QUIET_MS = 60_000;
/** … but no longer than this after it was opened, or after the last reconcile that is done: deletes may never end. */
export const GAP_OPEN_MAX_MS = 600_000;
/** What is told key by key as well is looked at again within a day. */
const COVERED_MS = 86_400_000;
/** After a failure a minute, then two, four …, at most six hours: what does not work is then tried four times a day. */
const RETRY_MIN_MS = 60_000;
const RETRY_MAX_MS = 21_600_000;

/** When the gap's reconcile is due, by the clock of who asks. */
export function gapDueAtMs(gap: GapRecord): number {
  const sinceMs = Math.max(gap.openedAtMs ?? gap.firstSeenMs, gap.reconciledBeforeMs ?? 0);
  const quietAtMs = Math.max(gap.lastSeenMs, gap.toldAtMs ?? 0) + GAP_QUIET_MS;
  const dueAtMs = gap.covered === true ? sinceMs + COVERED_MS : Math.min(quietAtMs, sinceMs + GAP_OPEN_MAX_MS);
  return Math.max(dueAtMs, gap.notBeforeMs ?? 0);
}

/** Whether a job could close the gap at all: it applies, waited for late events, and its prefix holds the gap's. */
export function canClose(job: JobRecord, gap: GapRecord): boolean {
  return job.mode === 'apply' && job.now !== true && (gap.prefix ?? '').startsWith(job.prefix);
}

/** Whether the job covers all that was seen of the gap, so far as that is decided: its floor is stored later than that, or is still to come. */
function covers(job: JobRecord, gap: GapRecord): boolean {
  return job.coversBeforeMs === undefined || job.coversBeforeMs > gap.lastSeenMs;
}

/**
 * The gap after a look at the job that it names, which is undefined where it is gone. The very record where nothing has
 * changed.
 */
export function gapAfterLook(gap: GapRecord, job: JobRecord | undefined, nowMs: number): GapRecord {
  if (job === undefined) return failedOf(gap, `${gap.jobId ?? 'its job'} is gone`, nowMs);
  switch (job.state) {
    case 'queued':
    case 'running':
      return covers(job, gap) ? closing(gap, job) : openWithJob(gap, job, `seen again after ${job.id} began: another will follow`);
    case 'paused':
      return openWithJob(gap, job, `${job.id} is paused (${job.pausedBecause ?? 'requested'}): resume it, or cancel it for another`);
    case 'done':
      return afterDone(gap, job, nowMs);
    case 'failed':
      return failedOf(gap, `${job.id} failed: ${job.error === undefined ? 'no reason' : `${job.error.code}: ${job.error.reason}`}`, nowMs);
    case 'cancelled':
      return failedOf(gap, `${job.id} was cancelled`, nowMs);
  }
}

/**
 * An open gap that names no job after a look at the bucket's latest apply job, whoever asked for it: closed or closing
 * if that covers all that was seen. The very record where it does not.
 */
export function gapAfterOther(gap: GapRecord, job: JobRecord, nowMs: number): GapRecord {
  if (!canClose(job, gap) || !covers(job, gap)) return gap;
  switch (job.state) {
    case 'queued':
    case 'running':
      return closing(gap, job);
    case 'done':
      return job.coversBeforeMs === undefined ? gap : afterDone(gap, job, nowMs);
    case 'paused':
    case 'failed':
    case 'cancelled':
      return gap;
  }
}

/** The gap once the job has it. */
export function closing(gap: GapRecord, job: JobRecord): GapRecord {
  if (gap.state === 'closing' && gap.jobId === job.id) return gap;
  const { waits: _, ...rest } = gap;
  return { ...rest, state: 'closing', jobId: job.id };
}

function openWithJob(gap: GapRecord, job: JobRecord, reason: string): GapRecord {
  if (gap.state === 'open' && gap.jobId === job.id && gap.waits?.reason === reason) return gap;
  return { ...gap, state: 'open', jobId: job.id, waits: { reason } };
}

function afterDone(gap: GapRecord, job: JobRecord, nowMs: number): GapRecord {
  const { jobId: _, waits: __, failures: ___, notBeforeMs: ____, ...rest } = gap;
  const coversBeforeMs = canClose(job, gap) ? job.coversBeforeMs : undefined;
  // asked for with --now, or of another prefix: it says nothing
  if (coversBeforeMs === undefined) return { ...rest, state: 'open' };
  const reconciledBeforeMs = Math.max(gap.reconciledBeforeMs ?? 0, coversBeforeMs);
  if (coversBeforeMs <= gap.lastSeenMs) return { ...rest, state: 'open', reconciledBeforeMs };
  return { ...rest, state: 'closed', jobId: job.id, closedAtMs: nowMs, reconciledBeforeMs };
}

/** The gap after a job that did not close it, or could not begin: open, and left alone for a while. */
export function failedOf(gap: GapRecord, reason: string, nowMs: number): GapRecord {
  const { jobId: _, ...rest } = gap;
  const failures = (gap.failures ?? 0) + 1;
  const untilMs = nowMs + Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (failures - 1));
  return { ...rest, state: 'open', failures, notBeforeMs: untilMs, waits: { reason, untilMs } };
}

/** The gap with why it is open still. The very record where that is known. */
export function waiting(gap: GapRecord, reason: string, untilMs?: number): GapRecord {
  if (gap.waits?.reason === reason && gap.waits.untilMs === untilMs) return gap;
  return { ...gap, waits: { reason, ...(untilMs !== undefined && { untilMs }) } };
}
