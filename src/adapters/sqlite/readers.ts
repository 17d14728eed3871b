/** Searches a SQLite index in threads, so that the thread of the daemon indexes events meanwhile. */
import { Worker } from 'node:worker_threads';
import { FaultError, type FaultCode } from '../../domain/fault.ts';
import type { ObjectFilter, ObjectIndex, ObjectQuery } from '../../pipeline/ports/object-index.ts';
import type { SumUsage, UsageQuery } from '../../pipeline/ports/object-usage.ts';
import type { SharedRanges } from './filtered.ts';

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
  | { readonly kind: 'shared'; readonly shared: SharedRanges };

export interface ReaderRequest {
  readonly id: number;
  readonly request: ReadRequest;
  /** The file that is to be read. */
  readonly fileId: string;
  /** Shared with the thread: 1 once the caller no longer waits. */
  readonly ended: Int32Array;
}

type Failure = { readonly code: FaultCode; readonly reason: string } | { readonly error: unknown };

/** The value has the type that the request's function resolves with. */
export type ReaderAnswer<Value = never> = { readonly id: number } & (
  | { readonly value: Value; readonly failure?: never }
  | { readonly failure: Failure }
);

/** A reader shares the ranges of its request `id`. It gets one answer with this id. */
export interface SharedRequest {
  readonly id: number;
  readonly shared: SharedRanges;
}

interface Pending extends Omit<ReaderRequest, 'id'> {
  readonly settle: (answer: ReaderAnswer) => void;
}

interface Reader {
  readonly worker: Worker;
  readonly pending: Map<number, Pending>;
}

export interface SqliteReaders {
  readonly objects: Pick<ObjectIndex, 'search' | 'count' | 'changes'>;
  readonly usage: SumUsage;
  /** Rejects what is being read, and ends the threads. */
  close(): Promise<void>;
}

/** One for a long search or sum, and one for what comes meanwhile, which reads a part of the search while nothing comes. Each takes some 20 MiB. */
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
      for (const [id, { settle }] of reader.pending) settle({ id, failure: { code: 'index.unreachable', reason } });
    };
    // a process that has nothing else to do ends
    worker.unref();
    worker.on('message', (message: ReaderAnswer | SharedRequest) => {
      if ('shared' in message) share(reader, message);
      else reader.pending.get(message.id)?.settle(message);
    });
    worker.on('error', (error) => end(`the thread that searches ${options.path} failed: ${String(error)}`));
    worker.on('exit', () => end(`the thread that searches ${options.path} ended`));
    readers.add(reader);
    return reader;
  }

  /** The reader with the least to do: a new one unless one is idle or there are enough. */
  function choose(): Reader {
    const [least] = [...readers].toSorted((a, b) => loadOf(a) - loadOf(b));
    return least === undefined || (least.pending.size > 0 && readers.size < READERS) ? start() : least;
  }

  /** Has a reader answer a request. */
  function send({ worker, pending }: Reader, asked: Omit<ReaderRequest, 'id'>, answered: (answer: ReaderAnswer) => void): void {
    const id = (latest += 1);
    const settle = (answer: ReaderAnswer): void => {
      pending.delete(id);
      // here, since the thread still works on a request that was aborted
      if (pending.size === 0) worker.unref();
      answered(answer);
    };
    worker.postMessage({ id, ...asked } satisfies ReaderRequest);
    pending.set(id, { ...asked, settle });
    // the process stays until there is an answer
    worker.ref();
  }

  /** The reader that has nothing to do, if there is one: a request is also answered without it. */
  function idle(): Reader | undefined {
    try {
      const reader = choose();
      return reader.pending.size === 0 ? reader : undefined;
    } catch {
      // the system has no thread left
      return undefined;
    }
  }

  /** Has an idle reader read ranges of another one's request, and passes on its answer. Without an idle one that is empty. */
  function share({ worker, pending }: Reader, { id, shared }: SharedRequest): void {
    const asking = pending.get(id);
    if (closed || asking === undefined) return;
    const asked = { fileId: asking.fileId, ended: asking.ended };
    const other = idle();
    if (other === undefined) worker.postMessage({ id, value: [] });
    else send(other, { ...asked, request: { kind: 'shared', shared } }, (answer) => worker.postMessage({ ...answer, id }));
  }

  async function ask<Answer>(asked: ReadRequest, signal: AbortSignal | undefined): Promise<Answer> {
    signal?.throwIfAborted();
    if (closed) throw new FaultError('index.unreachable', `${options.path} was closed by this process`);
    const request = { request: asked, fileId: fileId(), ended: new Int32Array(new SharedArrayBuffer(4)) };
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const abort = (): void => {
      endRead(request);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    send(choose(), request, (answer) => {
      if (answer.failure === undefined) resolve(answer.value);
      else reject(errorOf(answer.failure));
    });
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
      for (const { pending } of readers) for (const request of pending.values()) endRead(request);
      await Promise.all([...readers].map(({ worker }) => worker.terminate()));
    },
  };
}

/** A sum is one statement, behind which others would wait for seconds; searches take turns. */
const SUM_LOAD = 1_000;

function loadOf({ pending }: Reader): number {
  return pending.values().reduce((sum, { request }) => sum + (request.kind === 'usage' ? SUM_LOAD : 1), 0);
}

/** Has a thread end what it reads. */
function endRead({ ended }: Pick<ReaderRequest, 'ended'>): void {
  Atomics.store(ended, 0, 1);
}

export function errorOf(failure: Failure): unknown {
  return 'code' in failure ? new FaultError(failure.code, failure.reason) : failure.error;
}
