/** The store of Tally's own records (buckets, gaps, jobs, schedules). The conventions of object-index.ts hold. */
import type { StateKind } from '../records/state-kind.ts';

/** What a compare-and-swap compares. It is opaque. */
export type StateVersion = string;

/** When list() shows a write. */
export type Listed = 'now' | 'soon';

export interface StateEntry {
  readonly id: string;
  readonly kind: StateKind;
  /** Plain JSON; parse it with the record's schema. */
  readonly record: unknown;
  readonly version: StateVersion;
}

export interface StateStore {
  /** Reads the entry with this id in realtime. Throws `index.state-missing` if the state index does not exist. */
  get(id: string, signal?: AbortSignal): Promise<StateEntry | undefined>;
  /** Reads the version alone in realtime, for a record that is large and rarely changes. Throws as get() does. */
  version(id: string, signal?: AbortSignal): Promise<StateVersion | undefined>;
  /**
   * Writes the entry if the stored version is `expected` (null: if nothing is stored), else answers `conflict`. When it
   * resolves, the entry is durable and visible to list(); with `listed: 'soon'` it is durable, and visible to list() within a
   * second, which saves a wait of up to 200 ms; a later write that waits makes it visible too. Ids have at most 512 bytes.
   */
  put(
    entry: { readonly id: string; readonly kind: StateKind; readonly record: unknown; readonly listed?: Listed },
    expected: StateVersion | null,
    signal?: AbortSignal,
  ): Promise<StateEntry | 'conflict'>;
  /**
   * Deletes the entry if the stored version is `expected`. An id that is not stored counts as removed. When it resolves, list()
   * does not show the entry any more; with `soon`, it may do so for a second.
   */
  remove(id: string, expected: StateVersion, signal?: AbortSignal, listed?: Listed): Promise<'removed' | 'conflict'>;
  /** Returns at most `limit` (1 to 1,000) entries of one kind after the given id, in id order (UTF-8 bytes). */
  list(
    kind: StateKind,
    page: { readonly after?: string | undefined; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly StateEntry[]>;
  /** Returns the ids of the entries that list() returns. Their records are not read: lists of thousands come every few seconds. */
  ids(
    kind: StateKind,
    page: { readonly after?: string | undefined; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<readonly string[]>;
  /**
   * Finds the ids of at most `limit` jobs whose record has a `dueAtMs` that is at most `nowMs`, or greater than `nowMs + aheadMaxMs`,
   * in a random order. `isAnyOpen`: whether any has a `dueAtMs`. It is as late as list() is with `listed: 'soon'`.
   */
  due(
    when: { readonly nowMs: number; readonly aheadMaxMs: number; readonly limit: number },
    signal?: AbortSignal,
  ): Promise<{ readonly found: readonly string[]; readonly isAnyOpen: boolean }>;
  /** Counts the entries of one kind. */
  count(kind: StateKind, signal?: AbortSignal): Promise<number>;
}
