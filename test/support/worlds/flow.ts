/** A queue world, an index of one kind and the daemons that serve them: what every flow test begins with. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../servers/aws.ts';
import { startDaemon } from '../servers/daemon.ts';
import type { Daemon, Environment } from '../servers/daemon.ts';
import { startFaultProxy } from '../servers/fault-proxy.ts';
import type { FaultProxy } from '../servers/fault-proxy.ts';
import { raw, serverUrl } from '../servers/opensearch.ts';
import { startQueueWorld } from './queue.ts';
import type { QueueWorld, WorldBucket, WorldOptions } from './queue.ts';
import { opensearchUrl } from '../servers/found.ts';

export type IndexKind = 'sqlite' | 'opensearch';

/** The kinds of index that this run has. */
export const indexKinds: readonly IndexKind[] = opensearchUrl() === undefined ? ['sqlite'] : ['sqlite', 'opensearch'];

export type Flow = Awaited<ReturnType<typeof openFlow>>;

/** An index of one kind with the settings for it. */
export interface TestIndex {
  readonly env: Environment;
  readonly proxy?: FaultProxy;
  close(): Promise<void>;
}

/** Opens a flow: nothing runs yet. */
export async function openFlow(kind: IndexKind, options?: WorldOptions) {
  const [world, testIndex] = await Promise.all([startQueueWorld(options), openIndex(kind)]);
  const env: Environment = { ...world.env, ...testIndex.env };
  const daemons: Daemon[] = [];
  let isConnected = false;
  return {
    world,
    /** The proxy before OpenSearch. Throws for a SQLite index, which nothing is between. */
    get index() {
      if (testIndex.proxy === undefined) throw new Error('nothing is between a daemon and its SQLite file');
      return testIndex.proxy;
    },
    /** The settings of a daemon of this flow. */
    env,
    /** Starts a daemon, connects both buckets once, and waits until it is ready; unless told otherwise. */
    async start(more: Environment = {}, { awaitReady = true } = {}): Promise<Daemon> {
      const daemon = await startDaemon({ ...env, ...more });
      daemons.push(daemon);
      if (!awaitReady) return daemon;
      if (!isConnected) await connectBuckets(daemon, world);
      isConnected = true;
      await daemon.ready();
      return daemon;
    },
    /** Resolves when the daemon's search finds exactly what the bucket holds and the queue is empty. Fails, with what differs, after `timeoutMs`. */
    async converged(daemon: Daemon, timeoutMs?: number): Promise<void> {
      let difference: unknown;
      const isConverged = async (): Promise<boolean> => {
        difference = await differenceOf(daemon, world);
        return difference === undefined;
      };
      await until('index and bucket agree', isConverged, timeoutMs).catch((error: unknown) => {
        const told = [JSON.stringify(difference), ...daemon.log.slice(-20).map((line) => JSON.stringify(line))];
        throw new Error(`index and bucket do not agree: ${told.join('\n')}`, { cause: error });
      });
    },
    /** Kills what runs, and removes the index. */
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(daemons.map((daemon) => daemon.kill()));
      await Promise.all([world.close(), testIndex.close()]);
    },
  };
}

/** Connects both buckets of a world without a re-index, as soon as the daemon can. */
export async function connectBuckets(daemon: Daemon, world: QueueWorld): Promise<void> {
  for (const { bucket } of [world, world.neighbour])
    await until('the bucket is connected', async () => {
      const { status } = await daemon.request('POST', '/v1/buckets', { bucket, reindex: false, wired_by_hand: true });
      return status === 200 || status === 201;
    });
}

/** A fresh index; `close` removes it. */
export function openIndex(kind: IndexKind): Promise<TestIndex> {
  return kind === 'sqlite' ? openSqliteIndex() : openOpenSearchIndex();
}

async function openSqliteIndex(): Promise<TestIndex> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-flow-'));
  return {
    env: { TALLY_INDEX_URL: `sqlite:${join(folder, 'index.sqlite')}` },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A fresh prefix of this run's OpenSearch, reached through a proxy. */
async function openOpenSearchIndex(): Promise<TestIndex> {
  const prefix = `flow${randomBytes(6).toString('hex')}`;
  const proxy = await startFaultProxy(serverUrl());
  return {
    proxy,
    env: { TALLY_INDEX_URL: proxy.url, TALLY_INDEX_PREFIX: prefix, TALLY_INDEX_REPLICAS: '0' },
    async close() {
      await proxy.close();
      await raw('DELETE', `/${prefix}-*?expand_wildcards=all`);
    },
  };
}

async function differenceOf(daemon: Daemon, world: QueueWorld): Promise<unknown> {
  const { visible, inFlight } = world.messages();
  if (visible.length + inFlight.length > 0) return { visible: visible.length, inFlight: inFlight.length };
  return bucketDifference(daemon, world);
}

/** How what a search finds differs from what a bucket holds; undefined when it does not. */
export async function bucketDifference(daemon: Daemon, world: WorldBucket): Promise<unknown> {
  const found = await indexed(daemon, world.bucket);
  if (found === undefined) return 'no answer to a search';
  const wanted = world.objects();
  const missing = [...wanted].filter(([key, etag]) => found.get(key) !== etag).map(([key]) => key);
  const tooMuch = [...found.keys()].filter((key) => !wanted.has(key));
  if (missing.length + tooMuch.length === 0) return undefined;
  return { bucket: world.bucket, missing: missing.length, examples: missing.slice(0, 5), tooMuch: tooMuch.slice(0, 5) };
}

interface SearchPage {
  readonly items: readonly { readonly key: string; readonly etag?: string }[];
  readonly next?: string;
}

/** Etags by key of all live documents of a bucket, as a client of the control plane finds them; undefined while it answers none. */
export async function indexed(daemon: Daemon, bucket: string): Promise<ReadonlyMap<string, string | undefined> | undefined> {
  const found = new Map<string, string | undefined>();
  let cursor = '';
  do {
    const { status, body } = await daemon.request('GET', `/v1/objects?bucket=${bucket}&limit=1000${cursor}`);
    if (status !== 200) return undefined;
    const page = body as SearchPage;
    for (const { key, etag } of page.items) found.set(key, etag);
    cursor = page.next === undefined ? '' : `&cursor=${encodeURIComponent(page.next)}`;
  } while (cursor !== '');
  return found;
}
