/**
 * How a gap is closed automatically:
 *
 *   open ──quiet, or open for long, and the bucket and its index answer──► closing (a job)
 *     ▲                                                                      │
 *     │                     job done, and it covers the latest report ───────┴──► closed
 *     └── the job failed, was cancelled, paused or removed; or the gap was seen again after the job's floor
 *
 * A gap of deletes whose job a person pauses or cancels is open and held: no other job begins until a person wants one.
 */
import { shellWords } from '../commands.ts';
import { isOfDeletes, isTimedByAws, withoutDifferences, type GapRecord } from './gap.ts';
import { afterHeld, isHeldBy } from './held-deletes.ts';
import type { JobRecord } from '../reindex/job.ts';
import { waitMs } from '../reindex/parts.ts';
import { omit } from '../defined.ts';

/** A reconcile starts after no change was reported for this long, so that a burst of deletes needs only one reconcile. */
export const GAP_QUIET_MS = 60_000;
/** The longest wait for quiet, counted from when the gap was opened or last reconciled: deletes may never pause. */
export const GAP_OPEN_MAX_MS = 600_000;
/** A gap whose keys are also reported one by one is reconciled within a day. */
const COVERED_MS = 86_400_000;
/** After a failure the gap waits one minute, then two, four …, at most six hours: four attempts a day. */
const RETRY_MIN_MS = 60_000;
const RETRY_MAX_MS = 21_600_000;
/** A gap that was seen at a time far ahead of the clocks of S3 and the workers is re-indexed once a day until then. */
const AHEAD_MAX_MS = 86_400_000;
/** S3 states its time in whole seconds. */
const CLOCK_STEP_MS = 1_000;
/** How far the clocks of two workers may differ without a word about it. */
const CLOCKS_DIFFER_MS = 60_000;
const CLOCK_WORDS = 'which the clock of this worker says is';
/** How soon to ask a bucket again that refuses. */
const REFUSED_MIN_MS = 60_000;

const UNPROVEN = 'no event of the bucket has arrived yet: a re-index follows once events are known to arrive';

/** When the gap's reconcile is due, by the clocks of the workers that stored the record's times. A held gap never is. */
export function gapDueAtMs(gap: GapRecord): number {
  if (gap.held === true || gap.awaitsProof === true) return Infinity;
  const sinceMs = Math.max(gap.openedAtMs, gap.reconciledBeforeMs ?? 0);
  const quietAtMs = Math.max(gap.lastSeenMs, gap.toldAtMs) + GAP_QUIET_MS;
  const dueAtMs = gap.covered === true ? sinceMs + COVERED_MS : Math.min(quietAtMs, sinceMs + GAP_OPEN_MAX_MS);
  return Math.max(dueAtMs, gap.notBeforeMs ?? 0, gap.tooEarlyUntilMs ?? 0);
}

/**
 * Whether a job can close the gap: it is an apply job, it waits for late events, its prefix contains the gap's, and it reads
 * the tags of all objects again if changes of tags were handed over.
 */
export function canClose(job: JobRecord, gap: GapRecord): boolean {
  const readsEnough = gap.tags !== true || job.tags === true;
  return job.mode === 'apply' && job.now !== true && (gap.prefix ?? '').startsWith(job.prefix) && readsEnough;
}

/**
 * Whether the job covers every change that the gap stands for: it began after the latest change and after the latest report, or has
 * not begun yet. What AWS dates may be reported late: of that, the time of the change is enough.
 */
function covers(job: JobRecord, gap: GapRecord): boolean {
  if (job.coversBeforeMs === undefined) return true;
  return job.coversBeforeMs > gap.lastSeenMs && (isTimedByAws(gap.kind) || beganAfterReport(job, gap));
}

/** Whether the gap was not reported since the job began, whatever the clocks say: then the job covers all of it as soon as the clocks have come so far. */
function beganAfterReport({ beginOrder = 0 }: JobRecord, { afterBeginOrder = 0 }: GapRecord): boolean {
  return beginOrder > afterBeginOrder;
}

/**
 * The gap after a look at the job that it names; `job` is undefined when its record no longer exists. Returns the same
 * object when nothing has changed.
 */
export function gapAfterLook(gap: GapRecord, job: JobRecord | undefined, nowMs: number): GapRecord {
  if (job === undefined) return failedOf(gap, `${gap.jobId ?? 'its job'} no longer exists`, nowMs);
  if (isHeldBy(job, gap)) return afterHeld(gap, job, nowMs);
  switch (job.state) {
    case 'queued':
    case 'running':
      return covers(job, gap) ? closing(gap, job) : openWithJob(gap, job, whyUncovered(gap, job));
    case 'paused':
      return isOfDeletes(gap.kind)
        ? withheld(gap, job)
        : failedOf(gap, `${job.id} is paused (${job.pausedBecause ?? 'requested'}), so another job follows`, nowMs);
    case 'done':
      return afterDone(withoutRepaired(gap, job), job, nowMs);
    case 'failed':
      return failedOf(
        gap,
        `${job.id} failed: ${job.error === undefined ? 'the reason is unknown' : `${job.error.code}: ${job.error.reason}`}`,
        nowMs,
      );
    case 'cancelled':
      return isOfDeletes(gap.kind) ? withheld(gap, job) : failedOf(gap, `${job.id} was cancelled`, nowMs);
  }
}

