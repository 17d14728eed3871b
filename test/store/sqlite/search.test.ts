/** Searches and sums of many rows. */
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createSqliteConnection } from '../../../src/store/sqlite/connection.ts';
import { searchObjects, sumUsage } from '../../../src/store/sqlite/search.ts';
import { openSqliteStore } from '../../contracts/sqlite.ts';
import { nameOf, type ObjectDocument } from '../../../src/ordering/document.ts';
import { queryWordsOf } from '../../../src/base/words.ts';
import { holds } from '../../../src/store/conditions.rules.ts';
import { usageBy } from '../../../src/store/groups.rules.ts';
import type { ObjectQuery, Store, UsageQuery, UsageSums } from '../../../src/store/store.ts';

const BUCKET = 'photos';
const TIME = '2026-09-01T12:00:00.000Z';

function live(key: string, size: number): ObjectDocument {
  return { bucket: BUCKET, key, ...nameOf(key), size, clock: 1, deleted: false, settled: true, source: 'check', indexed_at: TIME };
}

const numbered = (number: number): string => `key-${String(number).padStart(5, '0')}`;

/** `connection`: for reads in this thread. */
async function openStore(documents: readonly ObjectDocument[]) {
  const { store, path, dispose } = await openSqliteStore();
  const connection = createSqliteConnection(path);
  await store.setup.prepare();
  await store.objects.createBucket(BUCKET);
  await write(store, documents);
  const close = (): Promise<void> => {
    connection.close();
    return dispose();
  };
  return { ...store, connection, path, dispose: close };
}

