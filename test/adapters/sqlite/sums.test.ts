/** The sums that a SQLite index keeps beside its documents, once they do not agree with them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSqliteConnection } from '../../../src/adapters/sqlite/connection.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import { correctSums, sumsDifferences } from '../../../src/adapters/sqlite/sums-check.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';
import { live, tombstone } from '../../contracts/world.ts';

const BUCKET = 'photos';
const MODIFIED = '2026-11-01T12:30:00.000Z';
const KEYS = ['a.txt', 'p/a.txt', 'p/a', 'p/q/b.jpg', 'p/z', 'x/\u0000/c', 'ü/é/d.PNG', '//', 'p/q/'];

const write = (store: Store, keys: readonly string[], more: Parameters<typeof live>[2] = {}, bucket = BUCKET) =>
  store.objects.write(
    keys.map((key) => ({ document: live(bucket, key, { size: 10, last_modified: MODIFIED, ...more }), equalClock: 'accept' as const })),
  );

async function setUp(hasReaders: boolean) {
  const folder = await mkdtemp(join(tmpdir(), 'tally-sums-'));
  const path = join(folder, 'index.sqlite');
  const store = createSqliteStore({ path, hasReaders });
  onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });
  await store.setup.prepare();
  for (const bucket of [BUCKET, 'neighbour']) {
    await store.objects.createBucket(bucket);
    await write(store, KEYS, {}, bucket);
  }
  await store.objects.write(
    ['no-size', 'no-time'].map((key) => ({ document: live(BUCKET, key, { storage_class: 'GLACIER' }), equalClock: 'accept' as const })),
  );
  await store.objects.write([{ document: tombstone(BUCKET, 'p/z', { clock: 9_000 }), equalClock: 'accept' }]);
  const stored = (): unknown[] => {
    const database = new DatabaseSync(path, { readOnly: true });
    const rows = ['folders', 'hours'].map((table) => database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2, 3, 4`).all());
    database.close();
    return rows;
  };
  const damage = (sql: string): void => {
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
  };
  return { store, stored, damage, path };
}

const DAMAGES = [
  ['numbers are wrong', `UPDATE folders SET objects = objects + 3, bytes = bytes - 7 WHERE folder = 'p/'`],
  ['hours are wrong', `UPDATE hours SET objects = objects + 1`],
  ['all rows are gone', `DELETE FROM folders; DELETE FROM hours`],
  [
    'rows are of folders that are not',
    `INSERT INTO folders SELECT bucket, 'gone/' || folder, class, extension, objects, bytes FROM folders`,
  ],
  ['numbers are below zero', `UPDATE folders SET objects = -5; INSERT INTO folders VALUES ('${BUCKET}', 'less/', '', '', -2, -20)`],
  ['rows of nothing are left', `INSERT INTO folders VALUES ('${BUCKET}', 'empty/', '', '', 0, 0)`],
] as const;

describe.each([
  ['in this thread', false],
  ['beside a reader', true],
])('stored sums %s', (_, hasReaders) => {
  it('agree with the objects after any writes, so that nothing is corrected', async () => {
    const { store, stored } = await setUp(hasReaders);
    const before = stored();
    expect(await store.maintenance.correctSums(BUCKET)).toBeUndefined();
    expect(await store.maintenance.correctSums('unknown')).toBeUndefined();
    expect(stored()).toEqual(before);
  });

  it.each(DAMAGES)('are corrected where %s, whatever is written meanwhile', async (_name, sql) => {
    const { store, stored, damage } = await setUp(hasReaders);
    const before = stored();
    damage(sql);
    expect(stored()).not.toEqual(before);
    const corrections = [store.maintenance.correctSums(BUCKET), store.maintenance.correctSums('neighbour')];
    await write(store, ['p/new.txt', 'new/new.txt', 'p/a.txt'], { clock: 10_000, size: 50 });
    expect((await Promise.all(corrections)).some((found) => found !== undefined && found.groups > 0)).toBe(true);
    expect([await store.maintenance.correctSums(BUCKET), await store.maintenance.correctSums('neighbour')]).toEqual([undefined, undefined]);
    const corrected = stored();
    damage('DELETE FROM folders; DELETE FROM hours');
    await Promise.all([BUCKET, 'neighbour'].map((bucket) => store.maintenance.correctSums(bucket)));
    expect(stored()).toEqual(corrected);
  });
});

it('compares the sums of 20,000 folders with one sort, and corrects them 10,000 at a time', { timeout: 60_000 }, async () => {
  const { store, damage } = await setUp(true);
  await write(
    store,
    Array.from({ length: 20_000 }, (_, at) => `many/${at}/file`),
  );
  expect(await store.maintenance.correctSums(BUCKET)).toBeUndefined();
  damage('DELETE FROM folders');
  const corrections = [];
  for (let more = true; more;) {
    const found = await store.maintenance.correctSums(BUCKET);
    if (found !== undefined) corrections.push(found);
    more = found?.more === true;
  }
  expect(corrections.map(({ groups, more }) => [groups, more])).toEqual([
    [10_000, true],
    [10_000, true],
    [expect.any(Number), false],
  ]);
});

it('a difference in bytes alone is not lost when the objects of its group are deleted before it is corrected', async () => {
  const { store, stored, damage, path } = await setUp(false);
  await write(store, ['r/a']);
  const before = stored();
  await write(store, ['r/b'], { clock: 9_000, size: 20 });
  damage(`UPDATE folders SET objects = 1, bytes = 10 WHERE folder = 'r/'`);
  const connection = createSqliteConnection(path, 1_000);
  onTestFinished(() => connection.close());
  const differences = sumsDifferences(connection, BUCKET);
  await store.objects.write([{ document: tombstone(BUCKET, 'r/b', { clock: 10_000 }), equalClock: 'accept' }]);
  correctSums(connection, BUCKET, differences!);
  expect(stored()).toEqual(before);
});
