/** The thread that searches a SQLite index. In WAL mode its connections neither wait for the writer nor keep it waiting. readers.ts starts it. */
import { parentPort, workerData } from 'node:worker_threads';
import { FaultError } from '../../domain/fault.ts';
import { createSqliteConnection, type SqliteConnection } from './connection.ts';
import { createSqliteObjects } from './objects.ts';
import type { ReaderOptions, ReaderRequest, ReadRequest } from './readers.ts';
import { createSqliteUsage } from './usage.ts';

const { path, busyTimeoutMs }: ReaderOptions = workerData;

/** Each read opens the file and closes it, so that no replaced file stays open here between reads. */
async function read({ request, fileId, ended }: ReaderRequest): Promise<unknown> {
  const isEnded = (): boolean => Atomics.load(ended, 0) === 1;
  const connection = createSqliteConnection(path, busyTimeoutMs, { fileId, isEnded });
  try {
    return await readOn(connection, request);
  } finally {
    connection.close();
  }
}

function readOn(connection: SqliteConnection, request: ReadRequest): Promise<unknown> {
  // the probe is for writes
  const objects = createSqliteObjects(connection, async () => undefined);
  const sums = createSqliteUsage(connection);
  switch (request.kind) {
    case 'search':
      return objects.search(request.query);
    case 'count':
      return objects.count(request.filter, request.max);
    case 'changes':
      return objects.changes(request.bucket, request.page);
    case 'usage':
      return sums.usage(request.query);
    case 'facets':
      return sums.facets(request.query);
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

parentPort?.on('message', (request: ReaderRequest) => void answer(request));
