/** One door to OpenSearch: sends a request, answers whatever HTTP answered, and keeps credentials out of every message. */
import { readFileSync } from 'node:fs';
import { Client, errors } from '@opensearch-project/opensearch';
import { FaultError } from '../../domain/fault.ts';
import { signedConnections, signingRegion } from './signing.ts';

export interface OpenSearchRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** An NDJSON body, serialised already; instead of `body`. */
  readonly lines?: string;
}

export interface OpenSearchAnswer {
  readonly status: number;
  /** Parsed JSON, or the text of an answer that is none. */
  readonly body: unknown;
}

export interface OpenSearchClient {
  /**
   * Sends once, without retries (the pipeline decides them), and resolves with any HTTP answer, errors included; only a
   * node that takes no connection is passed over for the next. Throws `index.unreachable` when no answer came in time,
   * `index.denied` when there are no credentials to sign with; rejects with the signal's reason when it is aborted.
   */
  send(request: OpenSearchRequest, signal?: AbortSignal): Promise<OpenSearchAnswer>;
  /** Closes all connections; running requests fail. */
  close(): Promise<void>;
}

interface ClientOptions {
  /** With or without `user:pass@`; several nodes of one cluster. */
  readonly urls: readonly string[];
  readonly requestTimeoutMs: number;
  readonly caFile?: string | undefined;
  readonly signing?: { readonly region: string } | undefined;
}

/** The client's own time-out goes first: it is by that one that the client learns to leave a silent node alone. */
const DEADLINE_GRACE_MS = 500;

export function createOpenSearchClient({ urls, requestTimeoutMs, caFile, signing }: ClientOptions): OpenSearchClient {
  const nodes = [...new Set(urls)].map(nodeOf);
  const hosts = nodes.map(({ url }) => url.hostname);
  const client = new Client({
    ...(signing !== undefined && signedConnections(signingRegion(hosts, signing.region))),
    ...(caFile !== undefined && { ssl: { ca: readFileSync(caFile) } }),
    nodes,
    maxRetries: 0,
    requestTimeout: requestTimeoutMs,
    // a user's metadata may be named __proto__: a document that holds it must stay readable; every answer passes a schema
    disablePrototypePoisoningProtection: true,
  });
  // a second close() of the client would never resolve
  let closed: Promise<void> | undefined;
  /** By their aborts. */
  const running = new Map<() => void, Promise<unknown>>();

  async function close(): Promise<void> {
    // the client's own close() waits for running requests, and looks once a second whether they ended
    for (const abort of running.keys()) abort();
    await Promise.allSettled(running.values());
    await client.close();
  }

  /** Rejects with the client's own error when there was no answer. */
  async function attempt(request: OpenSearchRequest, signal?: AbortSignal): Promise<OpenSearchAnswer> {
    signal?.throwIfAborted();
    const pending = client.transport.request(transportParams(request));
    const abort = (): void => {
      pending.abort();
    };
    // the client's own time-out ends with the first byte of the answer: a stalled body would be waited for for ever
    const deadline = setTimeout(abort, requestTimeoutMs + DEADLINE_GRACE_MS);
    signal?.addEventListener('abort', abort, { once: true });
    running.set(abort, pending);
    try {
      const { statusCode, body } = await pending;
      return { status: statusCode ?? 0, body };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof errors.ResponseError) return { status: error.statusCode, body: error.body };
      throw error;
    } finally {
      clearTimeout(deadline);
      signal?.removeEventListener('abort', abort);
      running.delete(abort);
    }
  }

  return {
    async send(request, signal) {
      for (let others = nodes.length - 1; ; others -= 1) {
        try {
          return await attempt(request, signal);
        } catch (error) {
          signal?.throwIfAborted();
          if (error instanceof FaultError) throw error;
          if (others > 0 && !wasConnected(error)) continue;
          throw new FaultError('index.unreachable', `${request.method} ${request.path}: ${reasonOf(error, requestTimeoutMs)}`);
        }
      }
    },
    close: () => (closed ??= close()),
  };
}

/** In an object of its own: the client writes into it. */
function transportParams({ method, path, query, body, lines }: OpenSearchRequest) {
  return {
    method,
    path,
    ...(query !== undefined && { querystring: { ...query } }),
    ...(body !== undefined && { body: { ...body } }),
    ...(lines !== undefined && { bulkBody: lines }),
  };
}

/** Credentials travel as a header of the node: its URL, which the client puts into names and messages, is without them. */
function nodeOf(text: string): { url: URL; headers: Record<string, string> } {
  const url = new URL(text);
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = '';
  url.password = '';
  return { url, headers: credentials === ':' ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } };
}

/** Whether the request may have reached a node: asking another one then could do it twice. */
function wasConnected(error: unknown): boolean {
  // without a text: no address of a name with several took the connection
  return !(error instanceof errors.ConnectionError && /^(connect |getaddrinfo |$)/.test(error.message));
}

/** Never the error itself: what the client attaches to it holds the request's headers. */
function reasonOf(error: unknown, requestTimeoutMs: number): string {
  const aborted = error instanceof errors.RequestAbortedError || error instanceof errors.TimeoutError;
  if (aborted) return `no answer within ${requestTimeoutMs} ms`;
  return error instanceof Error ? `${error.name}: ${error.message}` : 'no answer';
}
