import { mkdtemp, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';

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
    store = createSqliteStore(path);
    await store.setup.prepare();
    await store.objects.createBucket('photos');
    const database = new DatabaseSync(path);
    const insert = database.prepare(
      'INSERT INTO objects (bucket, key, clock, deleted, built, settled, expires_at, deleted_at, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );
    database.exec('BEGIN');
    for (let at = 0; at < COUNT; at += 1) {
      for (const deleted of [false, true]) {
        const key = `${deleted ? 'gone' : 'live'}/${String(at).padStart(6, '0')}`;
        const facts = { bucket: 'photos', key, clock: 9, settled: false, source: 'check', indexed_at: AT };
        const document = { ...facts, deleted, ...(deleted ? { deleted_at: LATER } : { last_modified: LATER, expires_at: LATER }) };
        const later = deleted ? [null, LATER] : [LATER, null];
        insert.run('photos', key, 9, deleted ? 1 : 0, Date.parse(AT), 0, ...later, JSON.stringify(document));
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
      tombstones: () => maintenance.purge('photos', { ...page, deletedBeforeMs: atMs }),
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
