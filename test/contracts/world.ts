/** What the tests of a contract share: a store that is prepared before them, its documents, and what all of them do to it. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect } from 'vitest';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import { faultOf } from '../../src/base/fault.ts';
import type { ObjectQuery, Store } from '../../src/store/store.ts';
import { awkwardKeys as awkwardInEvents } from '../support/event-fixtures.ts';

/** A store that nothing has prepared yet, on a place of its own (a fresh prefix, a fresh file). */
export interface OpenStore {
  readonly store: Store;
  /** Makes every acknowledged write visible to searches. */
  readonly refresh?: () => Promise<void>;
  /** Closes the store and removes what it left behind. */
  dispose(): Promise<void>;
}

/** What a contract plays on one store: on a store whose requests take tens of milliseconds, a share of each product each day. */
export interface Breadth {
  /** How many random cases. */
  readonly runs: number;
  /** Whether each case meets each of the others: else they take turns, so that every case is played all the same. */
  readonly isWhole: boolean;
}

/** 512 bytes is OpenSearch's largest id: keys on both sides of it. */
const longKeys = ['e'.repeat(510), 'e'.repeat(511), 'e'.repeat(1_024), '\u00e9'.repeat(512), `${'x'.repeat(1_023)}y`];
/** Where UTF-8 and UTF-16 have another order. */
const highKeys = ['\ud7ff', '\ue000', '\uffee', '\ufffd', '\uffff', '\u{1f600}a', '\u{10ffff}', '\u{10ffff}\u{10ffff}'];
const oddKeys = String.raw`* */a ? _ _id % %25 a a% a%b a* a*b a_ a_b a?b a\ a\b aa ab k:a /leading quote"quote'`.split(' ');
const spacedKeys = [' ', 'new\nline\r\n\ttab', 'u\u0308ni\u0308', '\u0130\u00df\u03a3'];

/** Keys that have been seen to go wrong in events, and those that a store could take for a query, a pattern or another id. */
export const awkwardKeys: readonly string[] = [...new Set([...awkwardInEvents, ...oddKeys, ...spacedKeys, ...longKeys, ...highKeys])];

export const DAY_MS = 86_400_000;
export const iso = (ms: number): string => new Date(ms).toISOString();
const AT = '2026-01-02T03:04:05.678Z';

const run = randomBytes(4).toString('hex');
let made = 0;

/** A name that nothing else in this run has. */
export function unique(name: string): string {
  made += 1;
  return `${name}-${run}-${made}`;
}

export function live(bucket: string, key: string, more: Partial<ObjectDocument> = {}): ObjectDocument {
  return { bucket, key, clock: 1_000, deleted: false, settled: true, source: 'check', indexed_at: AT, ...more };
}

export function tombstone(bucket: string, key: string, more: Partial<ObjectDocument> = {}): ObjectDocument {
  return live(bucket, key, { deleted: true, deleted_at: AT, ...more });
}

/** The code of the fault with which it is refused. */
export const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no fault',
    (error: unknown) => faultOf(error).code,
  );

export const keysOf = (found: readonly { readonly key: string }[]): string[] => found.map(({ key }) => key);

/** Declares what is done before and after the tests. */
export function contractWorld(open: () => Promise<OpenStore>) {
  let opened: OpenStore | undefined;
  beforeAll(async () => {
    opened = await open();
    await opened.store.setup.prepare();
  });
  afterAll(() => opened?.dispose());

  function started(): OpenStore {
    if (opened === undefined) throw new Error('the store is opened before the first test');
    return opened;
  }

  return {
    get store() {
      return started().store;
    },
    refresh: async () => started().refresh?.(),
    newBucket: async (bucket = unique('bucket')): Promise<string> => {
      await started().store.objects.createBucket(bucket);
      return bucket;
    },
    /** Writes them, to the others too, and makes them visible. */
    write: async (documents: readonly ObjectDocument[], ...others: readonly Store[]): Promise<void> => {
      for (const { objects } of [started().store, ...others]) {
        const answers = await objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
        expect(answers.filter(({ kind }) => kind !== 'written')).toEqual([]);
      }
      await started().refresh?.();
    },
  };
}

export const placesOf = (found: readonly ObjectDocument[]): readonly string[] => found.map(({ bucket, key }) => `${bucket}/${key}`);

/** The places of all that the search finds, in pages of this many. */
export async function allPages({ objects }: Store, query: Omit<ObjectQuery, 'limit'>, limit: number): Promise<readonly string[]> {
  const found: ObjectDocument[] = [];
  for (let after: ObjectQuery['after']; ;) {
    const page = await objects.search({ ...query, limit, ...(after !== undefined && { after }) });
    found.push(...page);
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return placesOf(found);
    const by = query.sort?.by ?? 'key';
    const value = by === 'key' ? undefined : last[by];
    const number = typeof value === 'string' ? Date.parse(value) : (value ?? -1);
    after = { bucket: last.bucket, key: last.key, ...(by !== 'key' && { value: number }) };
  }
}
