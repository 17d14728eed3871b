/** Searches and sums that read an index in parts, between which others write. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import { nameOf, type ObjectDocument } from '../../../src/domain/documents/document.ts';
import { queryWordsOf } from '../../../src/domain/documents/words.ts';
import type { Condition } from '../../../src/domain/search/conditions.ts';
import type { UsageQuery } from '../../../src/pipeline/ports/object-usage.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';

const BUCKET = 'photos';
const TIME = '2026-09-01T12:00:00.000Z';
/** More than two parts. */
const MANY = 12_000;

const disposers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const dispose of disposers.splice(0)) await dispose();
});

function live(key: string, size: number, clock = 1): ObjectDocument {
  return { bucket: BUCKET, key, ...nameOf(key), size, clock, deleted: false, settled: true, source: 'check', indexed_at: TIME };
}

function tombstone(key: string, clock: number): ObjectDocument {
  return { bucket: BUCKET, key, clock, deleted: true, deleted_at: TIME, settled: true, source: 'check', indexed_at: TIME };
}

const numbered = (number: number): string => `key-${String(number).padStart(5, '0')}`;

async function storeOf(documents: readonly ObjectDocument[]): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
  const store = createSqliteStore({ path: join(folder, 'index.sqlite') });
  disposers.push(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });
  await store.setup.prepare();
  await store.objects.createBucket(BUCKET);
  await write(store, documents);
  return store;
}

async function write(store: Store, documents: readonly ObjectDocument[]): Promise<void> {
  const answers = await store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
  expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['written']));
}

describe('a search of words that many documents have', () => {
  it('finds the first keys, and those behind many that lack the words', async () => {
    const [common, others] = [10_001, 25_000];
    const key = (at: number): string => (at < 3 || at >= others ? `${numbered(at)}-common` : `${numbered(at)}-other`);
    const keys = Array.from({ length: others + common }, (_, at) => key(at));
    const store = await storeOf(keys.map((name, at) => live(name, at)));
    const wanted = keys.filter((name) => name.endsWith('-common'));
    const search = async (limit: number, after?: string) =>
      (
        await store.objects.search({
          words: queryWordsOf('common')!,
          limit,
          ...(after !== undefined && { after: { bucket: BUCKET, key: after } }),
        })
      ).map((document) => document.key);
    expect(await search(2)).toEqual(wanted.slice(0, 2));
    expect(await search(10)).toEqual(wanted.slice(0, 10));
    expect(await search(10, wanted[1])).toEqual(wanted.slice(2, 12));
  });
});

describe('a search in parts', () => {
  it('answers what it read, whatever is written before it ends', async () => {
    const store = await storeOf(Array.from({ length: MANY }, (_, number) => live(numbered(number), number)));
    const searching = store.objects.search({ sort: { by: 'size', order: 'asc' }, limit: 10 });
    await nextTurn();
    await nextTurn();
    // the first part is read, and others are not
    await write(store, [tombstone(numbered(3), 2), live(numbered(9), MANY * 2, 2)]);
    const found = await searching;
    expect(found.map(({ key, size, deleted }) => ({ key, size, deleted }))).toEqual(
      Array.from({ length: 10 }, (_each, number) => ({ key: numbered(number), size: number, deleted: false })),
    );
  });

  it('lets others run the more often, the more it asks of each object', async () => {
    const store = await storeOf(Array.from({ length: 5_000 }, (_, number) => live(numbered(number), number)));
    const words = Array.from({ length: 50 }, (_, number): Condition['anyOf'][number] => ({
      kind: 'words',
      words: queryWordsOf(`none${number}`) ?? [],
    }));
    let turns = 0;
    const counting = new AbortController();
    void (async () => {
      for (; !counting.signal.aborted; turns += 1) await nextTurn();
    })();
    expect(await store.objects.search({ where: [{ anyOf: words, negated: false }], limit: 10 })).toEqual([]);
    counting.abort();
    expect(turns).toBeGreaterThanOrEqual(50);
  });
});

describe('sums in parts', () => {
  const base: UsageQuery = { bucket: BUCKET, prefix: '', by: 'folder', nowMs: 0, limit: 1_001, timeLimitMs: 600_000 };

  it('are whole for the last folder of a page, also where objects of the folder itself stand between', async () => {
    // after the folder a/: 999 folders and one object, then a folder that is longer than a part
    const small = Array.from({ length: 998 }, (_, number) => live(`b${numbered(number)}/x`, 1));
    const long = Array.from({ length: MANY }, (_, number) => live(`d/${numbered(number)}`, 1));
    const store = await storeOf([live('a/x', 1), ...small, live('c', 1), ...long, live('e/x', 1)]);
    const rows = await store.usage.usage({ ...base, after: 'a/', limit: 998 });
    expect(rows).toHaveLength(998);
    const last = await store.usage.usage({ ...base, after: 'a/', limit: 999 });
    expect(last.at(-1)).toEqual({ name: 'd/', objects: MANY, bytes: MANY });
  });

  it('of more groups than are kept are those of the first page', async () => {
    const store = await storeOf([
      live('z', 7),
      ...Array.from({ length: 15_000 }, (_, number) => live(`${numbered(number % 14_000)}/${number}`, 1)),
    ]);
    const first = await store.usage.usage({ ...base, limit: 3 });
    expect(first).toEqual([
      { name: '', objects: 1, bytes: 7 },
      { name: `${numbered(0)}/`, objects: 2, bytes: 2 },
      { name: `${numbered(1)}/`, objects: 2, bytes: 2 },
    ]);
    const next = await store.usage.usage({ ...base, after: `${numbered(13_998)}/` });
    expect(next).toEqual([{ name: `${numbered(13_999)}/`, objects: 1, bytes: 1 }]);
  });

  it('of a bucket that is removed meanwhile are none, and no part', async () => {
    const store = await storeOf(Array.from({ length: MANY }, (_, number) => live(numbered(number), 1)));
    const summing = store.usage.usage(base);
    await nextTurn();
    await nextTurn();
    await store.objects.removeBucket(BUCKET);
    expect(await summing).toEqual([]);
  });

  it('can be beyond what a number counts exactly', async () => {
    const store = await storeOf([live('a/x', Number.MAX_SAFE_INTEGER), live('a/y', Number.MAX_SAFE_INTEGER)]);
    expect(await store.usage.usage(base)).toEqual([{ name: 'a/', objects: 2, bytes: 2 * Number.MAX_SAFE_INTEGER }]);
  });
});
