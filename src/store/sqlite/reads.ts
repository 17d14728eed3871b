/** Reads a SQLite index in a separate thread, so that the daemon's own thread can go on indexing events. */
import { Worker } from 'node:worker_threads';
import { FaultError, type FaultCode } from '../../base/fault.ts';
import type { ObjectFilter, ObjectIndex, ObjectMaintenance, ObjectQuery, ObjectScan, SumUsage, UsageQuery } from '../store.ts';

type Page<Name extends 'unsettled' | 'expiring' | 'purge'> = Parameters<ObjectMaintenance[Name]>[1];

/** The thread's requests, with their parameters. */
export interface Questions {
  readonly search: [query: ObjectQuery];
  readonly count: [filter: ObjectFilter, max: number];
  readonly changes: [bucket: string, page: Parameters<ObjectIndex['changes']>[1]];
  readonly latest: [bucket: string, page: Parameters<ObjectIndex['latest']>[1]];
  readonly usage: [query: UsageQuery];
  readonly scan: [bucket: string, range: Parameters<ObjectScan['scan']>[1]];
  readonly unsettled: [bucket: string, page: Page<'unsettled'>];
  readonly unsettledBuckets: [clockBelow: number];
  readonly expiring: [bucket: string, page: Page<'expiring'>];
  readonly tombstones: [bucket: string, page: Page<'purge'>];
}

export type Question<Name extends keyof Questions = keyof Questions> = {
  [Each in Name]: { readonly name: Each; readonly asked: Questions[Each] };
}[Name];

export interface ReaderRequest {
  readonly id: number;
  readonly question: Question;
  /** Shared with the thread: 1 once the caller no longer waits. */
  readonly ended: Int32Array;
}

/** The value has the type that the request's function resolves with. */
export type ReaderAnswer<Value = never> = { readonly id: number } & (
  | { readonly value: Value; readonly failure?: never }
  | { readonly failure: { readonly code: FaultCode; readonly reason: string } | { readonly error: unknown } }
);

interface Pending {
  readonly ended: Int32Array;
  readonly settle: (answer: ReaderAnswer) => void;
}

export interface SqliteReader {
  readonly objects: Pick<ObjectIndex, 'search' | 'count' | 'changes' | 'latest'>;
  readonly scan: Pick<ObjectScan, 'scan' | 'countLive'>;
  readonly maintenance: Pick<ObjectMaintenance, 'unsettled' | 'unsettledBuckets' | 'expiring'>;
  readonly usage: SumUsage;
  /** Tombstones that are old enough to be purged. */
  tombstones(
    bucket: string,
    page: Page<'purge'>,
    signal?: AbortSignal,
  ): Promise<readonly { readonly key: string; readonly clock: number }[]>;
  /** Rejects all reads in progress, and ends the thread. */
  close(): Promise<void>;
}

/** In the package, which is one bundle, it is beside the program; otherwise beside this file. */
const entry = new URL(import.meta.url.endsWith('/reads.ts') ? './reader.ts' : './sqlite-reader.js', import.meta.url);

/**
 * Creates the reader of the file at `path`, whose thread starts with the first read and takes some 20 MiB. A read sees every write
 * that was answered before it began. Sums let other reads in after each short statement; a search waits for the one before it. An
 * aborted read rejects at once, and the thread ends its statement within a few thousand rows. The control plane bounds how many reads
 * wait, and how long.
 */
export function createSqliteReader(path: string): SqliteReader {
  const pending = new Map<number, Pending>();
  let worker: Worker | undefined;
  let latest = 0;
  let closed = false;

  function start(): Worker {
    const started = new Worker(entry, { workerData: path });
    const end = (reason: string): void => {
      // a failed thread exits a moment later, when its successor may already have requests
      if (worker !== started) return;
      worker = undefined;
      for (const [id, { settle }] of pending) settle({ id, failure: { code: 'index.unreachable', reason } });
    };
    // a process with nothing else to do may end
    started.unref();
    started.on('message', (answer: ReaderAnswer) => pending.get(answer.id)?.settle(answer));
    started.on('error', (error) => end(`the thread that reads ${path} failed: ${String(error)}`));
    started.on('exit', () => end(`the thread that reads ${path} ended`));
    return started;
  }

  async function ask<Answer>(question: Question, signal: AbortSignal | undefined): Promise<Answer> {
    signal?.throwIfAborted();
    if (closed) throw new FaultError('index.unreachable', `${path} was closed by this process`);
    const reader = (worker ??= start());
    const id = (latest += 1);
    const ended = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const abort = (): void => {
      endRead(ended);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    const settle = (answer: ReaderAnswer): void => {
      pending.delete(id);
      // here, because the thread may still work on an aborted request
      if (pending.size === 0) reader.unref();
      if (answer.failure === undefined) resolve(answer.value);
      else reject(errorOf(answer.failure));
    };
    pending.set(id, { ended, settle });
    // the process stays alive until there is an answer
    reader.ref();
    reader.postMessage({ id, question, ended } satisfies ReaderRequest);
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  return {
    objects: {
      search: (query, signal) => ask({ name: 'search', asked: [query] }, signal),
      count: (filter, max, signal) => ask({ name: 'count', asked: [filter, max] }, signal),
      changes: (bucket, page, signal) => ask({ name: 'changes', asked: [bucket, page] }, signal),
      latest: (bucket, page, signal) => ask({ name: 'latest', asked: [bucket, page] }, signal),
    },
    scan: {
      scan: (bucket, range, signal) => ask({ name: 'scan', asked: [bucket, range] }, signal),
      countLive: (bucket, prefix, signal) => ask({ name: 'count', asked: [{ bucket, prefix }, Number.MAX_SAFE_INTEGER - 1] }, signal),
    },
    maintenance: {
      unsettled: (bucket, page, signal) => ask({ name: 'unsettled', asked: [bucket, page] }, signal),
      unsettledBuckets: (clockBelow, signal) => ask({ name: 'unsettledBuckets', asked: [clockBelow] }, signal),
      expiring: (bucket, page, signal) => ask({ name: 'expiring', asked: [bucket, page] }, signal),
    },
    usage: (query, signal) => ask({ name: 'usage', asked: [query] }, signal),
    tombstones: (bucket, page, signal) => ask({ name: 'tombstones', asked: [bucket, page] }, signal),
    async close() {
      closed = true;
      // a thread ends between two statements
      for (const { ended } of pending.values()) endRead(ended);
      await worker?.terminate();
    },
  };
}

/** Makes the thread end its current read. */
function endRead(ended: Int32Array): void {
  Atomics.store(ended, 0, 1);
}

function errorOf(failure: NonNullable<ReaderAnswer['failure']>): unknown {
  return 'code' in failure ? new FaultError(failure.code, failure.reason) : failure.error;
}