/**
 * An open gap that names no job, after a look at the bucket's latest apply job, which may have been started for another
 * reason. The gap is closed or closing if that job covers all of its changes; else the same object is returned.
 */
export function gapAfterOther(found: GapRecord, job: JobRecord, nowMs: number): GapRecord {
  const gap = withoutRepaired(found, job);
  if (!canClose(job, gap) || !covers(job, gap) || gap.awaitsProof === true) return gap;
  switch (job.state) {
    case 'queued':
    case 'running':
      return isHeldBack(gap, job) ? gap : closing(gap, job);
    case 'done':
      // the job has stored what it held back itself
      return job.coversBeforeMs === undefined || isHeldBy(job, gap) ? gap : afterDone(gap, job, nowMs);
    case 'paused':
    case 'failed':
    case 'cancelled':
      return gap;
  }
}

/** Whether the job's deletion limit may stop it before it has deleted all that this gap exists to delete. If it is done all the same, it closes the gap. */
function isHeldBack({ id, kind }: GapRecord, { deletions, gapIds = [] }: JobRecord): boolean {
  return isOfDeletes(kind) && (deletions === undefined ? !gapIds.includes(id) : deletions.limit !== undefined);
}

/** The gap with a job that is closing it. It is no longer held. */
export function closing(gap: GapRecord, job: JobRecord): GapRecord {
  if (gap.state === 'closing' && gap.jobId === job.id) return gap;
  return { ...omit(gap, 'waits', 'refusedSinceMs', 'held', 'overBudget'), state: 'closing', jobId: job.id };
}

function openWithJob(gap: GapRecord, job: JobRecord, reason: string): GapRecord {
  if (gap.state === 'open' && gap.jobId === job.id && gap.waits?.reason === reason) return gap;
  return { ...gap, state: 'open', jobId: job.id, waits: { reason } };
}

/** What a report found is over once a job has compared its keys that began later and held nothing back, also where the gap stays open for other changes. */
function withoutRepaired(gap: GapRecord, job: JobRecord): GapRecord {
  const { coversBeforeMs = 0, counts } = job;
  const isOver = job.state === 'done' && canClose(job, gap) && coversBeforeMs > (gap.differences?.atMs ?? Infinity);
  return isOver && (counts?.held ?? 0) === 0 ? withoutDifferences(gap) : gap;
}

function afterDone(gap: GapRecord, job: JobRecord, nowMs: number): GapRecord {
  const rest = untried(gap);
  const coversBeforeMs = canClose(job, gap) ? job.coversBeforeMs : undefined;
  // the job was started with --now or for another prefix, so it proves nothing about this gap
  if (coversBeforeMs === undefined) return { ...rest, state: 'open' };
  const reconciledBeforeMs = Math.max(gap.reconciledBeforeMs ?? 0, coversBeforeMs);
  if (!covers(job, gap)) return { ...rest, state: 'open', reconciledBeforeMs, ...tooEarly(gap, job, { coversBeforeMs, nowMs }) };
  if (gap.unproven === true) return { ...rest, state: 'open', reconciledBeforeMs, awaitsProof: true, waits: { reason: UNPROVEN } };
  return { ...rest, state: 'closed', jobId: job.id, closedAtMs: nowMs, reconciledBeforeMs };
}

/** Why a job that began does not cover the gap. */
function whyUncovered(gap: GapRecord, job: JobRecord): string {
  const { id, bucket, coversBeforeMs = 0 } = job;
  if (!beganAfterReport(job, gap)) return `changes were reported after ${id} began, so another job will follow`;
  const seconds = Math.ceil((gap.lastSeenMs - coversBeforeMs) / 1_000);
  return `the latest change of the gap has a time that is ${seconds} s later than the beginning of ${id} by the clocks of S3 and its worker, so another job will follow. If no connection was changed, a clock is wrong: \`tally doctor ${bucket}\` compares them`;
}

