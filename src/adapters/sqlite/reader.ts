/** The thread that searches a SQLite index. In WAL mode its connection neither waits for the writer nor keeps it waiting. reads.ts starts it. */
import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';
import { FaultError } from '../../domain/fault.ts';
import { latestChanges } from './changes.ts';
import { createSqliteConnection, type SqliteReads } from './connection.ts';
import { countFiltered, searchFiltered } from './filtered.ts';
import { ENDED } from './functions.ts';
import type { ReaderAnswer, ReaderRequest, ReadRequest } from './reads.ts';
import { isPlain, searchObjects } from './search.ts';
import { sumUsage } from './usage.ts';

/** Of the request whose statement runs. */
let running: ReaderRequest | undefined;
const isOver = (request: ReaderRequest | undefined): boolean => request !== undefined && Atomics.load(request.ended, 0) === 1;

const connection = createSqliteConnection(z.string().parse(workerData), 'ro', () => isOver(running));

/** The connection for one request: the statements of several take turns. */
function readsOf(request: ReaderRequest): SqliteReads {
  return {
    use(work) {
      running = request;
      if (isOver(request)) throw new Error(ENDED);
      return connection.use(work);
    },
  };
}

async function read(reads: SqliteReads, request: ReadRequest): Promise<unknown> {
  switch (request.kind) {
    case 'search':
      return isPlain(request.query) ? reads.use((session) => searchObjects(session, request.query)) : searchFiltered(reads, request.query);
    case 'count':
      return countFiltered(reads, request);
    case 'changes':
      return latestChanges(reads, { bucket: request.bucket, ...request.page });
    case 'usage':
      return sumUsage(reads, request.query);
  }
}

async function answer(request: ReaderRequest): Promise<ReaderAnswer<unknown>> {
  const { id } = request;
  try {
    return { id, value: await read(readsOf(request), request.request) };
  } catch (error) {
    // an error that is copied to another thread loses its class
    return { id, failure: error instanceof FaultError ? { code: error.code, reason: error.reason } : { error } };
  }
}

parentPort?.on('message', (request: ReaderRequest) => void answer(request).then((answered) => parentPort?.postMessage(answered)));
