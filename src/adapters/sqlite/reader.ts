/** The thread that searches a SQLite index. In WAL mode its connections neither wait for the writer nor keep it waiting. readers.ts starts it. */
import { parentPort, workerData } from 'node:worker_threads';
import { FaultError } from '../../domain/fault.ts';
import { createSqliteConnection, type SqliteConnection } from './connection.ts';
import { createSqliteObjects } from './objects.ts';
import type { ReaderOptions, ReaderRequest, ReadRequest } from './readers.ts';
import { createSqliteUsage } from './usage.ts';

const { path, busyTimeoutMs }: ReaderOptions = workerData;
const running = new Map<number, AbortController>();

/**
 * Each read opens the file and closes it, so that no replaced file stays open here between reads. It does not notice that a log
 * beside the file belongs to the file that was replaced: the thread that writes does, by checking its files.
 */
async function read(request: ReadRequest, signal: AbortSignal): Promise<unknown> {
  const connection = createSqliteConnection(path, busyTimeoutMs);
  try {
    connection.use(({ statement }) => statement('PRAGMA query_only = ON').run());
    return await readOn(connection, request, signal);
  } finally {
    connection.close();
  }
}

function readOn(connection: SqliteConnection, request: ReadRequest, signal: AbortSignal): Promise<unknown> {
  // the probe is for writes
  const objects = createSqliteObjects(connection, async () => undefined);
  const sums = createSqliteUsage(connection);
  switch (request.kind) {
    case 'search':
      return objects.search(request.query, signal);
    case 'count':
      return objects.count(request.filter, request.max, signal);
    case 'changes':
      return objects.changes(request.bucket, request.page, signal);
    case 'usage':
      return sums.usage(request.query, signal);
    case 'facets':
      return sums.facets(request.query, signal);
  }
}

async function answer(id: number, request: ReadRequest): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  try {
    parentPort?.postMessage({ id, value: await read(request, controller.signal) });
  } catch (error) {
    // an error that is copied to another thread loses its class
    const failure = error instanceof FaultError ? { code: error.code, reason: error.reason } : { error };
    parentPort?.postMessage({ id, failure });
  } finally {
    running.delete(id);
  }
}

parentPort?.on('message', (message: ReaderRequest) => {
  if (message.request === undefined) running.get(message.id)?.abort();
  else void answer(message.id, message.request);
});
