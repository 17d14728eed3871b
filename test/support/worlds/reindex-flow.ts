/**
 * Daemons that re-index buckets of the listing server: queues on LocalStack, the index on OpenSearch, a control plane that
 * outlives the workers.
 */
import { randomBytes } from 'node:crypto';
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import { documentOf } from '../../../src/ordering/document.ts';
import { hasEnded } from '../../../src/records/job.ts';
import type { Job } from '../../../src/registry/contract/job.ts';
import type { Store, ScannedDocument } from '../../../src/store/store.ts';
import { createTestAws, until } from '../servers/aws.ts';
import { startDaemon } from '../servers/daemon.ts';
import type { Daemon, Environment } from '../servers/daemon.ts';
import type { Contents } from '../servers/listing/contents.ts';
import { createKeySpace } from '../servers/listing/key-space.ts';
import type { KeyShape } from '../servers/listing/key-space.ts';
import { startListingServer } from '../servers/listing/listing-server.ts';
import type { ListingServer } from '../servers/listing/listing-server.ts';
import { openTestStore, serverUrl } from '../servers/opensearch.ts';
import { awsEndpoint } from '../servers/found.ts';

export interface ReindexFlow {
  readonly listing: ListingServer;
  readonly store: Store;
  /** Serves the control plane, and works on nothing. */
  readonly registry: Daemon;
  /** Starts a worker of the reindex role. */
  startWorker(env?: Environment): Promise<Daemon>;
  /** A bucket with the first `count` keys of a shape, connected; its index holds the documents of the first `indexed` of them. */
  createBucket(options: { readonly shape?: KeyShape; readonly count: number; readonly indexed?: number }): Promise<TestBucket>;
  close(): Promise<void>;
}

export interface TestBucket {
  readonly name: string;
  readonly contents: Contents;
  /** Requests a re-index without the wait for late events. */
  reindex(request?: Readonly<Record<string, unknown>>): Promise<Job>;
  job(id: string): Promise<Job>;
  /** The job once it has ended or is paused. Fails when it is neither by then. */
  ended(id: string, timeoutMs?: number): Promise<Job>;
  /** How index and bucket differ: at most ten keys of each kind; undefined when they do not. */
  difference(): Promise<unknown>;
  /** Keys that a search by a prefix finds, at most 1,000. */
  search(prefix: string): Promise<readonly string[]>;
}

const WRITES_AT_ONCE = 4;
const WRITE_SIZE = 1_000;
const SCAN_SIZE = 10_000;

/** Opens the flow on queues and an index of its own. */
export async function openReindexFlow(): Promise<ReindexFlow> {
  const aws = createTestAws(awsEndpoint() ?? '');
  const index = openTestStore();
  const { store } = index;
  await store.setup.prepare();
  const [listing, bucketQueue] = await Promise.all([startListingServer(), aws.createQueue()]);
  const env = {
    AWS_ENDPOINT_URL: aws.endpoint,
    AWS_ENDPOINT_URL_S3: listing.url,
    TALLY_QUEUE_URL: bucketQueue.url,
    TALLY_INDEX_URL: serverUrl(),
    TALLY_INDEX_PREFIX: index.prefix,
    TALLY_INDEX_REPLICAS: '0',
  };
  const daemons: Daemon[] = [];

  async function start(more: Environment): Promise<Daemon> {
    const daemon = await startDaemon({ ...env, ...more });
    daemons.push(daemon);
    return daemon;
  }

  const registry = await start({ TALLY_ROLES: 'http' });
  await until('the registry answers', async () => (await registry.request('GET', '/v1/buckets').catch(() => undefined))?.status === 200);

  return {
    listing,
    store,
    registry,
    startWorker: (more = {}) => start({ TALLY_ROLES: 'reindex', ...more }),
    async createBucket({ shape = 'deep', count, indexed = 0 }) {
      const name = `reindex-${randomBytes(6).toString('hex')}`;
      const contents = listing.createBucket(name, shape, count);
      await ask(registry, 'POST', '/v1/buckets', { bucket: name, source: 'notification', reindex: false, wired_by_hand: true });
      await writeDocuments(store, name, { shape, count: indexed });
      return bucketOf({ name, contents, registry, store });
    },
    async close() {
      await Promise.all(daemons.map((daemon) => daemon.kill()));
      await Promise.all([listing.close(), index.dispose(), aws.dispose()]);
    },
  };
}

