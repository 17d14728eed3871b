/** The only access to OpenSearch: sends each request to a node that answers, within one deadline. */
import { readFileSync } from 'node:fs';
import { FaultError } from '../../base/fault.ts';
import type { Clock } from '../../process/clock.ts';
import type { Telemetry } from '../../process/telemetry.ts';
import { errorOf } from './faults.ts';
import { createNode, type Node, type NodeResult, type OpenSearchAnswer, type OpenSearchRequest } from './node.ts';
import { createNodes, type KnownNode, type Nodes, createDeadline } from './nodes.ts';
import { AwsSigv4Signer, type AwsSigv4SignerResponse } from '@opensearch-project/opensearch/aws-v3';

export type { OpenSearchAnswer, OpenSearchRequest } from './node.ts';

export interface OpenSearchClient {
  /**
   * Sends the request, and resolves with any HTTP answer, errors included. It is sent once, without retries (the pipeline
   * decides about them), except to another node: if a node accepts no connection or cannot reach its cluster, and, if the
   * request is repeatable, also if the node ends the connection or stops answering. Throws `index.unreachable` if no answer
   * came in time, `index.foreign-node` if the nodes belong to different clusters, `index.denied` if there are no credentials
   * for signing, and the signal's reason if it is aborted.
   */
  send(request: OpenSearchRequest, signal?: AbortSignal): Promise<OpenSearchAnswer>;
  /** Closes all connections. Requests in flight fail. */
  close(): Promise<void>;
}

interface ClientOptions {
  /** The nodes of one cluster, with or without `user:pass@`. */
  readonly urls: readonly string[];
  /** The deadline of a request, for all nodes that it is sent to together; of one that changes the cluster, three times as long. */
  readonly requestTimeoutMs: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly telemetry?: Pick<Telemetry, 'warn' | 'info'> | undefined;
  readonly caFile?: string | undefined;
  readonly signing?: { readonly region: string; readonly credentials: SigningCredentials } | undefined;
  /** The proxy's variables in the form of Node's agents; absent: requests use no proxy. */
  readonly proxyEnv?: Readonly<Record<string, string>> | undefined;
}

/** Where there are several nodes, one that has not answered for this long is checked. Most requests take milliseconds; a bulk request may wait 5 s for a primary shard, and its node answers the check meanwhile. */
const PATIENCE_MS = 3_000;

/**
 * How many times longer a change of the cluster may take. OpenSearch waits up to 30 s for its cluster manager and says so then
 * (`cluster_manager_timeout`): three times the usual 15 s leave it the time to say it, and the control plane's 60 s to answer.
 */
const CLUSTER_CHANGE_TIMES = 3;

export function createOpenSearchClient(options: ClientOptions): OpenSearchClient {
  const { urls, requestTimeoutMs, clock, telemetry } = options;
  const closing = new AbortController();
  const nodes = nodesOf(options, urls);
  const several = nodes.length === 1 ? undefined : createNodes({ nodes, clock, telemetry, closed: closing.signal });
  const running = new Set<Promise<unknown>>();
  // kept, because a second close() of a node never resolves
  let closed: Promise<void> | undefined;

  async function close(): Promise<void> {
    closing.abort();
    // a node's close() waits for requests in flight, and checks only once a second whether they ended
    await Promise.allSettled(running);
    await Promise.all(nodes.map((node) => node.close()));
  }

  async function sendWithin(request: OpenSearchRequest, abandoned: AbortSignal): Promise<NodeResult> {
    const [only] = nodes;
    if (only === undefined) throw new Error('a client needs a node');
    if (several === undefined) return only.request(request, abandoned);
    await several.acquainted();
    return sendToSeveral(several, request, abandoned);
  }

  return {
    async send(request, signal) {
      signal?.throwIfAborted();
      const timeoutMs = request.changesCluster === true ? CLUSTER_CHANGE_TIMES * requestTimeoutMs : requestTimeoutMs;
      const deadline = createDeadline(timeoutMs, signal === undefined ? [closing.signal] : [closing.signal, signal]);
      const sent = sendWithin(request, deadline.abandoned);
      running.add(sent);
      try {
        const result = await sent;
        if (result.kind === 'answered') return result.answer;
        signal?.throwIfAborted();
        const reason = result.kind === 'abandoned' ? `no answer within ${timeoutMs} ms` : result.reason;
        throw new FaultError('index.unreachable', `${request.method} ${request.path}: ${reason}`);
      } catch (error) {
        signal?.throwIfAborted();
        throw error;
      } finally {
        running.delete(sent);
        deadline.clear();
      }
    },
    close: () => (closed ??= close()),
  };
}

