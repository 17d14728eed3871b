/**
 * A job's rules: its transitions, its deletion limit, and what happens to its parts. Each transition is one compare-and-swap of its
 * record. One that comes too late, for example because the job was cancelled meanwhile, is `refused` and changes nothing.
 *
 *   queued ──wait──► waiting ──compare──► comparing ──finish──► done
 *      └────────────────compare───────────────┘
 *
 * A job may be paused in any of these three phases, and resumes in the same one. Reports and jobs with `now` do not wait. The deletion
 * limit neither stops a job nor ends it early: deletions beyond it wait for a person (src/records/waiting-deletes.ts).
 */
import { omit, defined } from '../base/defined.ts';
import { asleep, isDue, WITHOUT_PROGRESS_MAX, waitMs, type JobFault, type JobRecord, type JobState, type Part } from '../records/job.ts';
import { addCounts, noCounts, addExamples, type DifferenceExamples, type ReconcileCounts } from '../records/comparison.ts';
import { compareKeys } from '../base/key-order.ts';
import { jobAnswerOf, type Fault, type FaultCode } from '../base/fault.ts';

/** A job's phase: what it is doing while it runs, otherwise its state. */
export type JobPhase = Exclude<JobState, 'running'> | 'waiting' | 'comparing';

export interface StartedJob {
  /** How many live documents there are under its prefix. */
  readonly documentsAtStart: number;
  /** How many tombstones it may write; absent: no limit, or a report. */
  readonly tombstonesMax?: number;
  /** How many LIST requests were sent since the last attempt to begin was stored. */
  readonly list_requests: number;
}

export type JobTransition = { readonly atMs: number } & (
  | { readonly kind: 'wait'; readonly coversBeforeMs: number; readonly beginOrder: number; readonly waitUntilMs: number }
  | ({ readonly kind: 'compare' } & StartedJob)
  | { readonly kind: 'pause' }
  /** `isHeld`: deletions of its keys wait for a person, or are no longer announced, so it deletes only what a person has allowed. `isSettled`: what it held back no longer waits. */
  | { readonly kind: 'resume'; readonly isHeld?: boolean; readonly isSettled?: boolean }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'fail'; readonly error: JobFault }
);
type TransitionKind = JobTransition['kind'];

/** The phases that allow each transition. If a turn ends the job during a pause, that happens again afterwards. */
const allowed: Readonly<Record<TransitionKind, readonly JobPhase[]>> = {
  wait: ['queued'],
  compare: ['queued', 'waiting'],
  pause: ['queued', 'waiting', 'comparing'],
  resume: ['paused'],
  cancel: ['queued', 'waiting', 'comparing', 'paused'],
  finish: ['comparing'],
  fail: ['queued', 'waiting', 'comparing'],
};

/** The phase of the job. */
export function phaseOf({ state, comparingAtMs }: Pick<JobRecord, 'state' | 'comparingAtMs'>): JobPhase {
  if (state !== 'running') return state;
  return comparingAtMs === undefined ? 'waiting' : 'comparing';
}

/** Whether the job's phase allows the transition. */
export function mayTransition(job: JobRecord, kind: TransitionKind): boolean {
  return allowed[kind].includes(phaseOf(job));
}

/** The record after the transition, or `refused`. */
export function afterTransition(job: JobRecord, transition: JobTransition): JobRecord | 'refused' {
  if (!mayTransition(job, transition.kind)) return 'refused';
  switch (transition.kind) {
    case 'wait': {
      const { atMs, coversBeforeMs, beginOrder, waitUntilMs } = transition;
      return { ...omit(job, 'waits'), state: 'running', startedAtMs: atMs, coversBeforeMs, beginOrder, waitUntilMs };
    }
    case 'compare':
      return withStart(job, transition);
    case 'pause':
      // the process with the lease stores what it compared last, and gives the lease back
      return { ...omit(job, 'dueAtMs'), state: 'paused', pausedAtMs: transition.atMs };
    case 'resume':
      return withoutPause(job, transition);
    case 'cancel':
      return endedAs('cancelled', job, transition.atMs);
    case 'finish':
      return endedAs('done', job, transition.atMs);
    case 'fail':
      return { ...endedAs('failed', job, transition.atMs), error: transition.error };
  }
}

