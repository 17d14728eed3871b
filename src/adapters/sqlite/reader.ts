/** The thread that searches a SQLite index. In WAL mode its connections neither wait for the writer nor keep it waiting. readers.ts starts it. */
import { parentPort, workerData } from 'node:worker_threads';
import { FaultError } from '../../domain/fault.ts';
import { createSqliteConnection, type SqliteConnection } from './connection.ts';
import { latestChanges } from './changes.ts';
import { countFiltered, readShared, searchFiltered, type Found, type SharedRanges, type ShareRanges } from './filtered.ts';
import { isPlain, searchObjects } from './search.ts';
import { errorOf, type ReaderAnswer, type ReaderOptions, type ReaderRequest, type ReadRequest, type SharedRequest } from './readers.ts';
import { sumUsage } from './usage.ts';

const { path, busyTimeoutMs }: ReaderOptions = workerData;

/** By the ids of requests here that share their ranges: what takes the answer of the other thread. */
const waiting = new Map<number, (answer: ReaderAnswer<readonly Found[]>) => void>();

/** Each read opens the file and closes it, so that no replaced file stays open here between reads. */
async function read({ id, request, fileId, ended }: ReaderRequest): Promise<unknown> {
  const isEnded = (): boolean => Atomics.load(ended, 0) === 1;
  const connection = createSqliteConnection(path, busyTimeoutMs, { fileId, isEnded });
  try {
    return await readOn(connection, request, (shared) => ask(id, shared));
  } finally {
    connection.close();
    waiting.delete(id);
  }
}

/** Asks the thread of the daemon, which knows whether another reader is idle. */
async function ask(id: number, shared: SharedRanges): Promise<readonly Found[]> {
  // it is not idle, and its answer must not be taken as that of the next bucket
  if (waiting.has(id)) return [];
  const { promise, resolve } = Promise.withResolvers<ReaderAnswer<readonly Found[]>>();
  waiting.set(id, resolve);
  parentPort?.postMessage({ id, shared } satisfies SharedRequest);
  const answered = await promise;
  if (answered.failure !== undefined) throw errorOf(answered.failure);
  return answered.value;
}

async function readOn(connection: SqliteConnection, request: ReadRequest, share: ShareRanges): Promise<unknown> {
  switch (request.kind) {
    case 'search':
      return isPlain(request.query)
        ? connection.use((session) => searchObjects(session, request.query))
        : searchFiltered(connection, request.query, share);
    case 'count':
      return countFiltered(connection, request);
    case 'changes':
      return latestChanges(connection, { bucket: request.bucket, ...request.page });
    case 'usage':
      return sumUsage(connection, request.query);
    case 'shared':
      return readShared(connection, request.shared);
  }
}

async function answer(request: ReaderRequest): Promise<void> {
  const { id } = request;
  try {
    parentPort?.postMessage({ id, value: await read(request) });
  } catch (error) {
    // an error that is copied to another thread loses its class
    const failure = error instanceof FaultError ? { code: error.code, reason: error.reason } : { error };
    parentPort?.postMessage({ id, failure });
  }
}

function take(answered: ReaderAnswer<readonly Found[]>): void {
  waiting.get(answered.id)?.(answered);
  waiting.delete(answered.id);
}

parentPort?.on('message', (message: ReaderRequest | ReaderAnswer<readonly Found[]>) => {
  if ('request' in message) void answer(message);
  else take(message);
});
