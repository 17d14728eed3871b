/** A SQLite file that is removed or replaced while it is open, and a disk without room. */
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSqliteConnection } from '../../../src/adapters/sqlite/connection.ts';
import { createSqliteObjects } from '../../../src/adapters/sqlite/objects.ts';
import { createSqliteProbe } from '../../../src/adapters/sqlite/probe.ts';
import { createSqliteState } from '../../../src/adapters/sqlite/state.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import type { ObjectDocument } from '../../../src/domain/documents/document.ts';
import { codeOf } from '../../contracts/world.ts';
import { faultOf } from '../../../src/domain/fault.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';

let folder = '';
let path = '';
const stores: Store[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
  path = join(folder, 'index.sqlite');
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  await rm(folder, { recursive: true });
});

async function prepared(at = path): Promise<Store> {
  const store = createSqliteStore({ path: at });
  stores.push(store);
  await store.setup.prepare();
  await store.objects.createBucket('b');
  return store;
}

function live(key: string, clock = 1): ObjectDocument {
  return { bucket: 'b', key, clock, deleted: false, settled: true, source: 'native', indexed_at: '2026-01-02T03:04:05.678Z' };
}

/** How each write ended, or the fault of the request. */
async function written(store: { readonly objects: Pick<Store['objects'], 'write'> }, ...keys: readonly string[]): Promise<string> {
  const writes = keys.map((key) => ({ document: live(key), equalClock: 'accept' as const }));
  const answers = await store.objects.write(writes).catch((error: unknown) => [{ kind: faultOf(error).code }]);
  return [...new Set(answers.map(({ kind }) => kind))].join();
}

/** The keys in a file, as another program reads it; the file is whole without its log. */
function keysIn(file: string): readonly unknown[] {
  const database = new DatabaseSync(file);
  const keys = database.prepare('SELECT key FROM objects ORDER BY key').all();
  const { integrity_check: integrity } = database.prepare('PRAGMA integrity_check').get() ?? {};
  database.close();
  expect(integrity).toBe('ok');
  return keys.map(({ key }) => key);
}

describe('Fix: a SQLite file that was removed under the process', () => {
  it('takes no write that it would answer with written, says so to the probe, and works again when it is put back', async () => {
    const store = await prepared();
    expect(await written(store, 'before')).toBe('written');
    await rename(path, `${path}.away`);
    expect(await written(store, 'during')).toBe('index.replaced');
    expect(await written(store, 'during')).toBe('index.replaced');
    expect(await codeOf(store.objects.probe())).toBe('index.replaced');
    expect(await codeOf(store.state.put({ id: 'x', kind: 'lock', record: {} }, null))).toBe('index.replaced');
    // what was answered is in the file itself, wherever it is
    expect(keysIn(`${path}.away`)).toContain('before');
    await rename(`${path}.away`, path);
    expect(await codeOf(store.objects.probe())).toBe('no fault');
    expect(await written(store, 'during', 'after')).toBe('written');
    expect(keysIn(path)).toEqual(['after', 'before', 'during']);
  });

  it('is noticed by the probe and by reads, not only by writes', async () => {
    const probed = await prepared();
    await rm(path);
    expect(await codeOf(probed.objects.probe())).toBe('index.replaced');
    expect(await codeOf(probed.objects.getMany('b', ['k']))).toBe('index.replaced');
    expect(await readdir(folder)).not.toContain('index.sqlite');
  });

  it('is noticed when its log alone was removed, and nothing that was written is lost', async () => {
    const store = await prepared();
    expect(await written(store, 'before')).toBe('written');
    await rm(`${path}-wal`);
    expect(await written(store, 'during')).toBe('index.replaced');
    expect(await written(store, 'after')).toBe('written');
    expect(keysIn(path)).toEqual(expect.arrayContaining(['before', 'after']));
  });
});

describe('Fix: a SQLite file that was replaced under the process', () => {
  it('by another index of Tally is opened; each of both holds what was answered while it had the name', async () => {
    const other = join(folder, 'other.sqlite');
    const second = await prepared(other);
    expect(await written(second, 'of-the-other')).toBe('written');
    await second.close();
    const store = await prepared();
    expect(await written(store, 'before')).toBe('written');
    await rename(path, `${path}.away`);
    await rename(other, path);
    expect(await written(store, 'during')).toBe('index.replaced');
    expect(await written(store, 'after')).toBe('written');
    await store.close();
    expect(keysIn(path)).toEqual(['after', 'of-the-other']);
    expect(keysIn(`${path}.away`)).toContain('before');
  });

  it.each([
    ['a database of another program', 'CREATE TABLE theirs (id TEXT)', 'index.damaged'],
    ['an empty file', '', 'index.state-missing'],
  ])('by %s stays unready, and leaves it alone', async (_, sql, code) => {
    const store = await prepared();
    await written(store, 'before');
    await rename(path, `${path}.away`);
    const other = new DatabaseSync(path);
    other.exec(sql === '' ? 'PRAGMA user_version = 0; VACUUM' : sql);
    other.close();
    expect(await written(store, 'k')).toBe('index.replaced');
    expect(await written(store, 'k')).toBe(code);
    expect(await codeOf(store.objects.probe())).toBe(code);
    await rename(`${path}.away`, path);
    expect(await written(store, 'k')).toBe('written');
  });
});

describe('Fix: a disk without room', () => {
  it('is seen by the probe too, until there is room for a usual request again', async () => {
    const connection = createSqliteConnection(path, 1_000);
    const objects = createSqliteObjects(connection, createSqliteProbe(connection, createSqliteState(connection)));
    const pragma = (sql: string): unknown => Object.values(connection.use(({ statement }) => statement(sql).get()) ?? {})[0];
    const many = Array.from({ length: 1_000 }, (_, at) => `k${at}`);
    connection.prepare();
    await objects.createBucket('b');
    await objects.probe();
    pragma(`PRAGMA max_page_count = ${Number(pragma('PRAGMA page_count'))}`);
    // a single record finds room in its page, a request does not
    expect(await written({ objects }, ...many)).toBe('index.blocked');
    for (let round = 0; round < 3; round += 1) expect(await codeOf(objects.probe())).toBe('index.blocked');
    pragma('PRAGMA max_page_count = 1000000');
    expect(await codeOf(objects.probe())).toBe('no fault');
    expect(await written({ objects }, ...many)).toBe('written');
    connection.close();
  });
});
