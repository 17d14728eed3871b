/**
 * The transitions of a range. Each is one compare-and-swap of its record with the version that the worker knows: a worker
 * that loses a swap has lost the range.
 *
 *   free ──take──► leased ──(renewed)──► stored: free again with an advanced cursor │ done
 *     ▲               │
 *     └── lease over ─┘ a worker died: the range is taken again, with one more fruitless lease
 *
 * Three fruitless leases in a row fail the job. A lease is fruitless when the cursor did not advance, and no more pages without
 * keys were passed after it than before, because the worker died or because of a fault of the range itself.
 *
 * A lease states its end by the clock of its worker. A reader whose own clock agrees believes that. A lease that no right clock
 * can have stored is watched instead: if it has not changed for longer than a lease lasts, it is over.
 */
import { backgroundOf, type Fault, type FaultCode } from '../fault.ts';
import { addCounts, addExamples, noCounts, EXAMPLES_MAX, type DifferenceExamples, type ReconcileCounts } from './counts.ts';
import type { JobFault, JobRecord, Lease, RangeRecord } from './job.ts';
import { hasPassedMore, passedPages, type ListingPlace } from './passed-pages.ts';

export const FRUITLESS_MAX = 3;

/** The result of trying to take a range. */
export type Taking =
  | { readonly kind: 'taken'; readonly range: RangeRecord }
  /** Another worker has the range. `watched`: the name of a lease that is over if it has not changed after `leftMs`. */
  | { readonly kind: 'leased'; readonly leftMs: number; readonly watched?: string }
  | { readonly kind: 'done' }
  /** The task is of an earlier turn. The current turn has a different task. */
  | { readonly kind: 'late' }
  /** Too many leases in a row were fruitless; the job must fail with this error. */
  | { readonly kind: 'poisonous'; readonly error: JobFault };

export interface Taker {
  readonly worker: string;
  readonly nowMs: number;
  readonly leaseMs: number;
  /** The name of the lease that the range had WATCH_MS ago or earlier. */
  readonly watched?: string | undefined;
  /** The turn that the task names; absent: any turn. */
  readonly turn?: number | undefined;
}

/** How long a range stays blocked after its worker was killed. */
export const LEASE_MS = 60_000;
/** A worker renews its lease in time, by its own monotonic clock, or gives the range up. What it does last may take a moment. */
const LEASE_SLACK_MS = 15_000;
/** A lease that has not changed for this long is over. */
export const WATCH_MS = LEASE_MS + LEASE_SLACK_MS;
/** A lease that ended longer ago, by the reader's clock, may be that of a living worker whose clock is slow. Lost tasks come back sooner. */
const LEASE_OVER_MAX_MS = 600_000;

/** How a lease looks to a reader: over, or how long to wait for it. */
export type LeaseLook =
  | { readonly kind: 'over' }
  /** `isWatched`: the wait ends the lease if it has not changed by then. */
  | { readonly kind: 'leased'; readonly leftMs: number; readonly isWatched: boolean };

/** The name of a lease, which changes with each renewal. */
export function leaseName({ worker, untilMs }: Lease): string {
  return `${worker} ${untilMs}`;
}

/** Looks at a lease. `isUnchanged`: it has not changed for WATCH_MS. */
export function lookAtLease({ untilMs }: Lease, nowMs: number, isUnchanged: boolean): LeaseLook {
  if (isUnchanged) return { kind: 'over' };
  const leftMs = untilMs - nowMs;
  if (leftMs > WATCH_MS || leftMs < -LEASE_OVER_MAX_MS) return { kind: 'leased', leftMs: WATCH_MS, isWatched: true };
  return leftMs > 0 ? { kind: 'leased', leftMs, isWatched: false } : { kind: 'over' };
}

/** Takes the range for one turn, if it is free. */
export function takeRange(range: RangeRecord, { worker, nowMs, leaseMs, watched, turn }: Taker): Taking {
  if (range.done) return { kind: 'done' };
  if (turn !== undefined && turn < range.turn) return { kind: 'late' };
  const { lease } = range;
  if (lease !== undefined) {
    const name = leaseName(lease);
    const look = lookAtLease(lease, nowMs, name === watched);
    if (look.kind === 'leased') return { kind: 'leased', leftMs: look.leftMs, ...(look.isWatched && { watched: name }) };
  }
  const fruitless = range.fruitless + (lease === undefined ? 0 : 1);
  if (fruitless >= FRUITLESS_MAX) return { kind: 'poisonous', error: ownError(range) ?? ended(range) };
  const { turnCounts: _, ...rest } = range;
  return { kind: 'taken', range: { ...rest, fruitless, lease: { worker, untilMs: nowMs + leaseMs } } };
}

/** The stored fault, unless it is one that is waited out: such a fault is not why the range is given up. */
function ownError({ error }: RangeRecord): JobFault | undefined {
  return error !== undefined && answerTo(error.code) === 'retry' ? error : undefined;
}

function ended(range: RangeRecord): JobFault {
  const reason = `${FRUITLESS_MAX} workers in a row ended while they compared this range`;
  return { code: 'internal.unexpected', reason, range: rangeName(range) };
}

/** The end of a turn, as its worker reports it. */
export interface TurnEnd {
  readonly cursor: string;
  /** Where the listing after the cursor continues, if pages without keys were passed there. */
  readonly place?: ListingPlace;
  readonly done: boolean;
  /** Whether keys after the cursor were written and counted. */
  readonly readsFirst?: boolean;
  readonly counts: ReconcileCounts;
  /** What counts of the turn if its keys are compared again: what was written, and the requests. */
  readonly repeated?: ReconcileCounts;
  /** Where the deletions begin that the brake held back in this turn, and what counts of the turn if the range is compared again from there. */
  readonly heldBack?: { readonly cursor: string; readonly counts: ReconcileCounts };
  readonly examples: DifferenceExamples;
  readonly fault?: Fault;
}

