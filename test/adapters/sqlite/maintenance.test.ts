import { mkdtemp, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { migrations, upgradeSchema } from '../../../src/adapters/sqlite/schema.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';
import type { ObjectDocument } from '../../../src/domain/documents/document.ts';

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

function documentOf(key: string): ObjectDocument {
  const past = '2026-01-01T00:00:00.000Z';
  const facts = { bucket: 'photos', key, clock: 1, settled: false, source: 'check', indexed_at: past } as const;
  return key === 'gone' ? { ...facts, deleted: true, deleted_at: past } : { ...facts, deleted: false, expires_at: past };
}

/** As a process of the first schema writes. */
function write(database: DatabaseSync, key: string): void {
  const document = documentOf(key);
  database
    .prepare('INSERT INTO objects (bucket, key, clock, deleted, extension, document) VALUES (?, ?, ?, ?, ?, ?)')
    .run('photos', key, document.clock, document.deleted ? 1 : 0, null, JSON.stringify(document));
}

describe('a file of the first schema', () => {
  it('is looked after once it is upgraded, with what a process of the version before still writes into it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
    folders.push(folder);
    const path = join(folder, 'index.sqlite');
    const old = new DatabaseSync(path);
    upgradeSchema(old, migrations.slice(0, 1));
    old.exec("INSERT INTO buckets (name) VALUES ('photos')");
    write(old, 'before');
    write(old, 'gone');

    const store = createSqliteStore({ path });
    await store.setup.prepare();
    write(old, 'after');
    old
      .prepare('UPDATE objects SET clock = 2, document = ? WHERE key = ?')
      .run(JSON.stringify({ ...documentOf('before'), settled: true }), 'before');
    old.close();
    const page = { after: '', limit: 10 };
    const keysOf = (found: readonly { readonly key: string }[]): string[] => found.map(({ key }) => key);
    expect(keysOf(await store.maintenance.unsettled('photos', { ...page, clockBelow: 9 }))).toEqual(['after', 'gone']);
    expect(keysOf(await store.maintenance.expiring('photos', { ...page, beforeMs: Date.now() }))).toEqual(['after', 'before']);
    expect(keysOf(await store.maintenance.tombstones('photos', { ...page, deletedBeforeMs: Date.now() }))).toEqual(['gone']);
    expect(await store.maintenance.purge('photos', [{ key: 'gone', clock: 1 }])).toBe(1);
    await store.close();
  });
});

describe('the event loop', () => {
  const AT = '2026-01-01T00:00:00.000Z';
  const LATER = '2027-01-01T00:00:00.000Z';
  const COUNT = 20_000;
  let folder: string;
  let store: Store;

  /** A store with one bucket of documents that no query wants: they expire later, and are deleted or unsettled too lately. */
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
    const path = join(folder, 'index.sqlite');
    store = createSqliteStore({ path });
    await store.setup.prepare();
    await store.objects.createBucket('photos');
    const database = new DatabaseSync(path);
    const insert = database.prepare('INSERT INTO objects (bucket, key, clock, deleted, extension, document) VALUES (?, ?, ?, ?, ?, ?)');
    database.exec('BEGIN');
    for (let at = 0; at < COUNT; at += 1) {
      for (const deleted of [false, true]) {
        const key = `${deleted ? 'gone' : 'live'}/${String(at).padStart(6, '0')}`;
        const facts = { bucket: 'photos', key, clock: 9, settled: false, source: 'check', indexed_at: AT };
        const document = { ...facts, deleted, ...(deleted ? { deleted_at: LATER } : { last_modified: LATER, expires_at: LATER }) };
        insert.run('photos', key, 9, deleted ? 1 : 0, null, JSON.stringify(document));
      }
    }
    database.exec('COMMIT');
    database.close();
  });
  afterAll(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });

  /** How often the event loop turned while the work ran. */
  async function turnsOf(work: () => Promise<unknown>): Promise<number> {
    let turns = 0;
    let isOver = false;
    const turn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    await work();
    isOver = true;
    return turns;
  }

  it('Fix: turns for each 2,000 rows that a query of the calendar reads, also if none of them is wanted', async () => {
    const { maintenance, scan } = store;
    const page = { after: '', limit: 100 };
    const atMs = Date.parse(AT);
    const queries = {
      unsettled: () => maintenance.unsettled('photos', { ...page, clockBelow: 9 }),
      expiring: () => maintenance.expiring('photos', { ...page, beforeMs: atMs }),
      tombstones: () => maintenance.tombstones('photos', { ...page, deletedBeforeMs: atMs }),
    };
    for (const [name, query] of Object.entries(queries)) {
      const rows = name === 'unsettled' ? 2 * COUNT : COUNT;
      expect(await turnsOf(query), name).toBeGreaterThanOrEqual(rows / 2_000);
    }
    expect(await turnsOf(() => scan.countLive('photos', ''))).toBeGreaterThanOrEqual(COUNT / 10_000);
    expect(await scan.countLive('photos', '')).toBe(COUNT);
    expect(await scan.countLive('photos', 'live/0000')).toBe(100);
  });

  it('Fix: turns for each page of the daily check of lifecycle expirations', async () => {
    const { maintenance } = store;
    let pages = 0;
    const turns = await turnsOf(async () => {
      for (let after: string | undefined = ''; after !== undefined; pages += 1) {
        const range = { prefix: '', modifiedUntilMs: Date.parse(AT), after, limit: 100 };
        ({ next: after } = await maintenance.aged('photos', range));
      }
    });
    expect(pages).toBe(COUNT / 100 + 1);
    expect(turns).toBeGreaterThanOrEqual(pages);
  });
});
