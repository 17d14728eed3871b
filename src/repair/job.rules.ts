/**
 * The rules of a job: its transitions, its deletion limit, and what becomes of its parts. Each transition is one compare-and-swap of its record. One that comes too late,
 * because the job was cancelled meanwhile for example, is `refused` and changes nothing.
 *
 *   queued ──wait──► waiting ──compare──► comparing ──finish──► done
 *      └────────────────compare───────────────┘
 *
 * From these three it may be paused, and is there again once it is resumed. Reports, and jobs that were requested with `now`, do not
 * wait. The deletion limit neither stops a job nor ends it early: what it does not allow waits for a person
 * (src/records/waiting-deletes.ts).
 */
import { omit, defined } from '../base/defined.ts';
import { asleep, isDue, WITHOUT_PROGRESS_MAX, waitMs, type JobFault, type JobRecord, type JobState, type Part } from '../records/job.ts';
import { addCounts, noCounts, addExamples, type DifferenceExamples, type ReconcileCounts } from '../records/counts.ts';
import { compareKeys } from '../base/key-order.ts';
import { jobAnswerOf, type Fault, type FaultCode } from '../base/fault.ts';

/** The phase of a job: what a running job is doing, otherwise its state. */
export type JobPhase = Exclude<JobState, 'running'> | 'waiting' | 'comparing';

export interface StartedJob {
  /** Number of live documents under its prefix. */
  readonly documentsAtStart: number;
  /** Tombstones that it may write; absent: no limit, or a report. */
  readonly tombstonesMax?: number;
  /** Number of LIST requests since the last attempt to begin was stored. */
  readonly listRequests: number;
}

export type JobTransition = { readonly atMs: number } & (
  | { readonly kind: 'wait'; readonly coversBeforeMs: number; readonly beginOrder: number; readonly waitUntilMs: number }
  | ({ readonly kind: 'compare' } & StartedJob)
  | { readonly kind: 'pause' }
  /** `isHeld`: deletions of its keys wait for a person, or they are no longer announced, so that it deletes only what was allowed to it. `isSettled`: what it held back does not wait any more. */
  | { readonly kind: 'resume'; readonly isHeld?: boolean; readonly isSettled?: boolean }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'finish' }
  | { readonly kind: 'fail'; readonly error: JobFault }
);
type TransitionKind = JobTransition['kind'];

/** The phases that allow each transition. What ended a turn during a pause happens again after it. */
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
      // the process that has the lease stores what it compared last, and gives the lease back
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
  { atMs, documentsAtStart, tombstonesMax, listRequests }: StartedJob & { readonly atMs: number },
): JobRecord {
  const limit = tombstonesMax === undefined ? {} : { limit: tombstonesMax };
  return {
    // it was able to begin, and its parts list for themselves
    ...omit(job, 'waits'),
    state: 'running',
    startedAtMs: job.startedAtMs ?? atMs,
    comparingAtMs: atMs,
    documentsAtStart,
    parts: [{ cursor: '' }],
    counts: addCounts(job.counts ?? noCounts, { listRequests }),
    ...(job.mode === 'apply' && { deletions: { ...limit, reserved: 0 } }),
  };
}