/** The range after a turn: free, and with an advanced cursor. `splits` is removed, because the parts have their own records by now. */
export function afterTurn(range: RangeRecord, end: TurnEnd, nowMs: number): RangeRecord {
  const { lease: _, error: __, splits: ___, fruitless: ____, waitingSinceMs: _____, turnCounts: ______, ...kept } = range;
  const { passed: _______, readsFirst: ________, ...rest } = kept;
  const { cursor, done, counts, examples, fault } = end;
  const allExamples = addExamples(range.examples ?? {}, examples, examplesMaxOf(range));
  return {
    ...rest,
    cursor,
    done,
    counts: addCounts(range.counts, counts),
    ...heldBackAfter(range, end),
    ...passedAfter(range, end),
    ...(end.readsFirst === true && { readsFirst: true }),
    ...(Object.keys(allExamples).length > 0 && { examples: allExamples }),
    ...patienceAfter(range, end, nowMs),
    ...(fault !== undefined && { error: { code: fault.code, reason: fault.reason, range: rangeName(range) } }),
    turn: range.turn + 1,
    resends: 0,
  };
}

function passedAfter({ passed }: RangeRecord, { cursor, done, place, fault }: TurnEnd): Pick<RangeRecord, 'passed'> {
  if (done) return {};
  const next = passedPages(passed, cursor, { place, isRefused: fault !== undefined && answerTo(fault.code) === 'retry' });
  return next === undefined ? {} : { passed: next };
}

function heldBackAfter({ counts, heldBack }: RangeRecord, end: TurnEnd): Pick<RangeRecord, 'heldBack'> {
  if (heldBack !== undefined) return { heldBack: { ...heldBack, counts: addCounts(heldBack.counts, end.repeated ?? noCounts) } };
  if (end.heldBack === undefined) return {};
  return { heldBack: { cursor: end.heldBack.cursor, counts: addCounts(counts, end.heldBack.counts) } };
}

/** The range as it is compared again, from the first deletion that was held back. The same range if none was, or if that has begun already. */
export function rewound(range: RangeRecord, nowMs: number): RangeRecord {
  const { heldBack, ...rest } = range;
  if (heldBack === undefined || !range.done) return range;
  return { ...rest, ...heldBack, done: false, turn: range.turn + 1, fruitless: 0, taskAtMs: nowMs, resends: 0 };
}

/** What the turn means for the next one: progress starts everything over, a fault of the range counts, and one that is waited for does not. */
function patienceAfter(
  { cursor, passed, fruitless, waitingSinceMs: sinceMs }: RangeRecord,
  end: TurnEnd,
  nowMs: number,
): Pick<RangeRecord, 'fruitless' | 'waitingSinceMs' | 'taskAtMs'> {
  if (end.done || end.cursor !== cursor || hasPassedMore(passed, cursor, end.place)) return { fruitless: 0, taskAtMs: nowMs };
  const answer = end.fault === undefined ? undefined : answerTo(end.fault.code);
  if (answer !== 'wait') return { fruitless: fruitless + (answer === 'retry' ? 1 : 0), taskAtMs: nowMs };
  const waitingSinceMs = sinceMs ?? nowMs;
  // the next task is not lost while it is delayed
  return { fruitless, waitingSinceMs, taskAtMs: nowMs + waitMs(waitingSinceMs, nowMs) };
}

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

/** The range given back without the result of a turn: the lease is removed, and what the turn has written counts. */
export function givenBack(range: RangeRecord, written?: ReconcileCounts): RangeRecord {
  if (range.lease === undefined) return range;
  const { lease: _, turnCounts: __, ...rest } = range;
  if (written === undefined) return rest;
  const { heldBack } = rest;
  return {
    ...rest,
    counts: addCounts(rest.counts, written),
    ...(written.written > 0 && { readsFirst: true }),
    ...(heldBack !== undefined && { heldBack: { ...heldBack, counts: addCounts(heldBack.counts, written) } }),
  };
}

/**
 * What a fault means for the job. `wait`: the range continues when the fault is over, however long that takes. `retry`: the
 * range is tried again, and three times in a row without progress fail the job. `fail`: the job fails at once.
 */
export type FaultAnswer = 'wait' | 'retry' | 'fail';

/** The answer to a fault that ended a turn or the start of a job. */
export function answerTo(code: FaultCode): FaultAnswer {
  switch (backgroundOf(code)) {
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

/** Longer than tasks usually wait in the queue: a task that still waits there is not lost. */
const RESEND_AFTER_MS = 120_000;
/** A lost task is sent again within this time, however long the queue is. */
const RESEND_AFTER_MAX_MS = 3_600_000;

/**
 * Whether a task counts as lost. The time doubles with each resend, so that a long queue is not filled with duplicates of waiting
 * tasks. A time further ahead than any task waits was stored by a clock that is fast, and shows nothing.
 */
export function isOverdue({ taskAtMs, resends }: { readonly taskAtMs: number; readonly resends: number }, nowMs: number): boolean {
  const sinceMs = nowMs - taskAtMs;
  return sinceMs > Math.min(RESEND_AFTER_MAX_MS, RESEND_AFTER_MS * 2 ** Math.min(resends, 10)) || sinceMs < -RESEND_AFTER_MAX_MS;
}
