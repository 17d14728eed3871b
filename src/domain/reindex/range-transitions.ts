/**
 * The transitions of a range. Each is one compare-and-swap of its record with the version that the worker knows: a worker
 * that loses a swap has lost the range.
 *
 *   due ──take──► leased ──(renewed, its progress stored)──► stored: due again with an advanced cursor │ done
 *     ▲               │
 *     └── lease over ─┘ a worker died: the range is taken again, with one more lease without progress
 *
 * Three leases without progress in a row fail the job. A lease has none when the cursor did not advance, and no more pages without
 * keys were passed after it than before, because the worker died or because of a fault of the range itself.
 */
import { jobAnswerOf, type Fault, type FaultCode } from '../fault.ts';
import { addCounts, addExamples, countsOfDeletions, EXAMPLES_MAX, type DifferenceExamples, type ReconcileCounts } from './counts.ts';
import { asleep, claimOf, WITHOUT_PROGRESS_MAX, heldBy } from './claims.ts';
import type { JobFault, JobRecord, RangeRecord } from './job.ts';
import { hasPassedMore, passedPages, type ListingPlace } from './passed-pages.ts';
import { omit } from '../defined.ts';

/** The result of trying to take a range. */
export type Taking =
  | { readonly kind: 'taken'; readonly range: RangeRecord }
  /** Another worker has the range. */
  | { readonly kind: 'leased' }
  /** It is done, or another worker was faster. */
  | { readonly kind: 'early' }
  /** Too many leases in a row ended without progress; the job must fail with this error. */
  | { readonly kind: 'poisonous'; readonly error: JobFault };

export interface Taker {
  readonly worker: string;
  readonly nowMs: number;
  /** Whether the lease of the range has not changed for WATCH_MS. */
  readonly isOver: boolean;
}

/** Takes the range for one turn, if it is due and free. */
export function takeRange(range: RangeRecord, { worker, nowMs, isOver }: Taker): Taking {
  const claim = claimOf(range, nowMs, isOver);
  switch (claim.kind) {
    case 'early':
    case 'leased':
      return { kind: claim.kind };
    case 'poisonous':
      return { kind: 'poisonous', error: ownError(range) ?? ended(range) };
    case 'taken':
      return { kind: 'taken', range: { ...range, fruitless: claim.fruitless, ...heldBy(worker, nowMs) } };
  }
}

/** The stored fault, unless it is one that is waited out: such a fault is not why the range is given up. */
function ownError({ error }: RangeRecord): JobFault | undefined {
  return error !== undefined && answerTo(error.code) === 'retry' ? error : undefined;
}

function ended(range: RangeRecord): JobFault {
  const reason = `${WITHOUT_PROGRESS_MAX} workers in a row ended while they compared this range`;
  return { code: 'internal.unexpected', reason, range: rangeName(range) };
}

/** What a turn has compared and done so far. */
export interface TurnProgress {
  /** Keys up to this one, inclusive, are compared, and every effect on them is durable. */
  readonly cursor: string;
  /** Where the listing after the cursor continues, if pages without keys were passed there. */
  readonly place?: ListingPlace;
  /** Whether keys after the cursor were written. They are counted. */
  readonly readsFirst?: boolean;
  readonly counts: ReconcileCounts;
  readonly examples: DifferenceExamples;
  /** Deletions were held back: the cursor before the first of them. */
  readonly heldBack?: string;
}

/** The end of a turn, as its worker reports it. */
export interface TurnEnd extends TurnProgress {
  /** Whether the end of the range, or of the listing, was reached. */
  readonly done: boolean;
  /** The fault that ended the turn early; the progress is valid all the same. */
  readonly fault?: Fault;
}

/** The range after a turn: free, and with an advanced cursor. It is due at once, or later after a fault; a range that is done is not due. `splits` is removed, because the parts have their own records by now. */
export function afterTurn(range: RangeRecord, end: TurnEnd, nowMs: number): RangeRecord {
  const rest = omit(asleep(range), 'error', 'splits', 'fruitless', 'waitingSinceMs', 'passed', 'readsFirst');
  const { cursor, done, counts, examples, fault } = end;
  const heldBack = range.heldBack ?? end.heldBack;
  const allExamples = addExamples(range.examples ?? {}, examples, examplesMaxOf(range));
  return {
    ...rest,
    cursor,
    done,
    counts: addCounts(range.counts, range.isCounted === true ? countsOfDeletions(counts) : counts),
    ...(heldBack !== undefined && { heldBack }),
    ...passedAfter(range, end),
    ...(end.readsFirst === true && { readsFirst: true }),
    ...(Object.keys(allExamples).length > 0 && { examples: allExamples }),
    ...patienceAfter(range, end, nowMs),
    ...(fault !== undefined && { error: { code: fault.code, reason: fault.reason, range: rangeName(range) } }),
  };
}

function passedAfter({ passed }: RangeRecord, { cursor, done, place, fault }: TurnEnd): Pick<RangeRecord, 'passed'> {
  if (done) return {};
  const next = passedPages(passed, cursor, { place, isRefused: fault !== undefined && answerTo(fault.code) === 'retry' });
  return next === undefined ? {} : { passed: next };
}

/** The held range while its turn runs, which began with `begun`. If its worker dies, the next one continues from this. */
export function duringTurn(range: RangeRecord, { begun, progress, nowMs }: RunningTurn): RangeRecord {
  const { lease, dueAtMs } = range;
  if (lease === undefined || progress === undefined) return range;
  return { ...afterTurn(begun, { ...progress, done: false }, nowMs), lease, dueAtMs };
}

