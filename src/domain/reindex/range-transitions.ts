/**
 * The steps of a range. Each is one compare-and-swap of its record, whose holder knows its version: whoever loses a swap
 * has lost the range.
 *
 *   free ──take──► leased ──(renewed)──► stored: free again, its cursor further │ done
 *     ▲               │
 *     └── lease over ─┘ a worker died: taken again, one more fruitless lease
 *
 * Three fruitless leases in a row (a worker died, or a fault of the range itself, and the cursor where it was) fail the job.
 */
import { scopeOf, type Fault, type FaultCode } from '../fault.ts';
import { addCounts, addExamples, EXAMPLES_MAX, type DifferenceExamples, type ReconcileCounts } from './counts.ts';
import type { JobFault, RangeRecord } from './job.ts';

export const FRUITLESS_MAX = 3;

/** What a worker finds that wants a range. */
export type Taking =
  | { readonly kind: 'taken'; readonly range: RangeRecord }
  /** Somebody has it. */
  | { readonly kind: 'leased'; readonly leftMs: number }
  | { readonly kind: 'done' }
  /** The task is of an earlier turn, whose successor has a task of its own. */
  | { readonly kind: 'stale' }
  /** Worker after worker ended while it had this range. */
  | { readonly kind: 'poisonous'; readonly error: JobFault };

export interface Taker {
  readonly worker: string;
  readonly nowMs: number;
  readonly leaseMs: number;
  /** The turn that the task names; absent: whichever is next. */
  readonly turn?: number | undefined;
}

/** Takes the range for one turn, if it is to be had. */
export function takeRange(range: RangeRecord, { worker, nowMs, leaseMs, turn }: Taker): Taking {
  if (range.done) return { kind: 'done' };
  if (turn !== undefined && turn < range.turn) return { kind: 'stale' };
  const { lease } = range;
  if (lease !== undefined && lease.untilMs > nowMs) return { kind: 'leased', leftMs: lease.untilMs - nowMs };
  const fruitless = range.fruitless + (lease === undefined ? 0 : 1);
  if (fruitless >= FRUITLESS_MAX) return { kind: 'poisonous', error: ownError(range) ?? ended(range) };
  return { kind: 'taken', range: { ...range, fruitless, lease: { worker, untilMs: nowMs + leaseMs } } };
}

/** What was waited out is not why it is given up. */
function ownError({ error }: RangeRecord): JobFault | undefined {
  return error !== undefined && answerTo(error.code) === 'retry' ? error : undefined;
}

function ended(range: RangeRecord): JobFault {
  const reason = `${FRUITLESS_MAX} workers in a row ended while they compared it`;
  return { code: 'internal.unexpected', reason, range: rangeName(range) };
}

/** How a turn ended, as its worker tells. */
export interface TurnEnd {
  readonly cursor: string;
  readonly done: boolean;
  readonly counts: ReconcileCounts;
  readonly examples: DifferenceExamples;
  readonly fault?: Fault;
}

/** The range after a turn: further, and free. What was split off before the turn has records of its own by now. */
export function afterTurn(range: RangeRecord, { cursor, done, counts, examples, fault }: TurnEnd, nowMs: number): RangeRecord {
  const { lease: _, error: __, splits: ___, ...rest } = range;
  const hasProgress = done || cursor !== range.cursor;
  const allExamples = addExamples(range.examples ?? {}, examples, isWhole(range) ? EXAMPLES_MAX : EXAMPLES_MAX_PART);
  return {
    ...rest,
    cursor,
    done,
    counts: addCounts(range.counts, counts),
    ...(Object.keys(allExamples).length > 0 && { examples: allExamples }),
    fruitless: hasProgress ? 0 : range.fruitless + (fault !== undefined && answerTo(fault.code) === 'retry' ? 1 : 0),
    ...(fault !== undefined && { error: { code: fault.code, reason: fault.reason, range: rangeName(range) } }),
    turn: range.turn + 1,
    taskAtMs: nowMs,
    resends: 0,
  };
}

/** Of one range among many: four of them fill what a job shows, and hundreds must not weigh on who sums them up. */
const EXAMPLES_MAX_PART = 25;

function isWhole({ from, to }: RangeRecord): boolean {
  return from === '' && to === undefined;
}

/** The range given back without a turn, if it is not free already: nothing was learned of it. */
export function givenBack(range: RangeRecord): RangeRecord {
  if (range.lease === undefined) return range;
  const { lease: _, ...rest } = range;
  return rest;
}

/**
 * What a fault means for the job. `wait`: nobody's fault, the range goes on when it is over, however long that takes;
 * `retry`: thrice in a row without progress it fails the job; `fail`: it cannot get better.
 */
export type FaultAnswer = 'wait' | 'retry' | 'fail';

/** Those that the scope does not decide. */
const answers: Partial<Record<FaultCode, FaultAnswer>> = {
  // gone or closed to us: whatever the listing would say now, nothing may be deleted
  'bucket.missing': 'fail',
  'object.denied': 'fail',
  // a shard that moves, a block that an operator set
  'bucket.index-unavailable': 'wait',
  'bucket.index-blocked': 'wait',
};

/** What to do about a fault that ended a turn or the start of a job. */
export function answerTo(code: FaultCode): FaultAnswer {
  const answer = answers[code];
  if (answer !== undefined) return answer;
  switch (scopeOf(code)) {
    case 'shared':
      return 'wait';
    case 'bucket':
    case 'own':
      return 'retry';
    case 'never':
      return 'fail';
  }
}

/** Longest part of a key in a range's name: people tell ranges by how they begin. */
const NAME_KEY_MAX = 100;

/** A range, for people: its number and its keys. */
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

/** The range up to the first cut, and what is left of it, to be stored under numbers of their own. `cuts` in key order. */
export function splitRange(range: RangeRecord, cuts: readonly Cut[]): RangeRecord {
  const [first] = cuts;
  if (first === undefined) return range;
  const splits = cuts.map(({ number, boundary }, index) => {
    const to = cuts[index + 1]?.boundary ?? range.to;
    return { number, from: boundary, ...(to !== undefined && { to }) };
  });
  return { ...range, to: first.boundary, splits };
}

/** A minute between a task's death and its like: a queue may be long, and a task that waits is no lost one. */
const RESEND_AFTER_MS = 120_000;
/** However long the queue is, a lost task is sent again within this. */
const RESEND_AFTER_MAX_MS = 3_600_000;

/** Whether a task that was sent then, and so often again, may be taken for lost. Twice as long each time: a queue in which tasks wait long must not be filled with their like. */
export function isOverdue({ taskAtMs, resends }: { readonly taskAtMs: number; readonly resends: number }, nowMs: number): boolean {
  return nowMs - taskAtMs > Math.min(RESEND_AFTER_MAX_MS, RESEND_AFTER_MS * 2 ** Math.min(resends, 10));
}
