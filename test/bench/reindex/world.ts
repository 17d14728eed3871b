/** What a re-index is measured in: the real OpenSearch, the listing server and the queues, each beside the workers. */
import { createHash, randomBytes } from 'node:crypto';
import { createFauxqs } from '../../../src/demo/fauxqs.ts';
import { indexNames } from '../../../src/store/opensearch/setup.ts';
import { createOpenSearchStore } from '../../../src/store/opensearch/store.ts';
import { systemClock } from '../../../src/process/clock.ts';
import { documentId } from '../../../src/ordering/document.ts';
import { forkListingServer, type ForkedListingServer } from './fork-listing-server.ts';
import { givenSettings } from '../bench-command.ts';
import { createBucketQueue } from '../bucket-queue.ts';
import { messageWith } from '../../support/servers/queue-message.ts';
import { nativeMessage } from '../ingest/messages.ts';
import { indexCpuUs, removeIndices, settleIndex } from '../opensearch.ts';
import type { LagOptions } from './live-lag.ts';
import { fingerprintOfIndex, type Fingerprint } from './verify.ts';
import { startWorker, type Worker } from './worker.ts';
import type { Environment } from '../processes.ts';

const REGION = 'us-east-1';
/** Of the live path only; nobody lists it. */
export const LIVE_BUCKET = 'bench-live';

export interface BenchWorld {
  readonly openSearchUrl: string;
  readonly indexPrefix: string;
  readonly listing: ForkedListingServer;
  /** Starts a worker of all roles. */
  startWorker(nodeArguments?: readonly string[], more?: Environment): Promise<Worker>;
  /** An index for the bucket, without documents. */
  emptyIndex(bucket: string): Promise<void>;
  removeIndex(bucket: string): Promise<void>;
  fingerprint(bucket: string): Promise<Fingerprint>;
  /** The CPU time that all nodes of OpenSearch took since they began, as they count it themselves. */
  indexCpuUs(): Promise<number>;
  /** Makes searches show what the bucket's index has taken, and waits for its merges: only then has OpenSearch done the work. */
  settle(bucket: string): Promise<void>;
  /** For probes of the live path, on a bucket of its own. */
  readonly live: LagOptions;
  /** Puts a message that tells of a put, or of a delete without an etag, in the live bucket. */
  change(key: string, etag: string | undefined): void;
  /** The messages that the bucket queue has. */
  waiting(): number;
  close(): Promise<void>;
}

/** Opens the world on indices of its own, which `close` removes. */
export async function openWorld(openSearchUrl: string): Promise<BenchWorld> {
  const indexPrefix = `bench${randomBytes(5).toString('hex')}`;
  const names = indexNames(indexPrefix);
  const store = createOpenSearchStore({ urls: [openSearchUrl], prefix: indexPrefix, shards: 1, replicas: 0, clock: systemClock });
  await store.setup.prepare();
  const [listing, fauxqs] = await Promise.all([forkListingServer(), createFauxqs(REGION)]);
  const endpoint = await fauxqs.app.listen({ host: '127.0.0.1', port: 0 });
  const bucketQueue = createBucketQueue(fauxqs.sqs, endpoint, 'bucket-events');
  await listing.control({ buckets: [{ name: LIVE_BUCKET }] });
  const workers = new Set<Worker>();

  const env = {
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: 'bench',
    AWS_SECRET_ACCESS_KEY: 'bench',
    AWS_ENDPOINT_URL: endpoint,
    AWS_ENDPOINT_URL_S3: listing.url,
    TALLY_QUEUE_URL: bucketQueue.url,
    TALLY_INDEX_URL: openSearchUrl,
    TALLY_INDEX_PREFIX: indexPrefix,
    TALLY_INDEX_REPLICAS: '0',
  };

  return {
    openSearchUrl,
    indexPrefix,
    listing,
    async startWorker(nodeArguments = [], more = {}) {
      const worker = await startWorker({ ...givenSettings(), ...env, ...more }, nodeArguments);
      workers.add(worker);
      await worker.ask('POST', '/v1/buckets', { bucket: LIVE_BUCKET, source: 'notification', reindex: false, wired_by_hand: true });
      return worker;
    },
    async emptyIndex(bucket) {
      await store.objects.removeBucket(bucket);
      await store.objects.createBucket(bucket);
    },
    removeIndex: (bucket) => store.objects.removeBucket(bucket),
    indexCpuUs: () => indexCpuUs(openSearchUrl),
    settle: (bucket) => settleIndex(openSearchUrl, names.objectsAlias(bucket)),
    fingerprint: (bucket) => fingerprintOfIndex(openSearchUrl, names.objectsAlias(bucket)),
    live: {
      tell: (key) =>
        bucketQueue.enqueue(
          messageWith(nativeMessage(LIVE_BUCKET, { key, sizeBytes: 1, etag: createHash('md5').update(key).digest('hex') }, Date.now())),
        ),
      async isIndexed(key) {
        const id = encodeURIComponent(documentId(key));
        const answer = await fetch(`${openSearchUrl}/${names.objectsAlias(LIVE_BUCKET)}/_doc/${id}?_source=false`);
        await answer.arrayBuffer();
        return answer.ok;
      },
    },
    change(key, etag) {
      const body = nativeMessage(LIVE_BUCKET, { key, sizeBytes: 1, etag: etag ?? '' }, Date.now());
      bucketQueue.enqueue(messageWith(etag === undefined ? body.replace('ObjectCreated:Put', 'ObjectRemoved:Delete') : body));
    },
    waiting: () => bucketQueue.messages.length + bucketQueue.inflightMessages.size,
    async close() {
      await Promise.all([...workers].map((worker) => worker.stop()));
      await listing.close();
      await fauxqs.app.close();
      await store.close();
      await removeIndices(openSearchUrl, indexPrefix);
    },
  };
}