/** A turn that runs: the range as it was when the turn began, and what it has done since. */
export interface RunningTurn {
  readonly begun: RangeRecord;
  /** Undefined before the first slice. */
  readonly progress: TurnProgress | undefined;
  readonly nowMs: number;
}

/**
 * The range as it is compared again, from the first deletion that was held back. Its keys are counted, except for what becomes of
 * these deletions. The same range if none was held back, or if that has begun already.
 */
export function rewound(range: RangeRecord, nowMs: number): RangeRecord {
  const { heldBack, ...rest } = range;
  if (heldBack === undefined || !range.done) return range;
  const { phantom, held } = range.counts;
  const counts = { ...range.counts, phantom: phantom - held, held: 0 };
  return { ...rest, cursor: heldBack, isCounted: true, counts, done: false, fruitless: 0, dueAtMs: nowMs };
}

/** What the turn means for the next one: progress starts everything over, a fault of the range counts, and one that is waited for does not. */
function patienceAfter(
  { cursor, passed, fruitless: before, waitingSinceMs: sinceMs }: RangeRecord,
  end: TurnEnd,
  nowMs: number,
): Pick<RangeRecord, 'fruitless' | 'waitingSinceMs' | 'dueAtMs'> {
  if (end.done) return { fruitless: 0 };
  const hasProgress = end.cursor !== cursor || hasPassedMore(passed, cursor, end.place);
  const answer = end.fault === undefined ? undefined : answerTo(end.fault.code);
  switch (answer) {
    case undefined:
    case 'fail':
      return { fruitless: hasProgress ? 0 : before, dueAtMs: nowMs };
    case 'retry': {
      const fruitless = hasProgress ? 0 : before + 1;
      return { fruitless, dueAtMs: nowMs + RETRY_MS * Math.max(1, fruitless) };
    }
    case 'wait': {
      const waitingSinceMs = hasProgress ? nowMs : (sinceMs ?? nowMs);
      const patience = hasProgress ? { fruitless: 0 } : { fruitless: before, waitingSinceMs };
      return { ...patience, dueAtMs: nowMs + waitMs(waitingSinceMs, nowMs) };
    }
  }
}

/** Wait after a fault that concerns the range alone: 5 s the first time, then 10 s. */
const RETRY_MS = 5_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** How long work waits after a fault of S3 or the index. It has just failed, and live events need it first. */
export const FAULT_WAIT_MS = 15_000;
/** After an hour without an answer: an outage of hours costs a few hundred requests, and its end is noticed within five minutes. */
const LONG_WAIT_MS = 300_000;

/** How long to wait before the next attempt at something that has been refused since then: 15 s within the first minute, then a minute, after an hour five. */
export function waitMs(sinceMs: number, nowMs: number): number {
  const refusedMs = nowMs - sinceMs;
  if (refusedMs < MINUTE_MS) return FAULT_WAIT_MS;
  return refusedMs < HOUR_MS ? MINUTE_MS : LONG_WAIT_MS;
}

/** Examples of each kind in a range that is one of several: four of them fill a job's. */
const EXAMPLES_MAX_PART = 25;
/** Those of the ranges with higher numbers: a job is read whole each second by those who watch it, and may have two thousand ranges. */
const EXAMPLES_MAX_LATE = 5;
const LATE_FROM = 64;

function examplesMaxOf(range: RangeRecord): number {
  if (isWhole(range)) return EXAMPLES_MAX;
  return range.number < LATE_FROM ? EXAMPLES_MAX_PART : EXAMPLES_MAX_LATE;
}

function isWhole({ from, to }: RangeRecord): boolean {
  return from === '' && to === undefined;
}

/** The range given back before its turn has ended: the lease is removed, and it is due at the given time. */
export function givenBack(range: RangeRecord, dueAtMs: number): RangeRecord {
  return range.lease === undefined ? range : { ...asleep(range), dueAtMs };
}

/**
 * What a fault means for the job. `wait`: the range continues when the fault is over, however long that takes. `retry`: the
 * range is tried again, and three times in a row without progress fail the job. `fail`: the job fails at once.
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

/** Longest part of a key in a range's name; the beginning is enough to recognise a range. */
const NAME_KEY_MAX = 100;

/** A range's name for users: its number and its keys. */
export function rangeName({ number, from, to }: Pick<RangeRecord, 'number' | 'from' | 'to'>): string {
  const end = to === undefined ? 'the end' : JSON.stringify(to.slice(0, NAME_KEY_MAX));
  const start = from === '' ? 'the beginning' : JSON.stringify(from.slice(0, NAME_KEY_MAX));
  return `${number} (from ${start} to ${end})`;
}

/** Where a range is cut, and the number of the range that begins there. */
export interface Cut {
  readonly boundary: string;
  readonly number: number;
}

/** The range up to the first cut; `splits` holds the other parts with their new numbers. `cuts` must be in key order. */
export function splitRange(range: RangeRecord, cuts: readonly Cut[]): RangeRecord {
  const [first] = cuts;
  if (first === undefined) return range;
  const splits = cuts.map(({ number, boundary }, index) => {
    const to = cuts[index + 1]?.boundary ?? range.to;
    return { number, from: boundary, ...(to !== undefined && { to }) };
  });
  return { ...range, to: first.boundary, splits };
}