/** A job whose deletions wait, or are announced no more, deletes no more than was allowed to it, and what it has reserved already. */
function withoutPause(
  job: JobRecord,
  { atMs, isHeld, isSettled }: { readonly atMs: number; readonly isHeld?: boolean; readonly isSettled?: boolean },
): JobRecord {
  const { pausedAtMs = atMs, deletions, ...rest } = job;
  return {
    // a process that still has the lease loses at most what it did since its last progress was stored
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

/** What a later job has settled, this one holds back no more. */
function withoutHeld({ counts }: JobRecord): Pick<JobRecord, 'counts'> {
  return counts === undefined ? {} : { counts: { ...counts, held: 0 } };
}

/** The record of a job that has ended. */
function endedAs(state: JobState, job: JobRecord, atMs: number): JobRecord {
  return { ...omit(asleep(job), 'parts', 'waits', 'fruitless'), state, finishedAtMs: atMs };
}

/**
 * The job with `count` more tombstones reserved, and the number granted: fewer when the deletion limit holds; none if the job does not
 * compare now. Returns the same job object if there is nothing to store.
 */
export function reserved(job: JobRecord, count: number): { readonly job: JobRecord; readonly granted: number } {
  const { deletions } = job;
  if (phaseOf(job) !== 'comparing' || deletions === undefined) return { job, granted: 0 };
  // without a limit nothing is counted
  if (deletions.limit === undefined) return { job, granted: count };
  const granted = Math.min(count, Math.max(0, deletions.limit - deletions.reserved));
  return { job: granted === 0 ? job : { ...job, deletions: { ...deletions, reserved: deletions.reserved + granted } }, granted };
}

/** The job after `count` of its reserved tombstones were given back unused. */
export function givenBackTo(job: JobRecord, count: number): JobRecord {
  const { deletions } = job;
  if (deletions?.limit === undefined) return job;
  return { ...job, deletions: { ...deletions, reserved: Math.max(0, deletions.reserved - count) } };
}

/** The deletion limit allows a tenth of the documents to be deleted, but at least a number that people delete without much thought. */
const DELETIONS_SHARE = 0.1;
const DELETIONS_MIN = 1_000;

/**
 * How many tombstones a job may write: the larger of 1,000 and a tenth of the documents under its prefix. Undefined (no limit)
 * if they were announced. Only what a person has allowed if deletions of its keys wait for one, or if the bucket is
 * empty and the index is not: whatever the job closes, a bulk delete that names no keys consents to none of them.
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

// ── the parts of a job: what becomes of one after a turn, of its job's counts, and what a fault means for both ────────────
//
//   due ──turn──► due again, behind what is compared │ done: removed
//    ▲             │ fault
//    └─its time ───┘ three turns in a row that a fault of the part ended without progress fail the job
//
// A turn has no progress when the cursor did not advance.

/** What a turn has compared and done so far. */
export interface TurnProgress {
  /** Keys up to this one, inclusive, are compared, and every effect on them is durable. */
  readonly cursor: string;
  /** Whether keys after the cursor were written. They are counted. */
  readonly readsFirst?: boolean;
  readonly counts: ReconcileCounts;
  readonly examples: DifferenceExamples;
}

/** A key whose HEAD S3 refuses. */
export interface DeniedKey {
  readonly key: string;
  /** The last compared key before it in its slice, if there is one. */
  readonly after?: string;
}

/** The end of a turn. */
export interface TurnEnd extends TurnProgress {
  /** Whether the end of the part, or of the listing, was reached. */
  readonly done: boolean;
  /** The fault that ended the turn early; the progress is valid all the same. */
  readonly fault?: Fault;
  /** Only this key of its slice keeps the turn from going on. */
  readonly denied?: DeniedKey;
}

/** The part after a turn that has left something of it, or while one runs. */
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

/** Without progress, what ended earlier turns still counts. */
function keptFault(part: Part, end: Pick<TurnEnd, 'cursor'>): Pick<Part, 'fault'> {
  return part.fault === undefined || hasProgress(part, end) ? {} : { fault: part.fault };
}

/** Whether the turn has compared anything. */
export function hasProgress({ cursor }: Part, end: Pick<TurnEnd, 'cursor'> & { readonly done?: boolean }): boolean {
  return end.done === true || end.cursor !== cursor;
}

/** The fault of a part, and when its next turn begins: progress starts everything over, a fault of the part counts, and one that is waited for does not. */
function faultAfter(part: Part, end: Pick<TurnEnd, 'cursor'> & { readonly fault: Fault }, nowMs: number): NonNullable<Part['fault']> {
  const { code, reason } = end.fault;
  const before = hasProgress(part, end) ? undefined : part.fault;
  const attempts = before?.attempts ?? 0;
  const sinceMs = before?.sinceMs ?? nowMs;
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
 * Whether the job fails because of what ended the part's last turn. A key that S3 refuses becomes a separate gap, but not in a report, nor
 * in a job of that gap. Refuses it more than such keys, the job fails once nothing else of it goes on, so that other jobs of the bucket
 * get their turn. `isAlone`: all other parts have waited for long.
 */
export function isGivenUp(
  part: Part,
  { mode, prefix }: Pick<JobRecord, 'mode' | 'prefix'>,
  { nowMs, isAlone }: { readonly nowMs: number; readonly isAlone: boolean },
): boolean {
  const { fault } = part;
  if (fault === undefined) return false;
  const { code, denied } = fault;
  if (denied !== undefined) return (isAlone && denied === prefix) || (mode === 'report' && isStuck(part, nowMs));
  if (jobAnswerOf(code) === 'skip') return isAlone && isStuck(part, nowMs);
  const answer = answerTo(code);
  return answer === 'fail' || (answer === 'retry' && fault.attempts >= WITHOUT_PROGRESS_MAX);
}

/** Where to cut a part such that the key is alone in a part. */
export function boundariesOf({ cursor, to }: Part, { key, after }: DeniedKey): readonly string[] {
  const isWithin = (at: string): boolean => compareKeys(at, cursor) > 0 && (to === undefined || compareKeys(at, to) < 0);
  return [...(after === undefined ? [] : [after]), key].filter(isWithin);
}

/** A part that waits for so long may wait forever. */
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

/** The part up to the first boundary, and the parts behind it. The boundaries are in key order, within the part and behind its cursor. */
export function cutPart(part: Part, boundaries: readonly string[]): readonly Part[] {
  const [first] = boundaries;
  if (first === undefined) return [part];
  const { readsFirst } = part;
  const behind = boundaries.map((cursor, at) => ({ cursor, ...defined({ to: boundaries[at + 1] ?? part.to, readsFirst }) }));
  return [{ ...part, to: first }, ...behind];
}

/** What the ended turns of this lease, and those that run, have done since the job was claimed. */
export interface Work {
  readonly parts: readonly Part[];
  readonly counts: ReconcileCounts;
  readonly examples: DifferenceExamples;
  readonly hasProgress: boolean;
}

/** The job with the work of its present lease. `claimed`: the job as it was claimed. */
export function withWork(job: JobRecord, claimed: JobRecord, { parts, counts, examples, hasProgress: has }: Work): JobRecord {
  const found = addExamples(claimed.examples ?? {}, examples);
  return {
    ...job,
    parts: parts.toSorted((a, b) => compareKeys(a.cursor, b.cursor)),
    counts: addCounts(claimed.counts ?? noCounts, counts),
    ...(Object.keys(found).length > 0 && { examples: found }),
    ...(has && { fruitless: 0 }),
  };
}

/** The key after which the job stopped: that of the first part which is not compared. */
function stoppedAfter({ parts = [] }: Pick<JobRecord, 'parts'>): string | undefined {
  return parts[0]?.cursor;
}

/** The fault of a job whose every lease ended with its process. */
export function endedWithoutProgress(job: JobRecord): JobFault {
  const reason = `${WITHOUT_PROGRESS_MAX} processes in a row ended while they worked on this job`;
  return { code: 'internal.unexpected', reason, ...defined({ after: stoppedAfter(job) }) };
}

/** The job keeps its place, and shows why it could not begin. */
export function waitingToStart(job: JobRecord, fault: Fault, nowMs: number): JobRecord & { readonly waits: { readonly sinceMs: number } } {
  return { ...omit(job, 'waits'), waits: { code: fault.code, reason: fault.reason, sinceMs: job.waits?.sinceMs ?? nowMs } };
}

/** Wait after a fault that concerns the part alone: 5 s the first time, then 10 s. */
const RETRY_MS = 5_000;

/**
 * What a fault means for the job. `wait`: the part continues when the fault is over, however long that takes. `retry`: it is
 * tried again, and three times in a row without progress fail the job. `fail`: the job fails at once.
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

/** What a bucket answers that does not exist, or that this process may not list. */
const REFUSALS: ReadonlySet<FaultCode> = new Set(['bucket.missing', 'object.denied']);

/**
 * The answer to a fault of a job that has not begun. A person who requested it may have named the wrong bucket, or lack a
 * permission, and learns that at once. A job of Tally itself was requested after the bucket had answered, so it waits.
 */
export function answerAtStart(code: FaultCode, { state, requestedBy }: Pick<JobRecord, 'state' | 'requestedBy'>): FaultAnswer {
  const isPersons = requestedBy !== 'gap' && requestedBy !== 'schedule';
  return state === 'queued' && isPersons && REFUSALS.has(code) ? 'fail' : answerTo(code);
}