/** Ends with the test. */
async function storeOf(documents: readonly ObjectDocument[]) {
  const store = await openStore(documents);
  onTestFinished(store.dispose);
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

describe('sums', () => {
  const query: UsageQuery = { bucket: BUCKET, by: ['folder'], nowMs: 0, limit: 3, timeLimitMs: 600_000 };

  it('can be beyond what a number counts exactly', async () => {
    const store = await storeOf([live('a/x', Number.MAX_SAFE_INTEGER), live('a/y', Number.MAX_SAFE_INTEGER)]);
    expect(await store.usage(query)).toMatchObject({ groups: [[{ name: 'a/', objects: 2, bytes: 2 * Number.MAX_SAFE_INTEGER }]] });
  });

  it('read the index alone, and the documents with the words', async () => {
    const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
    onTestFinished(() => prepare.mockRestore());
    const { connection } = await storeOf([live('a/x', 1)]);
    const planOf = async (filter: Partial<UsageQuery>): Promise<string> => {
      await sumUsage(connection, { ...query, by: usageBy, ...filter });
      const sql = prepare.mock.calls.at(-1)?.[0] ?? '';
      const plan = connection.use(({ statement }) => statement(`EXPLAIN QUERY PLAN ${sql}`).all());
      return plan.map(({ detail }) => String(detail)).join('\n');
    };
    const part = {
      within: [
        { bucket: BUCKET, prefix: 'a/' },
        { bucket: BUCKET, prefix: 'b/' },
      ],
    };
    for (const filter of [{}, { bucket: undefined, by: ['size'] } as object, part])
      expect(await planOf(filter)).toMatch(/SEARCH objects USING COVERING INDEX objects_facts \(bucket=\? AND deleted=\?/);
    expect(await planOf({ words: queryWordsOf('x')! })).toMatch(/SCAN json_each VIRTUAL TABLE[^]*SEARCH objects USING INTEGER PRIMARY KEY/);
  });
});

/** Below the prefix; one call of a sum reads 5,000 rows. */
const BELOW = 11_000;
const PREFIX = 'many/';
const number = (at: number): string => String(at).padStart(5, '0');
const keys = Array.from({ length: BELOW }, (_, at) => `${PREFIX}${at < 6_000 ? 'a' : 'b'}/${number(at)}`);

describe('SQLite, with many rows', () => {
  let store: Awaited<ReturnType<typeof openStore>>;

  beforeAll(async () => {
    const others = ['before', 'many', 'many0', 'zz/last'].map((key) => live(key, 1));
    store = await openStore([...keys.map((key, at) => live(key, at)), ...others]);
  });
  afterAll(() => store.dispose());

  const search = async (query: Partial<ObjectQuery>) =>
    (await store.objects.search({ bucket: BUCKET, prefix: PREFIX, limit: 1_000, ...query })).map(({ key }) => key);

  it.each([1, 20])('finds the last of a prefix, from either end and by size, with %s tests', async (tests) => {
    const odd = Array.from({ length: tests }, () => holds({ kind: 'contains', text: '999' }));
    const wanted = keys.filter((key) => key.includes('999'));
    expect(await search({ where: odd })).toEqual(wanted);
    expect(await search({ where: odd, sort: { by: 'key', order: 'desc' } })).toEqual(wanted.toReversed());
    expect(await search({ sort: { by: 'size', order: 'desc' }, limit: 3 })).toEqual(keys.slice(-3).toReversed());
    expect(await search({ where: odd, sort: { by: 'size', order: 'desc' }, limit: 3 })).toEqual(wanted.slice(-3).toReversed());
    expect(await store.objects.count({ bucket: BUCKET, prefix: PREFIX, where: [holds({ kind: 'size', min: 0 })] }, 20_000)).toBe(BELOW);
  });

  it.each(['asc', 'desc'] as const)('continues after every place: %s', async (order) => {
    const found: string[] = [];
    const query = { where: [holds({ kind: 'size', min: 0 })], sort: { by: 'key', order } } as const;
    for (let after: ObjectQuery['after']; ;) {
      const page = await search({ ...query, ...(after !== undefined && { after }) });
      found.push(...page);
      if (page.length < 1_000) break;
      after = { bucket: BUCKET, key: page.at(-1) ?? '' };
    }
    expect(found).toEqual(order === 'asc' ? keys : keys.toReversed());
  });

  it('sums folders of many objects', async () => {
    const query = { bucket: BUCKET, by: ['folder'], nowMs: 0, limit: 100, timeLimitMs: 60_000 } as const;
    const sum = (from: number, to: number): number => ((from + to - 1) * (to - from)) / 2;
    const groupsOf = async (more: object) => ((await store.usage({ ...query, ...more })) as UsageSums).groups[0];
    expect(await groupsOf({ prefix: PREFIX })).toEqual([
      { name: 'many/a/', objects: 6_000, bytes: sum(0, 6_000) },
      { name: 'many/b/', objects: 5_000, bytes: sum(6_000, BELOW) },
    ]);
    expect(await groupsOf({})).toEqual([
      { name: PREFIX, objects: BELOW, bytes: sum(0, BELOW) },
      { name: '', objects: 3, bytes: 3 },
      { name: 'zz/', objects: 1, bytes: 1 },
    ]);
    const few = { prefix: PREFIX, where: [holds({ kind: 'size', min: 10_998 })] };
    expect(await groupsOf(few)).toEqual([{ name: 'many/b/', objects: 2, bytes: 21_997 }]);
  });

  it('reads one key alone for a sum of one key', async () => {
    const again = createSqliteConnection(store.path);
    const use = vi.spyOn(again, 'use');
    const where = [holds({ kind: 'key', value: keys[9_000] ?? '' })];
    const sums = await sumUsage(again, { bucket: BUCKET, by: ['class'], where, nowMs: 0, limit: 9, timeLimitMs: 60_000 });
    again.close();
    expect(sums).toMatchObject({ objects: 1, bytes: 9_000 });
    // the bucket's name, the range's first rows and their facts
    expect(use).toHaveBeenCalledTimes(3);
  });

  it('Fix: a range of keys has one bound at each end, since SQLite passes over all rows between two', async () => {
    const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
    const bounds = (sql: string, bound: RegExp): number => sql.match(bound)?.length ?? 0;
    try {
      // a new connection compiles its statements again
      const again = createSqliteConnection(store.path);
      for (const order of ['asc', 'desc'] as const) {
        const after = { bucket: BUCKET, key: keys[5_500] ?? '' };
        const where = [holds({ kind: 'contains', text: '999' })];
        await searchObjects(again, { bucket: BUCKET, prefix: PREFIX, where, sort: { by: 'key', order }, after, limit: 1_000 });
      }
      await sumUsage(again, { bucket: BUCKET, by: ['class'], prefix: PREFIX, nowMs: 0, limit: 9, timeLimitMs: 60_000 });
      again.close();
      const read = prepare.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes('objects_facts') && sql.includes('key '));
      expect(read.length).toBeGreaterThan(2);
      for (const sql of read) {
        expect(bounds(sql, /\bkey >=? \?/g), sql).toBeLessThanOrEqual(1);
        expect(bounds(sql, /\bkey <=? \?/g), sql).toBeLessThanOrEqual(1);
      }
    } finally {
      prepare.mockRestore();
    }
  });
});
