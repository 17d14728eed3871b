/** Searches and sums of more rows than one synchronous call reads. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createSqliteConnection } from '../../../src/store/sqlite/connection.ts';
import { searchObjects } from '../../../src/store/sqlite/search.ts';
import { sumUsage } from '../../../src/store/sqlite/usage.ts';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';
import { nameOf, type ObjectDocument } from '../../../src/ordering/document.ts';
import { holds } from '../../../src/store/conditions.rules.ts';
import type { ObjectQuery, UsageSums, Store } from '../../../src/store/store.ts';

const BUCKET = 'photos';
/** Below the prefix; a call reads 5,000 rows. */
const BELOW = 11_000;
const PREFIX = 'many/';

function live(key: string, size: number): ObjectDocument {
  const fields = { clock: 1, deleted: false, settled: true, source: 'check', indexed_at: '2026-01-02T03:04:05.678Z' } as const;
  return { bucket: BUCKET, key, ...nameOf(key), size, ...fields };
}

const number = (at: number): string => String(at).padStart(5, '0');
const keys = Array.from({ length: BELOW }, (_, at) => `${PREFIX}${at < 6_000 ? 'a' : 'b'}/${number(at)}`);

describe('SQLite, with more rows than one call reads', () => {
  let folder: string;
  let store: Store;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-ranges-'));
    store = createSqliteStore(join(folder, 'index.sqlite'));
    await store.setup.prepare();
    await store.objects.createBucket(BUCKET);
    const others = ['before', 'many', 'many0', 'zz/last'].map((key) => live(key, 1));
    const documents = [...keys.map((key, at) => live(key, at)), ...others];
    await store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
  });
  afterAll(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  const search = async (query: Partial<ObjectQuery>) =>
    (await store.objects.search({ bucket: BUCKET, prefix: PREFIX, limit: 1_000, ...query })).map(({ key }) => key);

  // the more tests, the fewer rows one call reads
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

  it('Fix: a range of keys has one bound at each end, since SQLite passes over all rows between two', async () => {
    const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare');
    const bounds = (sql: string, bound: RegExp): number => sql.match(bound)?.length ?? 0;
    try {
      // a new connection compiles its statements again
      const again = createSqliteConnection(join(folder, 'index.sqlite'));
      for (const order of ['asc', 'desc'] as const) {
        const after = { bucket: BUCKET, key: keys[5_500] ?? '' };
        const where = [holds({ kind: 'contains', text: '999' })];
        await searchObjects(again, { bucket: BUCKET, prefix: PREFIX, where, sort: { by: 'key', order }, after, limit: 1_000 });
      }
      await sumUsage(again, { bucket: BUCKET, by: ['class'], prefix: PREFIX, nowMs: 0, limit: 9, timeLimitMs: 60_000 });
      again.close();
      const read = prepare.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes('objects_facts') && sql.includes('key '));
      expect(read.length).toBeGreaterThan(4);
      for (const sql of read) {
        expect(bounds(sql, /\bkey >=? \?/g), sql).toBeLessThanOrEqual(1);
        expect(bounds(sql, /\bkey <=? \?/g), sql).toBeLessThanOrEqual(1);
      }
    } finally {
      prepare.mockRestore();
    }
  });
});