interface BucketParts {
  readonly name: string;
  readonly contents: Contents;
  readonly registry: Daemon;
  readonly store: Store;
}

function bucketOf({ name, contents, registry, store }: BucketParts): TestBucket {
  const job = async (id: string): Promise<Job> => (await ask(registry, 'GET', `/v1/jobs/${id}`)) as Job;
  return {
    name,
    contents,
    job,
    reindex: async (request = { now: true }) => (await ask(registry, 'POST', `/v1/buckets/${name}/reindex`, request)) as Job,
    async ended(id, timeoutMs = 300_000) {
      let last: Job | undefined;
      const isOver = async (): Promise<boolean> => {
        last = await job(id);
        return hasEnded(last) || last.state === 'paused';
      };
      await until('the job has ended', isOver, timeoutMs).catch((error: unknown) => {
        throw new Error(`the job goes on: ${JSON.stringify(last)}`, { cause: error });
      });
      return last!;
    },
    async difference() {
      await store.scan.refresh(name);
      const found = new Map((await allDocuments(store, name)).map((document) => [document.key, document]));
      const missing: string[] = [];
      const stale: string[] = [];
      for (let after = '', isTruncated = true; isTruncated;) {
        const slice = contents.slice({ prefix: '', after, limit: SCAN_SIZE });
        for (const { key, state } of slice.entries) {
          const document = found.get(key);
          if (document === undefined) missing.push(key);
          else if (document.etag !== state.etag || document.size !== state.sizeBytes) stale.push(key);
          found.delete(key);
        }
        after = slice.entries.at(-1)?.key ?? after;
        ({ isTruncated } = slice);
      }
      if (missing.length + stale.length + found.size === 0) return undefined;
      return { missing: missing.slice(0, 10), stale: stale.slice(0, 10), phantom: [...found.keys()].slice(0, 10) };
    },
    async search(prefix) {
      const query = new URLSearchParams({ bucket: name, prefix, limit: '1000' });
      const { items } = (await ask(registry, 'GET', `/v1/objects?${query.toString()}`)) as { items: readonly ObjectDocument[] };
      return items.map(({ key }) => key);
    },
  };
}

async function ask(daemon: Daemon, method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await daemon.request(method, path, body);
  if (answer.status < 300) return answer.body;
  throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

async function allDocuments(store: Store, bucket: string): Promise<readonly ScannedDocument[]> {
  const documents: ScannedDocument[] = [];
  for (;;) {
    const page = await store.scan.scan(bucket, { prefix: '', after: documents.at(-1)?.key ?? '', limit: SCAN_SIZE });
    documents.push(...page);
    if (page.length < SCAN_SIZE) return documents;
  }
}

/** The documents of the first `count` keys, as an earlier re-index would have written them. */
async function writeDocuments(
  store: Store,
  bucket: string,
  { shape, count }: { readonly shape: KeyShape; readonly count: number },
): Promise<void> {
  const space = createKeySpace(shape, count);
  let next = 0;

  async function writeOn(): Promise<void> {
    for (let from = next; from < count; from = next) {
      next = Math.min(count, from + WRITE_SIZE);
      const numbers = Array.from({ length: next - from }, (_, at) => from + at);
      const writes = numbers.map((number) => ({ document: documentOfNumber(number), equalClock: 'accept' }) as const);
      const answers = await store.objects.write(writes);
      const fault = answers.find(({ kind }) => kind !== 'written');
      if (fault !== undefined) throw new Error(JSON.stringify(fault));
    }
  }

  function documentOfNumber(number: number): ObjectDocument {
    const { etag, sizeBytes, lastModifiedMs, storageClass } = space.stateAt(number);
    return documentOf({
      bucket,
      key: space.keyAt(number),
      state: { present: true, etag, sizeBytes, lastModifiedMs, storageClass },
      clock: lastModifiedMs * 1_000,
      settled: true,
      source: 'listing',
      cause: {},
      stateAtMs: lastModifiedMs,
      nowMs: lastModifiedMs,
    });
  }

  await Promise.all(Array.from({ length: WRITES_AT_ONCE }, writeOn));
  await store.scan.refresh(bucket);
}
