/**
 * The parts of a job: what becomes of one after a turn, of its job's counts, and what a fault means for both.
 *
 *   due ──turn──► due again, behind what is compared │ done: removed
 *    ▲             │ fault
 *    └─its time ───┘ three turns in a row that a fault of the part ended without progress fail the job
 *
 * A turn has no progress when the cursor did not advance.
 */
import { defined, omit } from '../base/defined.ts';
import { compareKeys } from '../base/key-order.ts';
import { jobAnswerOf, type Fault, type FaultCode } from '../base/fault.ts';
import { isDue, WITHOUT_PROGRESS_MAX, waitMs } from '../records/claims.ts';
import { addCounts, addExamples, noCounts, type DifferenceExamples, type ReconcileCounts } from '../records/counts.ts';
import type { JobFault, JobRecord, Part } from '../records/job.ts';

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

/** Whether the job fails because of what ended the part's last turn. A key that S3 refuses becomes a separate gap, but not in a report, nor in a job of that gap. */
export function isGivenUp(
  part: Part,
  { mode, prefix }: Pick<JobRecord, 'mode' | 'prefix'>,
  { nowMs, isLast }: { readonly nowMs: number; readonly isLast: boolean },
): boolean {
  const { fault } = part;
  if (fault === undefined) return false;
  if (fault.denied !== undefined && ((isLast && fault.denied === prefix) || (mode === 'report' && isStuck(part, nowMs)))) return true;
  const answer = answerTo(fault.code);
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

/** The parts of a job that begins to compare: they end at these keys, and the last one at the end of the listing. */
export function partsCut(cuts: readonly string[]): Part[] {
  return [...cuts, undefined].map((to, at) => ({ cursor: cuts[at - 1] ?? '', ...defined({ to }) }));
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
export function stoppedAfter({ parts = [] }: Pick<JobRecord, 'parts'>): string | undefined {
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
