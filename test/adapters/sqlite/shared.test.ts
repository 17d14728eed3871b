/** Searches whose ranges two threads read. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createSqliteConnection, type SqliteConnection } from '../../../src/adapters/sqlite/connection.ts';
import { DOCUMENT_BY_KEY } from '../../../src/adapters/sqlite/document.ts';
import { readShared, searchFiltered, type ShareRanges } from '../../../src/adapters/sqlite/filtered.ts';
import { createSqliteObjects } from '../../../src/adapters/sqlite/objects.ts';
import type { ReaderAnswer, ReaderRequest, SharedRequest } from '../../../src/adapters/sqlite/readers.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import { nameOf, type ObjectDocument } from '../../../src/domain/documents/document.ts';
import { holds, type Condition } from '../../../src/domain/search/conditions.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import type { ObjectQuery } from '../../../src/pipeline/ports/object-index.ts';

const [FIRST, SECOND] = ['archive', 'photos'] as const;
/** With so many tests of a key, a call reads 100 rows. */
const costly: readonly Condition[] = Array.from({ length: 50 }, () => holds({ kind: 'contains', text: 'file' }));
const OBJECTS = 4_000;

function live(bucket: string, at: number): ObjectDocument {
  const key = `${at % 2 === 0 ? 'even' : 'odd'}/file-${String((at * 7_919) % OBJECTS).padStart(5, '0')}`;
  const fields = { clock: 1, deleted: false, settled: true, source: 'check', indexed_at: '2026-01-02T03:04:05.678Z' } as const;
  return { bucket, key, ...nameOf(key), size: (at * 104_729) % 1_000, ...fields };
}

const noProbe = async (): Promise<void> => undefined;

