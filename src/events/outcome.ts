import type { Fault } from '../base/fault.ts';
import { POSITIONS_MAX } from './dead-letter.ts';

/** What a record left to a gap reports: a delete, a change of tags, or anything else. It decides how the gap is repaired. */
export type LostChange = 'delete' | 'tags' | 'other';

/** How an attempt at one record ended. `deferred` and `provisional` hide its message, which comes back; the others are final. A message is deleted only when the outcomes of all its records are final. */
export type Outcome =
  /** The store acknowledged the write. */
  | { readonly kind: 'written' }
  /** The index already holds something newer or the same: the store refused the write. */
  | { readonly kind: 'superseded' }
  /** Written (or superseded) at the event's own time. The document must be settled in `dueInS` seconds. */
  | { readonly kind: 'provisional'; readonly dueInS: number }
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'other-bucket' | 'no-tags' }
  /** A stored gap stands for the record. */
  | { readonly kind: 'gap' }
  /** The bucket is not connected: the record was counted, not indexed. */
  | { readonly kind: 'unconnected' }
  /** The record must be tried again in `delayS` seconds. `bucket` and `key` are for the gap if it never succeeds; only a record that failed alone has a key. */
  | {
      readonly kind: 'deferred';
      readonly fault: Fault;
      readonly delayS: number;
      readonly bucket?: string;
      readonly key?: string;
      readonly change?: LostChange;
    }
  /** The record can never succeed. `bucket` is present when it is known. */
  | { readonly kind: 'rejected'; readonly fault: Fault; readonly bucket?: string; readonly key?: string; readonly change?: LostChange };

export const outcomeKinds = [
  'written',
  'superseded',
  'provisional',
  'ignored',
  'gap',
  'unconnected',
  'deferred',
  'rejected',
] as const satisfies readonly Outcome['kind'][];

export type Settlement =
  | { readonly kind: 'delete' }
  /**
   * The message is hidden for `delayS` seconds (0: given back at once), then received again. `buckets`: those whose indices lack its
   * changes until then, except for a record that failed alone for the first time: one reset connection in a thousand means nothing.
   */
  | { readonly kind: 'defer'; readonly delayS: number; readonly fault: Fault; readonly buckets: readonly string[] }
  /** A provisional document must be settled after `delayS` seconds. */
  | { readonly kind: 'wait'; readonly delayS: number }
  /** A dead letter that names the failed records by position (the first 100) is sent; then the message is deleted. `unread`: its body was not read, so its losses are unknown. */
  | {
      readonly kind: 'dead-letter';
      readonly fault: Fault;
      readonly records: readonly number[];
      readonly losses: readonly Loss[] | 'unread';
    };

/** What the index may lack after a dead letter: changes to a bucket, or to one object that failed alone. */
export interface Loss {
  readonly bucket: string;
  readonly key?: string;
  readonly change?: LostChange;
}

/** A message received this often will not succeed at another attempt: with the delays below, that takes almost four hours. */
const LAST_RECEIVE = 20;
/** A lower limit leaves no receive to spare: SQS then dead-letters messages that crash their process. */
const LIMIT_MIN = 5;

/**
 * The receive at which Tally gives a message up, so that SQS doesn't move it without a reason at its queue's limit (maxReceiveCount).
 * The receive to spare is for the letter of a message that comes back: its process ended, perhaps because of it, or its letter could not
 * be sent.
 */
export function lastReceiveOf(limit = Infinity): number {
  return Math.min(LAST_RECEIVE, limit < LIMIT_MIN ? limit : limit - 1);
}

/** The settlement of a message received after its last receive: its body is not read again. */
export const UNREAD: Settlement = {
  kind: 'dead-letter',
  fault: { code: 'message.received-too-often', reason: 'it was received again and again, and never settled' },
  records: [],
  losses: 'unread',
};

const DEFER_MIN_S = 30;
/** 15 minutes, so that a corrected permission takes effect within minutes. */
const DEFER_MAX_S = 900;

/** How long a message is deferred: 30 s, doubled with each receive, at most 15 min. */
export function deferDelayS(receiveCount: number): number {
  return Math.min(DEFER_MAX_S, DEFER_MIN_S * 2 ** Math.min(10, Math.max(0, receiveCount - 1)));
}

interface Receive {
  /** ApproximateReceiveCount of this receive: 1 at the first. */
  readonly receiveCount: number;
  readonly isLastReceive: boolean;
}

/**
 * Decides the settlement. If a record is deferred, the message is deferred for the longest delay; otherwise, if one is
 * provisional, the message waits until the latest is due; otherwise, if one is rejected, one dead letter is sent; otherwise the
 * message is deleted. At the last receive nothing is deferred: provisional records are waited for first, because nothing
 * would settle them later; then one dead letter takes the records that still fail, with the last fault.
 */
export function settlementOf(outcomes: readonly Outcome[], { receiveCount, isLastReceive }: Receive): Settlement {
  const deferred = outcomes.filter((outcome) => outcome.kind === 'deferred');
  const fault = deferred.at(-1)?.fault;
  if (fault !== undefined && !isLastReceive) {
    const lacking = deferred.filter(({ key }) => key === undefined || receiveCount > 1);
    const buckets = [...new Set(lacking.flatMap(({ bucket }) => bucket ?? []))];
    return { kind: 'defer', delayS: Math.max(...deferred.map(({ delayS }) => delayS)), fault, buckets };
  }
  const dueInS = outcomes.flatMap((outcome) => (outcome.kind === 'provisional' ? [outcome.dueInS] : []));
  if (dueInS.length > 0) return { kind: 'wait', delayS: Math.max(...dueInS) };
  const failure = fault ?? outcomes.find((outcome) => outcome.kind === 'rejected')?.fault;
  return failure === undefined ? { kind: 'delete' } : deadLetter(outcomes, failure);
}

function deadLetter(outcomes: readonly Outcome[], fault: Fault): Settlement {
  const failed = outcomes.flatMap((outcome, index) =>
    outcome.kind === 'rejected' || outcome.kind === 'deferred' ? [{ index, outcome }] : [],
  );
  const losses = failed.flatMap(({ outcome: { bucket, key, change } }) =>
    bucket === undefined ? [] : [{ bucket, ...(key !== undefined && { key }), ...(change !== undefined && { change }) }],
  );
  const unique = new Map(losses.map((loss) => [JSON.stringify([loss.bucket, loss.key, loss.change]), loss]));
  return { kind: 'dead-letter', fault, records: failed.slice(0, POSITIONS_MAX).map(({ index }) => index), losses: [...unique.values()] };
}
