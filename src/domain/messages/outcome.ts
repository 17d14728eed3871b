import type { Fault } from '../fault.ts';

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
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'unknown-event' | 'no-tags' }
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
