/** Searches and sums that read an index in parts, between which others write. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createSqliteConnection, type SqliteConnection } from '../../../src/store/sqlite/connection.ts';
import { searchObjects } from '../../../src/store/sqlite/search.ts';
import { sumUsage } from '../../../src/store/sqlite/usage.ts';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';
import { nameOf, type ObjectDocument } from '../../../src/ordering/document.ts';
import { queryWordsOf } from '../../../src/ordering/words.ts';
import type { Condition } from '../../../src/store/conditions.rules.ts';
import { usageBy } from '../../../src/store/groups.rules.ts';
import type { UsageQuery, Store } from '../../../src/store/store.ts';

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

/** `connection`: for reads in this thread. */
async function storeOf(documents: readonly ObjectDocument[]): Promise<Store & { readonly connection: SqliteConnection }> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
  const path = join(folder, 'index.sqlite');
  const store = createSqliteStore(path);
  const connection = createSqliteConnection(path);
  disposers.push(async () => {
    connection.close();
    await store.close();
    await rm(folder, { recursive: true });
  });
  await store.setup.prepare();
  await store.objects.createBucket(BUCKET);
  await write(store, documents);
  return { ...store, connection };
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
    const searching = searchObjects(store.connection, { sort: { by: 'size', order: 'asc' }, limit: 10 });
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
    const { connection } = await storeOf(Array.from({ length: 5_000 }, (_, number) => live(numbered(number), number)));
    const words = Array.from({ length: 50 }, (_, number): Condition['anyOf'][number] => ({
      kind: 'words',
      words: queryWordsOf(`none${number}`) ?? [],
    }));
    let turns = 0;
    const counting = new AbortController();
    void (async () => {
      for (; !counting.signal.aborted; turns += 1) await nextTurn();
    })();
    expect(await searchObjects(connection, { where: [{ anyOf: words, negated: false }], limit: 10 })).toEqual([]);
    counting.abort();
    expect(turns).toBeGreaterThanOrEqual(50);
  });
});

describe('sums', () => {
  const query: UsageQuery = { bucket: BUCKET, by: ['folder'], nowMs: 0, limit: 3, timeLimitMs: 600_000 };

  it('of many folders are those of the largest', async () => {
    const store = await storeOf(Array.from({ length: 15_000 }, (_, number) => live(`${numbered(number % 14_000)}/${number}`, 1)));
    expect(await store.usage(query)).toEqual({
      objects: 15_000,
      bytes: 15_000,
      groups: [[0, 1, 2].map((at) => ({ name: `${numbered(at)}/`, objects: 2, bytes: 2 }))],
    });
  });

  it('can be beyond what a number counts exactly', async () => {
    const store = await storeOf([live('a/x', Number.MAX_SAFE_INTEGER), live('a/y', Number.MAX_SAFE_INTEGER)]);
    expect(await store.usage(query)).toMatchObject({ groups: [[{ name: 'a/', objects: 2, bytes: 2 * Number.MAX_SAFE_INTEGER }]] });
  });

  it('read the index alone, and the documents with the words', async () => {
    const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
    disposers.push(async () => prepare.mockRestore());
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
