/**
 * The only access to OpenSearch: sends each request within one deadline to one of the nodes that answer. The client's own pool knows
 * which do. It leaves out a node that takes no connection, ends one, gives no answer in time or answers 502, 503 or 504, and pings it
 * until it answers. If none is left, it uses each in its turn all the same.
 */
import { readFileSync } from 'node:fs';
import { Client, errors, type ApiResponse } from '@opensearch-project/opensearch';
import { AwsSigv4Signer, type AwsSigv4SignerResponse } from '@opensearch-project/opensearch/aws-v3';
import { FaultError } from '../../base/fault.ts';
import type { Telemetry } from '../../process/telemetry.ts';

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

export interface OpenSearchClient {
  /**
   * Sends the request, and resolves with any HTTP answer, errors included. It is sent once, without retries (the pipeline decides
   * about them), except that the client repeats a repeatable request at another node if one cannot be reached or cannot reach its
   * cluster. Throws `index.unreachable` if no answer came in time, `index.denied` if there are no credentials for signing, and the
   * signal's reason if it is aborted.
   */
  send(request: OpenSearchRequest, signal?: AbortSignal): Promise<OpenSearchAnswer>;
  /** Closes all connections. Requests in flight fail. */
  close(): Promise<void>;
}

export interface ClientOptions {
  /** The nodes of one cluster, with or without `user:pass@`. */
  readonly urls: readonly string[];
  /** The deadline of a request, for all nodes that it is sent to together; of one that changes the cluster, three times as long. */
  readonly requestTimeoutMs: number;
  readonly telemetry?: Pick<Telemetry, 'warnOnce' | 'info'> | undefined;
  readonly caFile?: string | undefined;
  readonly signing?: { readonly region: string; readonly credentials: SigningCredentials } | undefined;
  /** The proxy's variables in the form of Node's agents; absent: requests use no proxy. */
  readonly proxyEnv?: Readonly<Record<string, string>> | undefined;
}

/**
 * How many times longer a change of the cluster may take. OpenSearch waits up to 30 s for its cluster manager and says so then
 * (`cluster_manager_timeout`): three times the usual 15 s leave it the time to say it, and the control plane's 60 s to answer.
 */
const CLUSTER_CHANGE_TIMES = 3;

/**
 * The part of the deadline within which one of several nodes must answer. A sum may take 10 s of the usual 15, and the rest is enough
 * for another node to do what a node that hangs has not done.
 */
const NODE_PART = 0.8;

/** A restarted node is used again soon, and one that stays away costs a ping each 16 s. */
const PING_AFTER = { resurrectTimeout: 1_000, resurrectTimeoutCutoff: 4 };

export function createOpenSearchClient({ urls, requestTimeoutMs, telemetry, ...options }: ClientOptions): OpenSearchClient {
  const nodes = nodesAt(urls);
  const client = new Client({
    ...connectionsOf(options, nodes),
    // the client changes them
    nodes: [...nodes],
    // user metadata can be named __proto__, and such a document must stay readable; it is safe because every answer passes a schema
    disablePrototypePoisoningProtection: true,
  });
  Object.assign(client.connectionPool, PING_AFTER);
  client.on('resurrect', (_, { isAlive, connection: { id: node } }) => {
    if (isAlive) telemetry?.info('a node of the index store answers again', { node });
    else telemetry?.warnOnce('a node of the index store does not answer', node, { node });
  });
  const closing = new AbortController();
  const running = new Set<Promise<unknown>>();
  // kept, because a second close() of the client never resolves
  let closed: Promise<void> | undefined;

  async function close(): Promise<void> {
    closing.abort();
    // the client's close() waits for requests in flight, and checks only once a second whether they ended
    await Promise.allSettled(running);
    await client.close();
  }

  function exchange(request: OpenSearchRequest, signal: AbortSignal | undefined): Promise<OpenSearchAnswer> {
    const timeoutMs = request.changesCluster === true ? CLUSTER_CHANGE_TIMES * requestTimeoutMs : requestTimeoutMs;
    const deadline = createDeadline(timeoutMs, signal === undefined ? [closing.signal] : [closing.signal, signal]);
    // it does not cover the body of an answer, as the deadline does
    const nodeTimeoutMs = nodes.length === 1 ? timeoutMs : NODE_PART * timeoutMs;
    const pending = client.transport.request(paramsOf(request), {
      requestTimeout: nodeTimeoutMs,
      maxRetries: isRepeatable(request) ? nodes.length - 1 : 0,
    });
    const abort = (): void => {
      pending.abort();
    };
    deadline.passed.addEventListener('abort', abort, { once: true });
    const result = pending.catch((error: unknown) => {
      if (error instanceof errors.ResponseError) return error;
      signal?.throwIfAborted();
      if (error instanceof FaultError) throw error;
      const lateMs = deadline.passed.aborted ? timeoutMs : error instanceof errors.TimeoutError ? nodeTimeoutMs : undefined;
      // only the text: the client attaches the request's headers to the error
      const reason = lateMs === undefined ? textOf(error) : `no answer within ${lateMs} ms`;
      throw new FaultError('index.unreachable', `${request.method} ${request.path}: ${reason}`);
    });
    return result.then((answered) => answerOf(answered, request)).finally(() => deadline.clear());
  }

  return {
    async send(request, signal) {
      signal?.throwIfAborted();
      if (closing.signal.aborted) throw new FaultError('index.unreachable', 'the connections to the index store are closed');
      const sent = exchange(request, signal);
      running.add(sent);
      try {
        return await sent;
      } finally {
        running.delete(sent);
      }
    },
    close: () => (closed ??= close()),
  };
}

