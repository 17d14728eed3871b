/** The thread that searches a SQLite index beside the one that writes it. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createSqliteConnection } from '../../../src/store/sqlite/connection.ts';
import { searchObjects } from '../../../src/store/sqlite/search.ts';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';
import { nameOf } from '../../../src/ordering/document.ts';
import { holds } from '../../../src/store/conditions.rules.ts';
import type { ObjectQuery, Store } from '../../../src/store/store.ts';
import { iso, live } from '../../contracts/world.ts';

const BUCKET = 'photos';
const NOW_MS = Date.UTC(2026, 10, 27);
const SUMS = { by: ['bucket', 'extension', 'class', 'size', 'age'], nowMs: NOW_MS, limit: 10, timeLimitMs: 60_000 } as const;

const facts = { size: 1, last_modified: iso(NOW_MS), storage_class: 'STANDARD', etag: '0'.repeat(32) };

const write = (store: Store, keys: readonly string[]) =>
  store.objects.write(keys.map((key) => ({ document: live(BUCKET, key, { ...nameOf(key), ...facts }), equalClock: 'accept' })));

describe('the thread that searches a SQLite index', () => {
  let folder: string;
  let store: Store;
  let path: string;

  // written once: each test has a copy
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tally-readers-'));
    const written = createSqliteStore(join(folder, 'written.sqlite'));
    await written.setup.prepare();
    await written.objects.createBucket(BUCKET);
    const keys = Array.from({ length: 20_000 }, (_, at) => `folder/file-${at}.txt`);
    for (let from = 0; from < keys.length; from += 1_000) await write(written, keys.slice(from, from + 1_000));
    await written.close();
  });
  afterAll(() => rm(folder, { recursive: true }));

  beforeEach(async () => {
    path = join(await mkdtemp(join(folder, 'copy-')), 'index.sqlite');
    await copyFile(join(folder, 'written.sqlite'), path);
    store = createSqliteStore(path);
    onTestFinished(() => store.close());
  });

  it('does not keep an event waiting: it is stored while sums are made, and the next search finds it', async () => {
    let isSummed = false;
    const sums = store.usage(SUMS).finally(() => (isSummed = true));
    await write(store, ['later.txt']);
    expect(isSummed).toBe(false);
    expect(await store.objects.search({ key: 'later.txt', limit: 1 })).toMatchObject([{ key: 'later.txt' }]);
    expect(await sums).not.toBe('too-slow');
  });

  it('does not keep a search waiting behind a sum, however many come', async () => {
    const order: string[] = [];
    // so many conditions on each document take seconds
    const where = Array.from({ length: 60 }, (_, at) => holds({ kind: 'type' as const, value: `none${at}`, family: false }));
    const sums = store
      .usage({ ...SUMS, where: [{ anyOf: where.flatMap(({ anyOf }) => anyOf), negated: true }] })
      .finally(() => order.push('sum'));
    const searches = Array.from({ length: 6 }, () =>
      store.objects.search({ key: 'folder/file-1.txt', limit: 1 }).finally(() => order.push('search')),
    );
    await Promise.all([sums, ...searches]);
    expect(order.at(-1)).toBe('sum');
  });

  it('lets go of a search that its caller has left, and answers the next one', async () => {
    const controller = new AbortController();
    const sums = store.usage(SUMS, controller.signal);
    controller.abort(new Error('gone'));
    await expect(sums).rejects.toThrow('gone');
    expect(await store.objects.count({}, 100_000)).toBe(20_000);
  });

  it('answers what waits with a fault when the store is closed', async () => {
    const outcome = expect(store.usage(SUMS)).rejects.toMatchObject({ code: 'index.unreachable' });
    await store.close();
    await outcome;
  });

  it('Fix: of a thread that failed, the exit ends no search of its successor', async () => {
    const posted = vi.spyOn(Worker.prototype, 'postMessage');
    const search = () => store.objects.search({ key: 'folder/file-1.txt', limit: 1 });
    await search();
    const [first] = posted.mock.contexts;
    posted.mockRestore();
    if (!(first instanceof Worker)) throw new Error('no thread has answered');
    const exited = new Promise<void>((resolve) => first.once('exit', () => resolve()));
    // no request, so the thread fails
    first.postMessage(null, []);
    await expect(search()).rejects.toMatchObject({ code: 'index.unreachable' });
    const found = search();
    await exited;
    expect(await found).toHaveLength(1);
  });

  it('does not keep a process that has left its search and has nothing else to do', async () => {
    const module = new URL('../../../src/store/sqlite/store.ts', import.meta.url);
    const program = `
      import { createSqliteStore } from ${JSON.stringify(module.href)};
      const store = createSqliteStore(${JSON.stringify(path)});
      const controller = new AbortController();
      const sums = store.usage(${JSON.stringify(SUMS)}, controller.signal);
      controller.abort(new Error('gone'));
      await sums.catch((error) => console.log(error.message));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { timeout: 20_000 });
    expect(stdout).toBe('gone\n');
  }, 30_000);

  it('Fix: ends a statement that runs when its caller no longer waits', async () => {
    let looks = 0;
    const connection = createSqliteConnection(path, 'ro', () => (looks += 1) > 2);
    onTestFinished(() => connection.close());
    const query: ObjectQuery = { words: [[{ whole: ['folder'] }]], sort: { by: 'size', order: 'asc' }, limit: 1 };
    await expect(searchObjects(connection, query)).rejects.toThrow('no longer waits');
    expect(looks).toBe(3);
  });

  it('Fix: leaves no log behind that grew while another program read', async () => {
    const reader = new DatabaseSync(path, { readOnly: true });
    reader.exec('BEGIN; SELECT count(*) FROM objects');
    const logBytes = async () => (await stat(`${path}-wal`)).size;
    const bytesMax = 40_000_000;
    for (let round = 0; (await logBytes()) < bytesMax; round += 1) {
      await write(
        store,
        Array.from({ length: 1_000 }, (_, at) => `${round}/${at}/${'x'.repeat(900)}`),
      );
    }
    reader.close();
    await write(store, ['once the log is read to its end']);
    await write(store, ['from its start']);
    expect(await logBytes()).toBeLessThan(bytesMax);
  });

  it('ends a sum at its time limit', async () => {
    expect(await store.usage({ ...SUMS, timeLimitMs: 0 })).toBe('too-slow');
  });
});