function withStart(
  job: JobRecord,
  { atMs, documentsAtStart, tombstonesMax, list_requests }: StartedJob & { readonly atMs: number },
): JobRecord {
  const limit = tombstonesMax === undefined ? {} : { limit: tombstonesMax };
  return {
    // it could begin, so it waits for nothing
    ...omit(job, 'waits'),
    state: 'running',
    startedAtMs: job.startedAtMs ?? atMs,
    comparingAtMs: atMs,
    documentsAtStart,
    parts: [{ cursor: '' }],
    counts: addCounts(job.counts ?? noCounts, { list_requests }),
    ...(job.mode === 'apply' && { deletions: { ...limit, reserved: 0 } }),
  };
}

/** The job after a pause. If its deletions wait, or are no longer announced, it deletes no more than a person has allowed and it has already reserved. */
function withoutPause(
  job: JobRecord,
  { atMs, isHeld, isSettled }: { readonly atMs: number; readonly isHeld?: boolean; readonly isSettled?: boolean },
): JobRecord {
  const { pausedAtMs = atMs, deletions, ...rest } = job;
  return {
    // a process that still has the lease loses at most what it did since it last stored its progress
    ...omit(rest, 'lease'),
    state: job.startedAtMs === undefined ? 'queued' : 'running',
    dueAtMs: atMs,
    fruitless: 0,
    ...(isSettled === true && withoutHeld(job)),
    pausedMs: (job.pausedMs ?? 0) + (job.comparingAtMs === undefined ? 0 : atMs - pausedAtMs),
    ...(deletions && {
      deletions: isHeld === true ? { ...deletions, limit: Math.max(deletions.reserved, job.allowDeletes ?? 0) } : deletions,
    }),
  };
}

/** The job no longer holds back what a later job has settled. */
function withoutHeld({ counts }: JobRecord): Pick<JobRecord, 'counts'> {
  return counts === undefined ? {} : { counts: { ...counts, held: 0 } };
}

/** The record of a job that has ended. */
function endedAs(state: JobState, job: JobRecord, atMs: number): JobRecord {
  return { ...omit(asleep(job), 'parts', 'waits', 'fruitless'), state, finishedAtMs: atMs };
}

/**
 * The job with up to `count` more tombstones reserved, and how many were granted: fewer if the deletion limit is reached, none if the job
 * is not comparing. Returns the same job object if there is nothing to store.
 */
export function reserved(job: JobRecord, count: number): { readonly job: JobRecord; readonly granted: number } {
  const { deletions } = job;
  if (phaseOf(job) !== 'comparing' || deletions === undefined) return { job, granted: 0 };
  // without a limit, nothing is counted
  if (deletions.limit === undefined) return { job, granted: count };
  const granted = Math.min(count, Math.max(0, deletions.limit - deletions.reserved));
  return { job: granted === 0 ? job : { ...job, deletions: { ...deletions, reserved: deletions.reserved + granted } }, granted };
}

/** The deletion limit allows a tenth of the documents, but at least as many as people delete without much thought. */
const DELETIONS_SHARE = 0.1;
const DELETIONS_MIN = 1_000;

/**
 * How many tombstones a job may write: the larger of 1,000 and a tenth of the documents under its prefix; undefined (no limit) if they
 * were announced. Only what a person has allowed if deletions of its keys wait, or if the bucket is empty and the index is not: a bulk
 * delete that names no keys is no consent to deleting everything.
 */
export function tombstoneLimit(facts: {
  readonly documentsAtStart: number;
  readonly isEmptyBucket: boolean;
  readonly areAnnounced: boolean;
  readonly allowDeletes: number | undefined;
  readonly isAnyHeld: boolean;
}): number | undefined {
  const { documentsAtStart, isEmptyBucket, areAnnounced, allowDeletes, isAnyHeld } = facts;
  if (isEmptyBucket || isAnyHeld || allowDeletes !== undefined) return allowDeletes ?? 0;
  return areAnnounced ? undefined : Math.max(DELETIONS_MIN, Math.floor(documentsAtStart * DELETIONS_SHARE));
}

