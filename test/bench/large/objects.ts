/** The objects of a large bucket by their numbers, and what both sides say of them. */
import type { PresentState } from '../../../src/ordering/document.ts';
import { compareKeys } from '../../../src/base/key-order.ts';
import type { ScannedDocument } from '../../../src/store/store.ts';
import { firstOf } from '../reindex/listing/contents.ts';
import { createKeySpace, stateOf, type KeyShape } from '../reindex/listing/key-space.ts';

/** Objects share this many states: what makes a state costs more than comparing it, and its content changes nothing. */
const STATES = 1_024;

export interface LargeObjects {
  readonly count: number;
  readonly keyAt: (at: number) => string;
  readonly stateAt: (at: number) => PresentState;
  /** Its document when index and bucket agree. */
  readonly documentAt: (at: number) => ScannedDocument;
  /** The number of the first key after this one; `count` if there is none. */
  readonly firstAfter: (key: string) => number;
  /** The number of this key. Throws if it is none of the bucket. */
  readonly numberOf: (key: string) => number;
}

/** Creates the objects; nothing is kept of each. */
export function createLargeObjects(shape: KeyShape, count: number): LargeObjects {
  const space = createKeySpace(shape, count);
  const states = Array.from({ length: STATES }, (_, at): PresentState => ({ present: true, ...stateOf(at) }));
  const fields = states.map(({ etag = '', sizeBytes = 0, lastModifiedMs = 0, storageClass = '' }) => ({
    size: sizeBytes,
    etag,
    last_modified: new Date(lastModifiedMs).toISOString(),
    last_modified_exact: true,
    storage_class: storageClass,
    clock: lastModifiedMs * 1_000,
    settled: true,
  }));

  const firstAfter = (key: string): number => firstOf(count, (at) => compareKeys(space.keyAt(at), key) > 0);

  return {
    count,
    keyAt: space.keyAt,
    stateAt: (at) => states[at % STATES] as PresentState,
    documentAt(at) {
      const { size, etag, last_modified, last_modified_exact, storage_class, clock, settled } = fields[at % STATES] as (typeof fields)[0];
      return { key: space.keyAt(at), size, etag, last_modified, last_modified_exact, storage_class, clock, settled };
    },
    firstAfter,
    numberOf(key) {
      const at = firstAfter(key) - 1;
      if (at < 0 || space.keyAt(at) !== key) throw new Error(`no object has the key ${key}`);
      return at;
    },
  };
}

/** The numbers of keys in order, as runs of numbers in a row: most keys of a page follow each other, so few are looked up. */
export function runsOf(objects: LargeObjects, keys: readonly string[]): readonly { readonly from: number; readonly length: number }[] {
  const runs: { from: number; length: number }[] = [];
  for (let first = 0; first < keys.length;) {
    const from = objects.numberOf(keys[first] ?? '');
    const length = rowFrom(objects, keys, { first, from });
    runs.push({ from, length });
    first += length;
  }
  return runs;
}

/** How many keys from the first one on are those of the numbers in a row: as many ascending keys as numbers fit between two of them only so. */
function rowFrom(
  objects: LargeObjects,
  keys: readonly string[],
  { first, from }: { readonly first: number; readonly from: number },
): number {
  let ascending = 1;
  while (first + ascending < keys.length && (keys[first + ascending - 1] ?? '') < (keys[first + ascending] ?? '')) ascending += 1;
  for (let length = ascending; length > 1; length = Math.ceil(length / 2)) {
    const last = from + length - 1;
    if (last < objects.count && objects.keyAt(last) === keys[first + length - 1]) return length;
  }
  return 1;
}

/** A set of numbers, in one bit each. */
export interface NumberSet {
  /** How many numbers it has. */
  readonly size: number;
  has(number: number): boolean;
  addRun(from: number, length: number): void;
  /** The first number from `from` on, below `to`, that is in the set; `to` if none is. */
  next(from: number, to: number): number;
}

/** Numbers that are passed over at once where none of them is in the set. */
const BLOCK = 4_096;

/** Creates an empty set of numbers below `count`. */
export function createNumberSet(count: number): NumberSet {
  const bits = new Uint8Array(Math.ceil(count / 8));
  const inBlock = new Uint16Array(Math.ceil(count / BLOCK));
  let size = 0;
  const has = (number: number): boolean => ((bits[number >> 3] ?? 0) & (1 << (number & 7))) !== 0;
  return {
    get size() {
      return size;
    },
    has,
    addRun(from, length) {
      for (let number = from; number < from + length; number += 1) {
        if (has(number)) continue;
        bits[number >> 3] = (bits[number >> 3] ?? 0) | (1 << (number & 7));
        const block = Math.floor(number / BLOCK);
        inBlock[block] = (inBlock[block] ?? 0) + 1;
        size += 1;
      }
    },
    next(from, to) {
      let number = from;
      while (number < to && !has(number)) {
        const isEmptyBlock = number % BLOCK === 0 && inBlock[number / BLOCK] === 0;
        number += isEmptyBlock ? BLOCK : 1;
      }
      return Math.min(number, to);
    },
  };
}
