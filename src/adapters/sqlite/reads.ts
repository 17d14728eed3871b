/** Searches a SQLite index in a thread, so that the thread of the daemon indexes events meanwhile. */
import { Worker } from 'node:worker_threads';
import { FaultError, type FaultCode } from '../../domain/fault.ts';
import type { ObjectFilter, ObjectIndex, ObjectQuery } from '../../pipeline/ports/object-index.ts';
import type { SumUsage, UsageQuery } from '../../pipeline/ports/object-usage.ts';

export type ReadRequest =
  | { readonly kind: 'search'; readonly query: ObjectQuery }
  | { readonly kind: 'count'; readonly filter: ObjectFilter; readonly max: number }
  | { readonly kind: 'changes'; readonly bucket: string; readonly page: Parameters<ObjectIndex['changes']>[1] }
  | { readonly kind: 'usage'; readonly query: UsageQuery };

export interface ReaderRequest {
  readonly id: number;
  readonly request: ReadRequest;
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
  readonly objects: Pick<ObjectIndex, 'search' | 'count' | 'changes'>;
  readonly usage: SumUsage;
  /** Rejects what is being read, and ends the thread. */
  close(): Promise<void>;
}

/** Beside the program in the package, which is one bundle; beside this file otherwise. */
const entry = new URL(import.meta.url.endsWith('/reads.ts') ? './reader.ts' : './sqlite-reader.js', import.meta.url);

/**
 * Creates the reader of the file at `path`, whose thread begins with the first read and takes some 20 MiB. A read sees every write
 * that was answered before it began. Reads take turns after each short statement, so that none waits for the end of a long one. An
 * aborted read rejects at once, and the thread ends its statement within some thousand rows. The control plane bounds how many wait,
 * and how long.
 */
export function createSqliteReader(path: string): SqliteReader {
  const pending = new Map<number, Pending>();
  let worker: Worker | undefined;
  let latest = 0;
  let closed = false;

  function start(): Worker {
    const started = new Worker(entry, { workerData: path });
    const end = (reason: string): void => {
      if (worker === started) worker = undefined;
      for (const [id, { settle }] of pending) settle({ id, failure: { code: 'index.unreachable', reason } });
    };
    // a process that has nothing else to do ends
    started.unref();
    started.on('message', (answer: ReaderAnswer) => pending.get(answer.id)?.settle(answer));
    started.on('error', (error) => end(`the thread that searches ${path} failed: ${String(error)}`));
    started.on('exit', () => end(`the thread that searches ${path} ended`));
    return started;
  }

  async function ask<Answer>(request: ReadRequest, signal: AbortSignal | undefined): Promise<Answer> {
    signal?.throwIfAborted();
    if (closed) throw new FaultError('index.unreachable', `${path} was closed by this process`);
    const asked = (worker ??= start());
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
      // here, since the thread still works on a request that was aborted
      if (pending.size === 0) asked.unref();
      if (answer.failure === undefined) resolve(answer.value);
      else reject(errorOf(answer.failure));
    };
    pending.set(id, { ended, settle });
    // the process stays until there is an answer
    asked.ref();
    asked.postMessage({ id, request, ended } satisfies ReaderRequest);
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  return {
    objects: {
      search: (query, signal) => ask({ kind: 'search', query }, signal),
      count: (filter, max, signal) => ask({ kind: 'count', filter, max }, signal),
      changes: (bucket, page, signal) => ask({ kind: 'changes', bucket, page }, signal),
    },
    usage: (query, signal) => ask({ kind: 'usage', query }, signal),
    async close() {
      closed = true;
      // a thread ends between two statements
      for (const { ended } of pending.values()) endRead(ended);
      await worker?.terminate();
    },
  };
}

/** Has the thread end what it reads. */
function endRead(ended: Int32Array): void {
  Atomics.store(ended, 0, 1);
}

function errorOf(failure: NonNullable<ReaderAnswer['failure']>): unknown {
  return 'code' in failure ? new FaultError(failure.code, failure.reason) : failure.error;
}
