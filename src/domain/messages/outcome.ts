import type { Fault } from '../fault.ts';

/** How one record ended. Every record ends in exactly one of these; no message is deleted without one for each of its records. */
export type Outcome =
  /** The store acknowledged the write. */
  | { readonly kind: 'written' }
  /** The store already had something newer, or the same. */
  | { readonly kind: 'stale' }
  /** Written (or refused) at the event's own time; to be settled `dueInS` seconds from now. */
  | { readonly kind: 'provisional'; readonly dueInS: number }
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'unknown-event' | 'no-tags' }
  /** A gap was stored. */
  | { readonly kind: 'gap' }
  /** The bucket is not connected: counted, never indexed. */
  | { readonly kind: 'unconnected' }
  /** To be tried again later. `bucket` for the loss gap if it never succeeds. */
  | { readonly kind: 'deferred'; readonly fault: Fault; readonly bucket?: string }
  /** Can never succeed. `bucket` when it is known. */
  | { readonly kind: 'rejected'; readonly fault: Fault; readonly bucket?: string };

export const outcomeKinds = [
  'written',
  'stale',
  'provisional',
  'ignored',
  'gap',
  'unconnected',
  'deferred',
  'rejected',
] as const satisfies readonly Outcome['kind'][];

export type OutcomeKind = (typeof outcomeKinds)[number];
