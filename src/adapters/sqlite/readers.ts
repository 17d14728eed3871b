/** Searches a SQLite index in threads, so that the thread of the daemon indexes events meanwhile. */
import { Worker } from 'node:worker_threads';
import { FaultError, type FaultCode } from '../../domain/fault.ts';
import type { ObjectFilter, ObjectIndex, ObjectQuery } from '../../pipeline/ports/object-index.ts';
import type { FacetsQuery, ObjectUsage, UsageQuery } from '../../pipeline/ports/object-usage.ts';

export interface ReaderOptions {
  readonly path: string;
  readonly busyTimeoutMs: number;
}

interface ReadersDependencies extends ReaderOptions {
  /** What identifies the file that is written. Throws `index.replaced` once it was removed or replaced. */
  readonly fileId: () => string;
}

export type ReadRequest =
  | { readonly kind: 'search'; readonly query: ObjectQuery }
  | { readonly kind: 'count'; readonly filter: ObjectFilter; readonly max: number }
  | { readonly kind: 'changes'; readonly bucket: string; readonly page: Parameters<ObjectIndex['changes']>[1] }
  | { readonly kind: 'usage'; readonly query: UsageQuery }
  | { readonly kind: 'facets'; readonly query: FacetsQuery };

export interface ReaderRequest {
  readonly id: number;
  readonly request: ReadRequest;
  /** The file that is to be read. */
  readonly fileId: string;
  /** Shared with the thread: 1 once the caller no longer waits. */
  readonly ended: Int32Array;
}

type Failure = { readonly code: FaultCode; readonly reason: string } | { readonly error: unknown };

interface ReaderAnswer {
  readonly id: number;
  /** Of the type that the request's function resolves with. */
  readonly value: never;
  readonly failure?: Failure;
}

interface Pending {
  readonly settle: (answer: ReaderAnswer) => void;
  readonly end: () => void;
  readonly fail: (error: unknown) => void;
}

interface Reader {
  readonly worker: Worker;
  readonly pending: Map<number, Pending>;
}

export interface SqliteReaders {
  readonly objects: Pick<ObjectIndex, 'search' | 'count' | 'changes'>;
  readonly usage: ObjectUsage;
  /** Rejects what is being read, and ends the threads. */
  close(): Promise<void>;
}

/** One for a long search or sum, and one for what comes meanwhile. Each takes some 20 MiB. */
const READERS = 2;

/** Beside the program in the package, which is one bundle; beside this file otherwise. */
const entry = new URL(import.meta.url.endsWith('/readers.ts') ? './reader.ts' : './sqlite-reader.js', import.meta.url);

/**
 * Creates the readers, whose threads begin with the first reads. A read sees every write that was answered before it began. An
 * aborted read rejects at once, and its thread ends its statement within some thousand rows. The control plane bounds how many wait,
 * and how long.
 */
export function createSqliteReaders({ fileId, ...options }: ReadersDependencies): SqliteReaders {
  const readers = new Set<Reader>();
  let latest = 0;
  let closed = false;

  function start(): Reader {
    const worker = new Worker(entry, { workerData: options });
    const reader: Reader = { worker, pending: new Map() };
    const end = (reason: string): void => {
      readers.delete(reader);
      for (const { fail } of reader.pending.values()) fail(new FaultError('index.unreachable', reason));
      reader.pending.clear();
    };
    // a process that has nothing else to do ends
    worker.unref();
    worker.on('message', (answer: ReaderAnswer) => reader.pending.get(answer.id)?.settle(answer));
    worker.on('error', (error) => end(`the thread that searches ${options.path} failed: ${String(error)}`));
    worker.on('exit', () => end(`the thread that searches ${options.path} ended`));
    readers.add(reader);
    return reader;
  }

  /** The reader with the least to do: a new one unless one is idle or there are enough. */
  function choose(): Reader {
    const [least] = [...readers].toSorted((a, b) => a.pending.size - b.pending.size);
    return least === undefined || (least.pending.size > 0 && readers.size < READERS) ? start() : least;
  }

  async function ask<Answer>(asked: ReadRequest, signal: AbortSignal | undefined): Promise<Answer> {
    signal?.throwIfAborted();
    if (closed) throw new FaultError('index.unreachable', `${options.path} was closed by this process`);
    const request: ReaderRequest = { id: (latest += 1), request: asked, fileId: fileId(), ended: new Int32Array(new SharedArrayBuffer(4)) };
    const { id } = request;
    const { worker, pending } = choose();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const end = (): void => void Atomics.store(request.ended, 0, 1);
    const abort = (): void => {
      end();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    const settle = ({ value, failure }: ReaderAnswer): void => {
      pending.delete(id);
      // here, since the thread still works on a request that was aborted
      if (pending.size === 0) worker.unref();
      if (failure === undefined) resolve(value);
      else reject(errorOf(failure));
    };
    worker.postMessage(request);
    pending.set(id, { settle, end, fail: reject });
    // the process stays until there is an answer
    worker.ref();
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
    usage: {
      usage: (query, signal) => ask({ kind: 'usage', query }, signal),
      facets: (query, signal) => ask({ kind: 'facets', query }, signal),
    },
    async close() {
      closed = true;
      // a thread ends between two statements
      for (const { pending } of readers) for (const { end } of pending.values()) end();
      await Promise.all([...readers].map(({ worker }) => worker.terminate()));
    },
  };
}

function errorOf(failure: Failure): unknown {
  return 'code' in failure ? new FaultError(failure.code, failure.reason) : failure.error;
}