function nodesOf({ caFile, signing, proxyEnv }: ClientOptions, urls: readonly string[]): readonly Node[] {
  const distinct = [...new Set(urls)];
  const hosts = distinct.map((url) => new URL(url).hostname);
  const connections = {
    ...(signing !== undefined && signedConnections(signingRegion(hosts, signing.region), signing.credentials)),
    ...(caFile !== undefined && { ssl: { ca: readFileSync(caFile) } }),
    ...(proxyEnv !== undefined && { agent: { keepAlive: true, proxyEnv } }),
  };
  return distinct.map((url) => createNode(url, connections));
}

/** Sends the request to one node after another, each once, until it need not or must not be sent to another. */
async function sendToSeveral(nodes: Nodes, request: OpenSearchRequest, abandoned: AbortSignal): Promise<NodeResult> {
  const tried = new Set<KnownNode>();
  let last: NodeResult | undefined;
  while (!abandoned.aborted) {
    const known = nodes.next(tried) ?? (await nodes.revive(tried));
    if (known === undefined) return last ?? { kind: 'unsent', reason: nodes.reasons() };
    tried.add(known);
    last = await attempt(nodes, known, { request, abandoned });
    const trouble = troubleOf(last);
    if (trouble === undefined) return last;
    if (!abandoned.aborted) nodes.markDown(known, trouble);
    if (!mayRepeat(request, last)) return last;
  }
  return last ?? { kind: 'abandoned' };
}

interface Attempt {
  readonly request: OpenSearchRequest;
  readonly abandoned: AbortSignal;
}

/** Sends the request to one node. If it stops answering altogether, a repeatable request is abandoned, so that another node may get it. */
async function attempt(nodes: Nodes, known: KnownNode, { request, abandoned }: Attempt): Promise<NodeResult> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const endIfSilent = async (): Promise<void> => {
    if (!(await nodes.check(known)) && isRepeatable(request)) end();
  };
  abandoned.addEventListener('abort', end, { once: true });
  const patience = setTimeout(() => void endIfSilent(), PATIENCE_MS);
  try {
    return await known.node.request(request, ending.signal);
  } finally {
    clearTimeout(patience);
    abandoned.removeEventListener('abort', end);
  }
}

/** What is wrong with a node that gave this result; undefined if it works. */
function troubleOf(result: NodeResult): string | undefined {
  switch (result.kind) {
    case 'answered':
      return isOutsideCluster(result.answer) ? `it answered ${result.answer.status}` : undefined;
    case 'unsent':
    case 'cut':
      return result.reason;
    case 'abandoned':
      return 'it did not answer';
  }
}

function mayRepeat(request: OpenSearchRequest, result: NodeResult): boolean {
  return result.kind === 'unsent' || isRepeatable(request);
}

/** The paths of requests that only read, although they have a body or another method. */
const READS = /\/_(?:mget|search|msearch|refresh)$/;

function isRepeatable({ method, path, repeatable }: OpenSearchRequest): boolean {
  return repeatable === true || method === 'GET' || READS.test(path);
}

/** Whether a proxy answers in place of the node, or a node that has lost its cluster. */
function isOutsideCluster(answer: OpenSearchAnswer): boolean {
  if (answer.status !== 502 && answer.status !== 503 && answer.status !== 504) return false;
  const error = errorOf(answer);
  if (error.type === 'cluster_block_exception') return !(error.reason ?? '').startsWith('index [');
  return error.type === `http_${answer.status}` || error.type === 'cluster_manager_not_discovered_exception';
}

/** Signs requests for Amazon OpenSearch Service (Signature Version 4) with the client's signer and the AWS SDK's credentials. */

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