// ── a job's parts: what happens to a part after a turn, and what a fault means for the part and its job ───────────────────
//
//   due ──turn──► due again, behind what is compared │ done: removed
//    ▲             │ fault
//    └─its time ───┘ three turns in a row that a fault of the part ended without progress fail the job
//
// A turn made progress if the cursor advanced.

/** What a turn has compared and done so far. */
export interface TurnProgress {
  /** Keys up to and including this one are compared, and every effect on them is durable. */
  readonly cursor: string;
  /** Whether keys after the cursor were already written, and counted. */
  readonly readsFirst?: boolean;
  readonly counts: ReconcileCounts;
  readonly examples: DifferenceExamples;
}

/** The end of a turn. */
export interface TurnEnd extends TurnProgress {
  /** Whether the end of the part, or of the listing, was reached. */
  readonly done: boolean;
  /** The fault that ended the turn early; the progress is valid nevertheless. */
  readonly fault?: Fault;
}

/** The part after a turn that has not finished it, or during a turn. */
export function afterTurn(part: Part, end: Omit<TurnEnd, 'done'>, nowMs: number): Part {
  const { cursor, readsFirst, fault } = end;
  const { to } = part;
  return {
    cursor,
    ...defined({ to }),
    ...(readsFirst === true && { readsFirst }),
    ...(fault === undefined ? keptFault(part, end) : { fault: faultAfter(part, { ...end, fault }, nowMs) }),
  };
}

/** Without progress, the fault that ended earlier turns still counts. */
function keptFault(part: Part, end: Pick<TurnEnd, 'cursor'>): Pick<Part, 'fault'> {
  return part.fault === undefined || hasProgress(part, end) ? {} : { fault: part.fault };
}

/** Whether the turn has compared anything. */
export function hasProgress({ cursor }: Part, end: Pick<TurnEnd, 'cursor'> & { readonly done?: boolean }): boolean {
  return end.done === true || end.cursor !== cursor;
}

/** A part's fault, and when its next turn begins. Progress resets everything; only faults of the part itself count as attempts. */
function faultAfter(part: Part, end: Pick<TurnEnd, 'cursor'> & { readonly fault: Fault }, nowMs: number): NonNullable<Part['fault']> {
  const { code, reason } = end.fault;
  const before = hasProgress(part, end) ? undefined : part.fault;
  const attempts = before?.attempts ?? 0;
  // a time that was stored by a fast clock does not outlast a right one
  const sinceMs = Math.min(before?.sinceMs ?? nowMs, nowMs);
  const at = { code, reason, after: end.cursor, sinceMs };
  switch (answerTo(code)) {
    case 'wait':
      return { ...at, attempts, dueAtMs: nowMs + waitMs(sinceMs, nowMs) };
    case 'retry':
    case 'fail': {
      const counted = hasProgress(part, end) ? 0 : attempts + 1;
      return { ...at, attempts: counted, dueAtMs: nowMs + RETRY_MS * Math.max(1, counted) };
    }
  }
}

/**
 * Whether the job fails because of what ended the part's last turn. If S3 refuses what the part needs, the job fails once none of it
 * makes progress, so that other jobs of the bucket get their turn. `isAlone`: all other parts have waited for long.
 */
export function isGivenUp(part: Part, { nowMs, isAlone }: { readonly nowMs: number; readonly isAlone: boolean }): boolean {
  const { fault } = part;
  if (fault === undefined) return false;
  if (jobAnswerOf(fault.code) === 'skip') return isAlone && isStuck(part, nowMs);
  const answer = answerTo(fault.code);
  return answer === 'fail' || (answer === 'retry' && fault.attempts >= WITHOUT_PROGRESS_MAX);
}

/** A part that has waited for this long may wait forever. */
const STUCK_MS = 600_000;

/** Whether the part has waited for long. */
export function isStuck({ fault }: Part, nowMs: number): boolean {
  return fault !== undefined && nowMs - fault.sinceMs >= STUCK_MS;
}