interface NodeAddress {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/** The distinct nodes. Credentials become a header: the client uses the URL in names and messages. */
function nodesAt(urls: readonly string[]): readonly NodeAddress[] {
  const nodes = urls.map((text) => {
    const url = new URL(text);
    const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    url.username = '';
    url.password = '';
    return { url, headers: credentials === ':' ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } };
  });
  return [...new Map(nodes.map((node) => [node.url.href, node])).values()];
}

function connectionsOf(
  { caFile, signing, proxyEnv }: Pick<ClientOptions, 'caFile' | 'signing' | 'proxyEnv'>,
  nodes: readonly NodeAddress[],
) {
  const hosts = nodes.map(({ url }) => url.hostname);
  return {
    ...(signing !== undefined && signedConnections(signingRegion(hosts, signing.region), signing.credentials)),
    ...(caFile !== undefined && { ssl: { ca: readFileSync(caFile) } }),
    ...(proxyEnv !== undefined && { agent: { keepAlive: true, proxyEnv } }),
  };
}

/** A new object, because the client changes it. */
function paramsOf({ method, path, query, body, lines }: OpenSearchRequest) {
  return {
    method,
    path,
    ...(query !== undefined && { querystring: { ...query } }),
    ...(body !== undefined && { body: { ...body } }),
    ...(lines !== undefined && { bulkBody: lines }),
  };
}

/** The paths of requests that only read, although they have a body or another method. */
const READS = /\/_(?:mget|search|msearch|refresh)$/;

function isRepeatable({ method, path, repeatable }: OpenSearchRequest): boolean {
  return repeatable === true || method === 'GET' || READS.test(path);
}

function answerOf(result: Pick<ApiResponse, 'statusCode' | 'body'>, { read }: OpenSearchRequest): OpenSearchAnswer {
  const { statusCode, body } = result;
  if (read === undefined || statusCode !== 200) return { status: statusCode ?? 0, body };
  read(body);
  result.body = undefined;
  return { status: statusCode, body: undefined };
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : 'no answer';
}

interface Deadline {
  readonly passed: AbortSignal;
  /** To be called when it is done. */
  clear(): void;
}

/**
 * Creates a deadline, which also passes with the first of the signals. (AbortSignal.any() of an AbortSignal.timeout() does
 * not serve: in Node 24 the second can be collected as garbage before its time, and then neither aborts.)
 */
function createDeadline(timeoutMs: number, signals: readonly AbortSignal[]): Deadline {
  const controller = new AbortController();
  const pass = (): void => controller.abort();
  const timer = setTimeout(pass, timeoutMs);
  for (const signal of signals) signal.addEventListener('abort', pass, { once: true });
  return {
    passed: controller.signal,
    clear() {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', pass);
    },
  };
}

// ── requests to Amazon OpenSearch Service are signed (Signature Version 4) by the client's signer with the AWS SDK's credentials ──

/** Matches endpoints of domains: NAME.REGION.es.amazonaws.com, and NAME.aos.REGION.on.aws, which supports IPv6 too. */
const REGION_OF_HOST = /\.([a-z0-9-]+)\.es\.amazonaws\.com(?:\.cn)?$|\.aos\.([a-z0-9-]+)\.on\.aws$/;

/** Returns the credentials that are valid now, or throws within a bounded time. */
export type SigningCredentials = () => Promise<{
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}>;

/** The region in the first host name that contains one, else `fallback` (for a custom endpoint). */
export function signingRegion(hosts: readonly string[], fallback: string): string {
  const match = hosts.map((host) => REGION_OF_HOST.exec(host)).find((found) => found !== null);
  return match?.[1] ?? match?.[2] ?? fallback;
}

/**
 * The options that make the client sign its requests. The signature covers the host without its port, so a domain is only
 * reachable at port 443. Requests throw `index.denied` while there are no credentials.
 */
function signedConnections(region: string, credentials: SigningCredentials): Pick<AwsSigv4SignerResponse, 'Connection' | 'Transport'> {
  async function getCredentials() {
    try {
      return await credentials();
    } catch (error) {
      throw new FaultError('index.denied', error instanceof Error ? error.message : 'the AWS credential chain returned no credentials');
    }
  }

  const { Connection, Transport } = AwsSigv4Signer({ service: 'es', region, getCredentials });
  return { Connection, Transport };
}
