import type { Fault } from '../base/fault.ts';
import { POSITIONS_MAX } from './dead-letter.ts';

/** What a record reports that is left to a gap: a delete, a change of tags, or anything else. The gap is repaired accordingly. */
export type LostChange = 'delete' | 'tags' | 'other';

/** How one record ended. Every record ends in exactly one outcome, and a message is deleted only when all of its records have one. */
export type Outcome =
  /** The store acknowledged the write. */
  | { readonly kind: 'written' }
  /** The store refused the write, because it already held something newer or the same. */
  | { readonly kind: 'superseded' }
  /** Written (or superseded) at the event's own time. The record must be settled in `dueInS` seconds. */
  | { readonly kind: 'provisional'; readonly dueInS: number }
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'no-tags' }
  /** The record became a gap, which was stored. */
  | { readonly kind: 'gap' }
  /** The bucket is not connected: the record was counted, not indexed. */
  | { readonly kind: 'unconnected' }
  /** The record must be tried again in `delayS` seconds. `bucket` and `key` are for the loss gap if it never succeeds; a record that failed alone has a key. */
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
   * The message is hidden for `delayS` seconds (0: given back at once), then received again. `buckets`: whose index lacks it until
   * then. A record that failed alone for the first time is not counted: one reset connection of a thousand says nothing.
   */
  | { readonly kind: 'defer'; readonly delayS: number; readonly fault: Fault; readonly buckets: readonly string[] }
  /** A provisional document must be settled after `delayS` seconds. */
  | { readonly kind: 'wait'; readonly delayS: number }
  /** One dead letter is sent that names the failed records by position (the first 100); then the message is deleted. `unread`: so are its losses. */
  | {
      readonly kind: 'dead-letter';
      readonly fault: Fault;
      readonly records: readonly number[];
      readonly losses: readonly Loss[] | 'unread';
    };

/** What the failed records of one bucket leave unknown: the bucket, or one object of it that failed alone. */
export interface Loss {
  readonly bucket: string;
  readonly key?: string;
  readonly change?: LostChange;
}

/** A message that comes again this often will not succeed by another attempt: with the delays below that takes almost four hours. */
const LAST_RECEIVE = 20;
/** A lower limit leaves no receive to spare: a message that ends its process is SQS's to move then. */
const LIMIT_MIN = 5;

/**
 * The receive at which Tally gives a message up, whatever its queue's limit (maxReceiveCount) is: before SQS would move it without a reason.
 * A message that is received yet again has ended its process each time, and needs one more receive to be given up.
 */
export function lastReceiveOf(limit = Infinity): number {
  return Math.min(LAST_RECEIVE, limit < LIMIT_MIN ? limit : limit - 1);
}

/** What becomes of a message that was received after its last receive: its body is not read again. */
export const UNREAD: Settlement = {
  kind: 'dead-letter',
  fault: { code: 'message.received-too-often', reason: 'it was received again and again, and never settled' },
  records: [],
  losses: 'unread',
};

const DEFER_MIN_S = 30;
/** 15 minutes: an object that is denied for a day is still tried about ninety times, and a corrected permission takes effect within minutes. */
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
 * Decides the settlement. If a record is deferred, the message is deferred for the longest delay; else if one is
 * provisional, the message waits until the latest is due; else if one is rejected, one dead letter is sent; else the message
 * is deleted. At the last receive nothing is deferred: provisional records are waited for first, because nothing
 * would settle them later; then the records that still fail go into one dead letter with the last fault.
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