/** Whether a turn of the part may begin now. */
export function isPartDue({ fault }: Part, nowMs: number): boolean {
  return fault === undefined || isDue(fault, nowMs);
}

/** When the next part is due; undefined if none is left. */
export function nextPartDueMs(parts: readonly Part[], nowMs: number): number | undefined {
  const times = parts.map((part) => (isPartDue(part, nowMs) ? nowMs : (part.fault?.dueAtMs ?? nowMs)));
  return times.length === 0 ? undefined : Math.min(...times);
}

/** The part up to the first boundary, and the parts behind it. The boundaries must be in key order, within the part and behind its cursor. */
export function cutPart(part: Part, boundaries: readonly string[]): readonly Part[] {
  const [first] = boundaries;
  if (first === undefined) return [part];
  const { readsFirst } = part;
  const behind = boundaries.map((cursor, at) => ({ cursor, ...defined({ to: boundaries[at + 1] ?? part.to, readsFirst }) }));
  return [{ ...part, to: first }, ...behind];
}

/** What the ended and running turns of the present lease have done. */
export interface Work {
  readonly parts: readonly Part[];
  readonly counts: ReconcileCounts;
  readonly examples: DifferenceExamples;
  readonly hasProgress: boolean;
  readonly refused: JobFault | undefined;
}

/** The job with its present lease's work added. `claimed`: the job as it was claimed. */
export function withWork(job: JobRecord, claimed: JobRecord, { parts, counts, examples, hasProgress: has, refused }: Work): JobRecord {
  const found = addExamples(claimed.examples ?? {}, examples);
  return {
    ...job,
    parts: parts.toSorted((a, b) => compareKeys(a.cursor, b.cursor)),
    counts: addCounts(claimed.counts ?? noCounts, counts),
    ...(Object.keys(found).length > 0 && { examples: found }),
    ...(has && { fruitless: 0 }),
    ...defined({ refused }),
  };
}

/** The fault of a job whose leases all ended with their processes. */
export function endedWithoutProgress(job: JobRecord): JobFault {
  const reason = `${WITHOUT_PROGRESS_MAX} processes in a row ended while they worked on this job`;
  return { code: 'internal.unexpected', reason, ...defined({ after: job.parts?.[0]?.cursor }) };
}

/** The job keeps its place, and shows why it could not begin. */
export function waitingToStart(job: JobRecord, fault: Fault, nowMs: number): JobRecord & { readonly waits: { readonly sinceMs: number } } {
  return {
    ...omit(job, 'waits'),
    waits: { code: fault.code, reason: fault.reason, sinceMs: Math.min(job.waits?.sinceMs ?? nowMs, nowMs) },
  };
}

/** How long to wait after a fault of the part itself: 5 s the first time, then 10 s. */
const RETRY_MS = 5_000;

/**
 * What a fault means for the job. `wait`: the part continues once the fault is over, however long that takes. `retry`: it is tried
 * again, and the third time in a row without progress fails the job. `fail`: the job fails at once.
 */
export type FaultAnswer = 'wait' | 'retry' | 'fail';

/** The answer to a fault that ended a turn or the start of a job. */
export function answerTo(code: FaultCode): FaultAnswer {
  switch (jobAnswerOf(code)) {
    case 'stop':
    case 'wait':
    case 'skip':
      return 'wait';
    case 'retry':
      return 'retry';
    case 'fail':
      return 'fail';
  }
}

/** The faults of a bucket that does not exist, or that this process may not list. */
const REFUSALS: ReadonlySet<FaultCode> = new Set(['bucket.missing', 'object.denied']);

/**
 * The answer to a fault before a job has begun. A person who requested it may have named the wrong bucket, or lack a permission, and
 * should learn that at once. Tally's own jobs are requested only after the bucket has answered, so they wait.
 */
export function answerAtStart(code: FaultCode, { state, requestedBy }: Pick<JobRecord, 'state' | 'requestedBy'>): FaultAnswer {
  const isPersons = requestedBy !== 'gap' && requestedBy !== 'schedule';
  return state === 'queued' && isPersons && REFUSALS.has(code) ? 'fail' : answerTo(code);
}
