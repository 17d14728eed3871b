/**
 * The transitions of a range. Each is one compare-and-swap of its record with the version that the worker knows: a worker
 * that loses a swap has lost the range.
 *
 *   free ──take──► leased ──(renewed)──► stored: free again with an advanced cursor │ done
 *     ▲               │
 *     └── lease over ─┘ a worker died: the range is taken again, with one more fruitless lease
 *
 * Three fruitless leases in a row fail the job. A lease is fruitless when the cursor did not advance because the worker
 * died or because of a fault of the range itself.
 */
import { scopeOf, type Fault, type FaultCode } from '../fault.ts';
import { addCounts, addExamples, EXAMPLES_MAX, type DifferenceExamples, type ReconcileCounts } from './counts.ts';
import type { JobFault, RangeRecord } from './job.ts';

export const FRUITLESS_MAX = 3;

/** The result of trying to take a range. */
export type Taking =
  | { readonly kind: 'taken'; readonly range: RangeRecord }
  /** Another worker has the range. */
  | { readonly kind: 'leased'; readonly leftMs: number }
  | { readonly kind: 'done' }
  /** The task is of an earlier turn. The current turn has a different task. */
  | { readonly kind: 'late' }
  /** Too many leases in a row were fruitless; the job must fail with this error. */
  | { readonly kind: 'poisonous'; readonly error: JobFault };

export interface Taker {
  readonly worker: string;
  readonly nowMs: number;
  readonly leaseMs: number;
  /** The turn that the task names; absent: any turn. */
  readonly turn?: number | undefined;
}

/** Takes the range for one turn, if it is free. */
export function takeRange(range: RangeRecord, { worker, nowMs, leaseMs, turn }: Taker): Taking {
  if (range.done) return { kind: 'done' };
  if (turn !== undefined && turn < range.turn) return { kind: 'late' };
  const { lease } = range;
  if (lease !== undefined && lease.untilMs > nowMs) return { kind: 'leased', leftMs: lease.untilMs - nowMs };
  const fruitless = range.fruitless + (lease === undefined ? 0 : 1);
  if (fruitless >= FRUITLESS_MAX) return { kind: 'poisonous', error: ownError(range) ?? ended(range) };
  return { kind: 'taken', range: { ...range, fruitless, lease: { worker, untilMs: nowMs + leaseMs } } };
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
  readonly done: boolean;
  readonly counts: ReconcileCounts;
  readonly examples: DifferenceExamples;
  readonly fault?: Fault;
}

/** The range after a turn: free, and with an advanced cursor. `splits` is removed, because the parts have their own records by now. */
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

/** Limit for a range that is one of several: four of them fill a job's examples, and a sum over hundreds of ranges must stay cheap. */
const EXAMPLES_MAX_PART = 25;

function isWhole({ from, to }: RangeRecord): boolean {
  return from === '' && to === undefined;
}

/** The range given back without a turn: the lease is removed, the rest is unchanged. */
export function givenBack(range: RangeRecord): RangeRecord {
  if (range.lease === undefined) return range;
  const { lease: _, ...rest } = range;
  return rest;
}

/**
 * What a fault means for the job. `wait`: the range continues when the fault is over, however long that takes. `retry`: the
 * range is tried again, and three times in a row without progress fail the job. `fail`: the job fails at once.
 */
export type FaultAnswer = 'wait' | 'retry' | 'fail';

/** Faults whose answer does not follow from their scope. */
const answers: Partial<Record<FaultCode, FaultAnswer>> = {
  // the bucket is missing or access is denied: no listing can be trusted, so nothing may be deleted
  'bucket.missing': 'fail',
  'object.denied': 'fail',
  // a shard is being moved, an operator set a block or a role, or the index is busy: all end without a change to the job
  'bucket.index-unavailable': 'wait',
  'bucket.index-blocked': 'wait',
  'bucket.index-denied': 'wait',
  'bucket.index-overloaded': 'wait',
};

/** The answer to a fault that ended a turn or the start of a job. */
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

/** Whether a task counts as lost. The time doubles with each resend, so that a long queue is not filled with duplicates of waiting tasks. */
export function isOverdue({ taskAtMs, resends }: { readonly taskAtMs: number; readonly resends: number }, nowMs: number): boolean {
  return nowMs - taskAtMs > Math.min(RESEND_AFTER_MAX_MS, RESEND_AFTER_MS * 2 ** Math.min(resends, 10));
}
