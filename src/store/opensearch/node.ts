/** One node of OpenSearch: sends requests, returns any HTTP answer, and keeps credentials out of all error texts. */
import { Client, errors, type ApiResponse, type ClientOptions } from '@opensearch-project/opensearch';
import { FaultError } from '../../base/fault.ts';

export interface OpenSearchRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** A serialised NDJSON body, instead of `body`. */
  readonly lines?: string;
  /** A write that may be executed twice: the effect is that of one, and the second answer shows as much. Every read may be. */
  readonly repeatable?: true;
  /**
   * Reads the body of an answer with status 200, which is dropped then. For large bodies: what waits for an answer is older than its
   * body, and holds it until the next full collection of garbage. Whatever it throws, `send` throws.
   */
  readonly read?: (body: unknown) => void;
  /** It changes the state of the cluster (indices, aliases, mappings), which takes longer where the cluster is busy. */
  readonly changesCluster?: true;
}

export interface OpenSearchAnswer {
  readonly status: number;
  /** The parsed JSON, or the text of an answer that is not JSON; undefined where `read` has read it. */
  readonly body: unknown;
}

export type NodeResult =
  | { readonly kind: 'answered'; readonly answer: OpenSearchAnswer }
  /** No connection was made, so the node has not seen the request. */
  | { readonly kind: 'unsent'; readonly reason: string }
  /** The connection ended, or the answer could not be read. The node may have executed the request. */
  | { readonly kind: 'cut'; readonly reason: string }
  /** `abandoned` was aborted first. The node may have executed the request. */
  | { readonly kind: 'abandoned' };

export interface Node {
  /** The URL without its credentials. */
  readonly name: string;
  /** Sends the request once. Throws `index.denied` if there are no credentials for signing, what `read` throws, and nothing else. */
  request(request: OpenSearchRequest, abandoned: AbortSignal): Promise<NodeResult>;
  /** Closes the connections. No request may be in flight. */
  close(): Promise<void>;
}

/** Longer than any deadline of a request: this file's callers end requests, because the client's time-out does not cover the body of an answer. */
const CLIENT_TIMEOUT_MS = 600_000;

/** Creates the node at a URL with or without `user:pass@`. It connects when it is first used. */
export function createNode(text: string, options: Pick<ClientOptions, 'Connection' | 'Transport' | 'ssl' | 'agent'>): Node {
  const { url, headers } = withoutCredentials(text);
  const client = new Client({
    ...options,
    node: { url, headers },
    maxRetries: 0,
    requestTimeout: CLIENT_TIMEOUT_MS,
    // user metadata can be named __proto__, and such a document must stay readable; it is safe because every answer passes a schema
    disablePrototypePoisoningProtection: true,
  });

  return {
    name: url.href,

    async request(request, abandoned) {
      if (abandoned.aborted) return { kind: 'abandoned' };
      const pending = client.transport.request(transportParams(request));
      const abort = (): void => {
        pending.abort();
      };
      abandoned.addEventListener('abort', abort, { once: true });
      try {
        return { kind: 'answered', answer: answerOf(await pending, request) };
      } catch (error) {
        return failureOf(error, abandoned);
      } finally {
        abandoned.removeEventListener('abort', abort);
      }
    },

    close: () => client.close(),
  };
}

function answerOf(result: ApiResponse, { read }: OpenSearchRequest): OpenSearchAnswer {
  const { statusCode, body } = result;
  if (read === undefined || statusCode !== 200) return { status: statusCode ?? 0, body };
  read(body);
  result.body = undefined;
  return { status: statusCode, body: undefined };
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

/** The credentials become a header. They are removed from the URL, which the client uses in names and messages. */
function withoutCredentials(text: string): { url: URL; headers: Record<string, string> } {
  const url = new URL(text);
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = '';
  url.password = '';
  return { url, headers: credentials === ':' ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } };
}

/** What a rejection of the client means. Only its text is used, because the client attaches the request's headers to the error. */
function failureOf(error: unknown, abandoned: AbortSignal): NodeResult {
  if (error instanceof FaultError) throw error;
  if (error instanceof errors.ResponseError) return { kind: 'answered', answer: { status: error.statusCode, body: error.body } };
  if (abandoned.aborted) return { kind: 'abandoned' };
  const reason = error instanceof Error ? `${error.name}: ${error.message}` : 'no answer';
  return { kind: wasUnsent(error) ? 'unsent' : 'cut', reason };
}

function wasUnsent(error: unknown): boolean {
  // the message is empty if a host name has several addresses and none accepted the connection; a proxy may refuse the tunnel
  return error instanceof errors.ConnectionError && /^(connect |getaddrinfo |Failed to establish tunnel |$)/.test(error.message);
}