/** How long to wait after a job that ended before it could cover the gap. One that follows earlier would not cover it either. */
function tooEarly(
  gap: GapRecord,
  job: JobRecord,
  { coversBeforeMs, nowMs }: { readonly coversBeforeMs: number; readonly nowMs: number },
): Pick<GapRecord, 'tooEarlyUntilMs' | 'waits'> {
  const aheadMs = gap.lastSeenMs - coversBeforeMs;
  const isClocks = beganAfterReport(job, gap);
  if (!isClocks && aheadMs <= GAP_OPEN_MAX_MS) return {};
  const fromMs = isClocks ? (job.startedAtMs ?? nowMs) + CLOCK_STEP_MS : nowMs;
  const untilMs = Math.max(nowMs, fromMs + Math.min(aheadMs, AHEAD_MAX_MS));
  return { tooEarlyUntilMs: untilMs, waits: { reason: whyUncovered(gap, job), untilMs } };
}

/**
 * The open gap with the word that a clock is wrong, if it was reported at a time that the worker's clock has not reached: it
 * waits for quiet until then. Returns the same object otherwise.
 */
export function withClockReason(gap: GapRecord, nowMs: number): GapRecord {
  const toldMs = Math.max(gap.toldAtMs, gap.openedAtMs);
  const seconds = Math.round((toldMs - nowMs) / 1_000);
  // one that is held waits for a person, whatever the clocks say
  if (gap.state !== 'open' || gap.held === true || toldMs - nowMs <= CLOCKS_DIFFER_MS) return gap;
  // not by the second: the record would change at every look
  if (gap.waits?.reason.includes(CLOCK_WORDS) === true) return gap;
  const reason = `it was reported at ${new Date(toldMs).toISOString()}, ${CLOCK_WORDS} ${seconds} s ahead: a clock is wrong, so compare those of the machines that run Tally`;
  const dueAtMs = gapDueAtMs(gap);
  return waiting(gap, reason, Number.isFinite(dueAtMs) ? dueAtMs : undefined);
}

/** The gap without its job, and without anything that is known of attempts to close it. */
function untried(gap: GapRecord): GapRecord {
  const ofAttempts = ['failures', 'notBeforeMs', 'refusedSinceMs', 'heldDeletes', 'overBudget', 'tooEarlyUntilMs'] as const;
  return omit(gap, 'jobId', 'waits', 'held', ...ofAttempts);
}

/** The gap after a job that failed to close it or could not start: open, and not tried again for a while. */
export function failedOf(gap: GapRecord, reason: string, nowMs: number): GapRecord {
  const failures = (gap.failures ?? 0) + 1;
  const untilMs = nowMs + Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (failures - 1));
  return { ...omit(gap, 'jobId', 'overBudget'), state: 'open', failures, notBeforeMs: untilMs, waits: { reason, untilMs } };
}

/** The gap of deletes whose job a person has stopped. */
function withheld(gap: GapRecord, { id, state }: JobRecord): GapRecord {
  const { bucket, prefix } = gap;
  const ofPrefix = prefix === undefined ? [] : ['--prefix', prefix];
  const reindex = shellWords('tally', 'reindex', bucket, ...ofPrefix);
  const [what, act] =
    state === 'paused' ? ['is paused', `run \`tally jobs resume ${id}\`, or \`${reindex}\``] : ['was cancelled', `run \`${reindex}\``];
  const reason = `${id} ${what}, so nothing deletes what the gap stands for until a person decides: look at the bucket, and if it is as intended, ${act}`;
  return { ...untried(gap), state: 'open', held: true, waits: { reason } };
}

/** The gap for which no job can begin now, because the bucket or its index refuses. That is not a failure: Tally asks again soon, later less often. */
export function refused(gap: GapRecord, reason: string, nowMs: number): GapRecord {
  const refusedSinceMs = gap.refusedSinceMs ?? nowMs;
  const untilMs = nowMs + Math.max(REFUSED_MIN_MS, waitMs(refusedSinceMs, nowMs));
  return { ...gap, refusedSinceMs, notBeforeMs: untilMs, waits: { reason, untilMs } };
}

/** How soon to check an exhausted budget again: a job may have taken fewer requests than estimated. */
const BUDGET_CHECK_MS = 300_000;

/** The gap for which no job can begin now, because of its bucket's budget. `fromMs`: from when one can, as far as is known now. */
export function overBudget(
  gap: GapRecord,
  reason: string,
  { fromMs, nowMs }: { readonly fromMs: number; readonly nowMs: number },
): GapRecord {
  const notBeforeMs = Math.min(fromMs, nowMs + BUDGET_CHECK_MS);
  return { ...waiting(gap, reason, fromMs), notBeforeMs, overBudget: true };
}

/** The gap with the reason why it is still open. Returns the same object when it already has that reason. */
export function waiting(gap: GapRecord, reason: string, untilMs?: number): GapRecord {
  if (gap.waits?.reason === reason && gap.waits.untilMs === untilMs) return gap;
  return { ...gap, waits: { reason, ...(untilMs !== undefined && { untilMs }) } };
}
