/**
 * The thread that reads a SQLite index, started by reads.ts. In WAL mode, its connection neither waits for the writer nor makes it wait.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import { changesOf, latestOf } from './changes.ts';
import { expiringDocuments, oldTombstones, scanObjects, unsettledBuckets, unsettledDocuments } from './scan.ts';
import { createSqliteConnection, type SqliteReads } from './connection.ts';
import { ENDED } from './conditions.ts';
import type { Question, Questions, ReaderAnswer, ReaderRequest } from './reads.ts';
import { countObjects, searchObjects, sumUsage } from './search.ts';

const answers: { readonly [Name in keyof Questions]: (reads: SqliteReads, ...asked: Questions[Name]) => Promise<unknown> } = {
  search: searchObjects,
  count: countObjects,
  changes: changesOf,
  latest: latestOf,
  usage: sumUsage,
  scan: scanObjects,
  unsettled: unsettledDocuments,
  unsettledBuckets,
  expiring: expiringDocuments,
  tombstones: oldTombstones,
};

/** The flag of the request whose statement is running. */
let running: ReaderRequest | undefined;
const isOver = (request: ReaderRequest | undefined): boolean => request !== undefined && Atomics.load(request.ended, 0) === 1;

const connection = createSqliteConnection(z.string().parse(workerData), 'ro', () => isOver(running));

/** The connection on behalf of one request: several requests' statements take turns. */
function readsOf(request: ReaderRequest): SqliteReads {
  return {
    use(work) {
      running = request;
      if (isOver(request)) throw new Error(ENDED);
      return connection.use(work);
    },
  };
}

function read<Name extends keyof Questions>(reads: SqliteReads, { name, asked }: Question<Name>): Promise<unknown> {
  return answers[name](reads, ...asked);
}

async function answer(request: ReaderRequest): Promise<ReaderAnswer<unknown>> {
  const { id } = request;
  try {
    return { id, value: await read(readsOf(request), request.question) };
  } catch (error) {
    // an error loses its class when it is copied to another thread
    return { id, failure: error instanceof FaultError ? { code: error.code, reason: error.reason } : { error } };
  }
}

parentPort?.on('message', (request: ReaderRequest) => void answer(request).then((answered) => parentPort?.postMessage(answered)));
