/** The store of the product's own records. The conventions of object-index.ts hold. */
import type { StateKind } from '../../domain/state-kind.ts';

/** Opaque: what a compare-and-swap compares. */
export type StateVersion = string;

export interface StateEntry {
  readonly id: string;
  readonly kind: StateKind;
  /** Plain JSON; parse it with the record's schema. */
  readonly record: unknown;
  readonly version: StateVersion;
}

export interface StateStore {
  /** By id, realtime. Throws `index.state-missing` when there is no state at all. */
  get(id: string, signal?: AbortSignal): Promise<StateEntry | undefined>;
  /**
   * Writes iff the stored version is `expected` (null: iff nothing is stored). `conflict` when it is not. Durable, and
   * visible to list(), when it resolves. Ids are at most 512 bytes.
   */
  put(
    entry: { readonly id: string; readonly kind: StateKind; readonly record: unknown },
    expected: StateVersion | null,
    signal?: AbortSignal,
  ): Promise<StateEntry | 'conflict'>;
  /** Deletes iff the stored version is `expected`; an absent id counts as done. */
  remove(id: string, expected: StateVersion, signal?: AbortSignal): Promise<'removed' | 'conflict'>;
  /** Entries of one kind in id order (UTF-8 bytes), after the given id. At most `limit` (1 to 1,000). */
  list(kind: StateKind, page: { readonly after?: string; readonly limit: number }, signal?: AbortSignal): Promise<readonly StateEntry[]>;
  /** How many entries of the kind there are. */
  count(kind: StateKind, signal?: AbortSignal): Promise<number>;
}
