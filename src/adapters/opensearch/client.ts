/** The only access to OpenSearch: sends requests, returns any HTTP answer, and keeps credentials out of all error texts. */
import { readFileSync } from 'node:fs';
import { Client, errors } from '@opensearch-project/opensearch';
import { FaultError } from '../../domain/fault.ts';
import { signedConnections, signingRegion, type SigningCredentials } from './signing.ts';

export interface OpenSearchRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** A serialised NDJSON body, instead of `body`. */
  readonly lines?: string;
}

export interface OpenSearchAnswer {
  readonly status: number;
  /** The parsed JSON, or the text of an answer that is not JSON. */
  readonly body: unknown;
}

export interface OpenSearchClient {
  /**
   * Sends the request once, without retries (the pipeline decides about them), and resolves with any HTTP answer, errors
   * included. Only if a node accepts no connection, the request is sent to another node. Throws `index.unreachable` if no
   * answer came in time, `index.denied` if there are no credentials for signing, and the signal's reason if it is aborted.
   */
  send(request: OpenSearchRequest, signal?: AbortSignal): Promise<OpenSearchAnswer>;
  /** Closes all connections. Requests in flight fail. */
  close(): Promise<void>;
}

interface ClientOptions {
  /** The nodes of one cluster, with or without `user:pass@`. */
  readonly urls: readonly string[];
  readonly requestTimeoutMs: number;
  readonly caFile?: string | undefined;
  readonly signing?: { readonly region: string; readonly credentials: SigningCredentials } | undefined;
  /** The proxy's variables in the form of Node's agents; absent: requests use no proxy. */
  readonly proxyEnv?: Readonly<Record<string, string>> | undefined;
}

/** The client's own time-out must expire before this deadline, because only then the client avoids the silent node afterwards. */
const DEADLINE_GRACE_MS = 500;

export function createOpenSearchClient({ urls, requestTimeoutMs, caFile, signing, proxyEnv }: ClientOptions): OpenSearchClient {
  const nodes = [...new Set(urls)].map(nodeOf);
  const hosts = nodes.map(({ url }) => url.hostname);
  const agent = { keepAlive: true, proxyEnv };
  const client = new Client({
    ...(signing !== undefined && signedConnections(signingRegion(hosts, signing.region), signing.credentials)),
    ...(caFile !== undefined && { ssl: { ca: readFileSync(caFile) } }),
    ...(proxyEnv !== undefined && { agent }),
    nodes,
    maxRetries: 0,
    requestTimeout: requestTimeoutMs,
    // user metadata can be named __proto__, and such a document must stay readable; it is safe because every answer passes a schema
    disablePrototypePoisoningProtection: true,
  });
  // kept, because a second close() of the client never resolves
  let closed: Promise<void> | undefined;
  /** The requests in flight, by the functions that abort them. */
  const running = new Map<() => void, Promise<unknown>>();

  async function close(): Promise<void> {
    // the client's own close() waits for requests in flight, and checks only once a second whether they ended
    for (const abort of running.keys()) abort();
    await Promise.allSettled(running.values());
    await client.close();
  }

  /** Sends the request to one node. Rejects with the client's own error if there was no answer. */
  async function attempt(request: OpenSearchRequest, signal?: AbortSignal): Promise<OpenSearchAnswer> {
    signal?.throwIfAborted();
    const pending = client.transport.request(transportParams(request));
    const abort = (): void => {
      pending.abort();
    };
    // the client's own time-out covers only the time until the first byte of the answer: a stalled body would never end
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

/** A new object, because the client changes it. */
function transportParams({ method, path, query, body, lines }: OpenSearchRequest) {
  return {
    method,
    path,
    ...(query !== undefined && { querystring: { ...query } }),
    ...(body !== undefined && { body: { ...body } }),
    ...(lines !== undefined && { bulkBody: lines }),
  };
}

/** The node with its credentials as a header. They are removed from its URL, which the client uses in names and messages. */
function nodeOf(text: string): { url: URL; headers: Record<string, string> } {
  const url = new URL(text);
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = '';
  url.password = '';
  return { url, headers: credentials === ':' ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } };
}

/** Whether the request may have reached a node. Sending it to another node could then execute it twice. */
function wasConnected(error: unknown): boolean {
  // the message is empty if a host name has several addresses and none accepted the connection; a proxy may refuse the tunnel
  return !(error instanceof errors.ConnectionError && /^(connect |getaddrinfo |Failed to establish tunnel |$)/.test(error.message));
}

/** A text for the error. The error itself is never used, because the client attaches the request's headers to it. */
function reasonOf(error: unknown, requestTimeoutMs: number): string {
  const aborted = error instanceof errors.RequestAbortedError || error instanceof errors.TimeoutError;
  if (aborted) return `no answer within ${requestTimeoutMs} ms`;
  return error instanceof Error ? `${error.name}: ${error.message}` : 'no answer';
}
