import { compareKeys } from '../../../../src/base/key-order.ts';
import { stateOf } from './key-space.ts';
import type { KeySpace, ListedState } from './key-space.ts';

export interface ListedEntry {
  readonly key: string;
  readonly state: ListedState;
}

export interface Slice {
  readonly prefix: string;
  /** Exclusive; empty: from the beginning. */
  readonly after: string;
  readonly limit: number;
}

/** The objects of a bucket: the computed ones, and what was put and removed since. */
export interface Contents {
  /** How many objects there are. */
  size(): number;
  get(key: string): ListedState | undefined;
  /** Puts an object: with this state, or another one than it had. */
  put(key: string, state?: ListedState): ListedState;
  remove(key: string): void;
  /** In UTF-8 byte order. */
  slice(slice: Slice): { readonly entries: readonly ListedEntry[]; readonly isTruncated: boolean };
}

/** Creates a bucket's contents: all of the key space, if there is one. */
export function createContents(space?: KeySpace): Contents {
  const changed = new Map<string, ListedState | 'removed'>();
  /** The changed keys, sorted. */
  const order: string[] = [];
  let puts = 0;
  let size = space?.count ?? 0;

  function get(key: string): ListedState | undefined {
    const own = changed.get(key);
    if (own !== undefined) return own === 'removed' ? undefined : own;
    if (space === undefined) return undefined;
    const at = firstOf(space.count, (number) => compareKeys(space.keyAt(number), key) >= 0);
    return at < space.count && space.keyAt(at) === key ? space.stateAt(at) : undefined;
  }

  function change(key: string, state: ListedState | 'removed'): void {
    const before = get(key) === undefined ? 0 : 1;
    if (!changed.has(key))
      order.splice(
        firstOf(order.length, (at) => compareKeys(order[at] ?? '', key) > 0),
        0,
        key,
      );
    changed.set(key, state);
    size += (state === 'removed' ? 0 : 1) - before;
  }

  /** Positions of the first computed and the first changed key of a slice. */
  function startOf({ prefix, after }: Slice): { computed: number; changed: number } {
    const isBehind = (key: string): boolean => compareKeys(key, after) > 0 && compareKeys(key, prefix) >= 0;
    return {
      computed: space === undefined ? 0 : firstOf(space.count, (at) => isBehind(space.keyAt(at))),
      changed: firstOf(order.length, (at) => isBehind(order[at] ?? '')),
    };
  }

  return {
    size: () => size,
    get,
    put(key, state) {
      puts += 1;
      const put = state ?? stateOf(puts, 1 + puts);
      change(key, put);
      return put;
    },
    remove: (key) => change(key, 'removed'),
    slice(slice) {
      const at = startOf(slice);
      const entries: ListedEntry[] = [];
      for (;;) {
        const computed = space !== undefined && at.computed < space.count ? space.keyAt(at.computed) : undefined;
        const own = order[at.changed];
        const side = compareHeads(computed, own);
        const key = side <= 0 ? computed : own;
        if (key === undefined || !key.startsWith(slice.prefix)) return { entries, isTruncated: false };
        const state = side < 0 ? space?.stateAt(at.computed) : changed.get(key);
        if (side <= 0) at.computed += 1;
        if (side >= 0) at.changed += 1;
        if (state === undefined || state === 'removed') continue;
        if (entries.length === slice.limit) return { entries, isTruncated: true };
        entries.push({ key, state });
      }
    },
  };
}

/** Negative: the first comes first; zero: it is the same key in both. */
function compareHeads(first: string | undefined, second: string | undefined): number {
  if (second === undefined) return -1;
  return first === undefined ? 1 : compareKeys(first, second);
}

/** The first of `count` positions for which it holds; `count` if there is none. Once it holds, it holds for all that follow. */
export function firstOf(count: number, holds: (at: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
