/** Settlement: what happens to a message once every one of its records has an outcome. */
import type { Fault } from '../fault.ts';
import { scopeOf } from '../fault.ts';
import type { Outcome } from './outcome.ts';

export type Settlement =
  | { readonly kind: 'delete' }
  /** Hidden for `delayS` (0: given back at once), then received again. */
  | { readonly kind: 'defer'; readonly delayS: number; readonly fault: Fault }
  /** A provisional answer is settled after `delayS`. */
  | { readonly kind: 'wait'; readonly delayS: number }
  /** One dead letter that names the records (their positions), then deleted. */
  | { readonly kind: 'dead-letter'; readonly fault: Fault; readonly records: readonly number[]; readonly buckets: readonly string[] };

export interface Receives {
  /** ApproximateReceiveCount of this receive: 1 at the first. */
  readonly receiveCount: number;
  /** The queue's maxReceiveCount. */
  readonly maxReceiveCount: number;
}

const DEFER_MIN_S = 30;
/** 15 minutes: an object denied for a day is still tried some ninety times, and a fix is noticed within a coffee break. */
const DEFER_MAX_S = 900;

/** How long a message is deferred: 30 s, doubling with each receive, at most 15 min. */
export function deferDelayS(receiveCount: number): number {
  return Math.min(DEFER_MAX_S, DEFER_MIN_S * 2 ** Math.min(10, Math.max(0, receiveCount - 1)));
}

/** Whether SQS would move the message away at its next receive. */
export function isLastReceive(receives: Receives): boolean {
  return receives.receiveCount >= receives.maxReceiveCount;
}

/**
 * Any deferred → defer for the longest of their delays; else any provisional → wait until the latest is due; else any
 * rejected → one dead letter; else delete. At the last permitted receive nothing is deferred: what is provisional is
 * waited for first, since nobody would settle it after, then what still fails goes into one dead letter with the last fault.
 */
export function settlementOf(outcomes: readonly Outcome[], receives: Receives): Settlement {
  const deferred = outcomes.filter((outcome) => outcome.kind === 'deferred');
  const fault = deferred.at(-1)?.fault;
  if (fault !== undefined && !isLastReceive(receives)) {
    return { kind: 'defer', delayS: Math.max(...deferred.map((each) => delayOf(each.fault, receives))), fault };
  }
  const dueInS = outcomes.flatMap((outcome) => (outcome.kind === 'provisional' ? [outcome.dueInS] : []));
  if (dueInS.length > 0) return { kind: 'wait', delayS: Math.max(...dueInS) };
  const failure = fault ?? outcomes.find((outcome) => outcome.kind === 'rejected')?.fault;
  return failure === undefined ? { kind: 'delete' } : deadLetter(outcomes, failure);
}

/** A shared fault is nobody's own: its message is given back at once, and received when it is over. */
function delayOf(fault: Fault, receives: Receives): number {
  return scopeOf(fault.code) === 'shared' ? 0 : deferDelayS(receives.receiveCount);
}

function deadLetter(outcomes: readonly Outcome[], fault: Fault): Settlement {
  const failed = outcomes.flatMap((outcome, index) =>
    outcome.kind === 'rejected' || outcome.kind === 'deferred' ? [{ index, bucket: outcome.bucket }] : [],
  );
  const buckets = new Set(failed.flatMap(({ bucket }) => (bucket === undefined ? [] : [bucket])));
  return { kind: 'dead-letter', fault, records: failed.map(({ index }) => index), buckets: [...buckets] };
}