describe('a long search that is shared', () => {
  let path: string;
  let folder: string;
  let connection: SqliteConnection;
  let other: SqliteConnection;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tally-shared-'));
    path = join(folder, 'index.sqlite');
    connection = createSqliteConnection(path, 0);
    other = createSqliteConnection(path, 0);
    connection.prepare();
    const objects = createSqliteObjects(connection, noProbe);
    for (const bucket of [FIRST, SECOND]) {
      await objects.createBucket(bucket);
      const documents = Array.from({ length: OBJECTS }, (_, at) => live(bucket, at));
      await objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
    }
  });
  afterAll(async () => {
    connection.close();
    other.close();
    await rm(folder, { recursive: true });
  });

  const search = (query: Partial<ObjectQuery>, share?: ShareRanges): Promise<readonly ObjectDocument[]> =>
    searchFiltered(connection, { where: costly, limit: 50, ...query }, share);

  const helpers = {
    'reads as much': (shared) => readShared(other, shared),
    'reads everything': (shared) => {
      // before this one takes a range
      const left = new Int32Array([Atomics.exchange(shared.left, 0, 0)]);
      return readShared(other, { ...shared, left });
    },
    'reads nothing': async () => [],
  } satisfies Record<string, ShareRanges>;

  const nearEnd = [holds({ kind: 'contains', text: 'file-0399' }), ...costly];
  const queries: readonly (readonly [string, Partial<ObjectQuery>])[] = [
    ['in the order of keys, of all buckets', { where: nearEnd }],
    ['in the reverse order', { where: nearEnd, sort: { by: 'key', order: 'desc' } }],
    ['whose page is full in the first bucket', { limit: 3_000 }],
    ['whose page ends in the second bucket', { limit: 6_000 }],
    ['below a prefix', { bucket: SECOND, prefix: 'odd/', where: nearEnd }],
    ['of a part', { within: [{ bucket: SECOND, prefix: 'odd/' }], where: nearEnd }],
    ['behind a place', { limit: 3_000, after: { bucket: FIRST, key: 'even/file-00100' } }],
    ['of the largest, many of which are equal', { sort: { by: 'size', order: 'desc' } }],
    ['of the smallest behind a place', { sort: { by: 'size', order: 'asc' }, after: { bucket: FIRST, key: 'odd/', value: 3 } }],
  ];

  describe.each(Object.entries(helpers))('with a thread that %s', (_name, help) => {
    it.each(queries)('finds the same: %s', async (_query, query) => {
      const share = vi.fn<ShareRanges>(help);
      const wanted = await search(query);
      expect(wanted.length).toBeGreaterThan(0);
      expect(await search(query, share)).toEqual(wanted);
      expect(share).toHaveBeenCalled();
    });
  });

  it('reads parts by itself, and what is short', async () => {
    const share = vi.fn<ShareRanges>(helpers['reads as much']);
    const within = ['even/', 'odd/'].map((prefix) => ({ bucket: FIRST, prefix }));
    expect(await search({ within, limit: OBJECTS }, share)).toHaveLength(OBJECTS);
    expect(await search({ prefix: 'odd/file-001', limit: OBJECTS }, share)).not.toEqual([]);
    expect(share).not.toHaveBeenCalled();
  });

  it('finds what matched when its range was read, though another thread writes meanwhile', async () => {
    const before = live(FIRST, 0);
    const write = (change: Partial<ObjectDocument>) =>
      createSqliteObjects(other, noProbe).write([{ document: { ...before, ...change }, equalClock: 'accept' }]);
    const beside: SqliteConnection = {
      ...connection,
      use: (work, signal) =>
        connection.use((session) => {
          const statement: typeof session.statement = (sql) => {
            if (sql === DOCUMENT_BY_KEY) void write({ clock: 2, size: 999 });
            return session.statement(sql);
          };
          return work({ ...session, statement });
        }, signal),
    };
    const query = { bucket: FIRST, where: [holds({ kind: 'size', max: 0 }), holds({ kind: 'key', value: before.key })], limit: 1 };
    expect(await searchFiltered(beside, query)).toEqual([before]);
    expect(await search(query)).toEqual([]);
    await write({ clock: 3 });
  });

  it('leaves nothing to the other thread once its page is full', async () => {
    let left: Int32Array | undefined;
    await search({ limit: 300 }, (shared) => {
      left = shared.left;
      return new Promise(() => undefined);
    });
    expect(left?.at(0)).toBe(0);
  });

  it('does not wait for a thread that took no range', async () => {
    expect(await search({ where: nearEnd }, () => new Promise(() => undefined))).toEqual(await search({ where: nearEnd }));
  });

  it('fails as the other thread did, after its own ranges', async () => {
    const fault = new FaultError('index.replaced', 'the file was replaced');
    const help: ShareRanges = async ({ left }) => {
      Atomics.sub(left, 0, 1);
      throw fault;
    };
    await expect(search({ where: nearEnd }, help)).rejects.toBe(fault);
  });

  it('is read by both readers of a store, which answers as one of them would', async () => {
    const posted = vi.spyOn(Worker.prototype, 'postMessage');
    const store = createSqliteStore({ path });
    try {
      expect(await store.objects.search({ where: nearEnd, limit: 50 })).toEqual(await search({ where: nearEnd }));
      expect(posted.mock.calls).toContainEqual([expect.objectContaining({ request: expect.objectContaining({ kind: 'shared' }) })]);
    } finally {
      await store.close();
      posted.mockRestore();
    }
  });

  it('shares no other bucket before the answer to the one before, which could be taken as that of the next', async () => {
    const worker = new Worker(new URL('../../../src/adapters/sqlite/reader.ts', import.meta.url), {
      workerData: { path, busyTimeoutMs: 0 },
    });
    const messages: (SharedRequest | ReaderAnswer<readonly ObjectDocument[]>)[] = [];
    const ended = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const request = { kind: 'search', query: { where: nearEnd, limit: 50 } } as const;
    try {
      worker.on('message', (message) => messages.push(message));
      const asked: ReaderRequest = { id: 1, request, fileId: connection.use(({ fileId }) => fileId), ended };
      worker.postMessage(asked, []);
      await vi.waitUntil(() => messages.some((message) => !('shared' in message)), { timeout: 20_000 });
      expect(messages).toEqual([
        expect.objectContaining({ id: 1, shared: expect.anything() }),
        { id: 1, value: await search({ where: nearEnd }) },
      ]);
    } finally {
      await worker.terminate();
    }
  });
});
