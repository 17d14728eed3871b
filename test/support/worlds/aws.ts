/** A daemon at work: its bucket queue with a redrive queue, its index, and what tests ask of its control plane. */
import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import type { Bucket } from '../../../src/registry/contract/bucket.ts';
import type { AddBucketRequest } from '../../../src/registry/contract/buckets.ts';
import type { Gap } from '../../../src/registry/contract/gaps.ts';
import type { StoredObject } from '../../../src/registry/contract/search.ts';
import type { Page } from '../../../src/store/stored.ts';
import { createTestAws, until } from '../servers/aws.ts';
import { repeated, startDaemon, type Environment } from '../servers/daemon.ts';
import { openIndex, type IndexKind } from './flow.ts';
import { awsEndpoint } from '../servers/found.ts';
import { setUp } from '../servers/set-up.ts';

export type World = Awaited<ReturnType<typeof startWorld>>;

function isNotConnected(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'code' in body && body.code === 'bucket.not-connected';
}

const LOOK_EVERY_MS = 1_000;
const EMPTY_LOOKS = 3;

/** Starts a daemon with queues and an index of its own. It is not waited for to be ready: with no bucket connected it is not. */
export async function startWorld({
  store = 'sqlite',
  regions = [],
  env = {},
}: {
  readonly store?: IndexKind;
  /** The installation is set up for its own region and these, so that buckets can be connected. */
  readonly regions?: readonly string[];
  readonly env?: Environment;
} = {}) {
  const endpoint = awsEndpoint();
  if (endpoint === undefined) throw new Error('this run has no LocalStack');
  const aws = createTestAws(endpoint);
  const { queue, deadLetters, installation } = await setUp(aws, { regions });
  const index = await openIndex(store);
  const daemon = await startDaemon({
    AWS_ENDPOINT_URL: endpoint,
    TALLY_QUEUE_URL: queue.url,
    TALLY_INGEST_POLLERS: '2',
    ...index.env,
    ...env,
  });
  await until('the store is prepared', async () => {
    if (!daemon.isRunning) throw new Error(`the daemon ended: ${daemon.text}`);
    const { checks } = ((await daemon.readyz())?.body ?? {}) as { readonly checks?: Readonly<Record<string, { readonly status: string }>> };
    return checks?.['index']?.status === 'ok';
  });

  async function ask<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await repeated(daemon, method, path, body);
    // nothing is found in a bucket that is not connected
    if (isNotConnected(answer.body) && path.startsWith('/v1/objects')) return { items: [] } as Body;
    if (answer.status >= 300) {
      const log = daemon.log.slice(-5).map((line) => JSON.stringify(line));
      throw new Error([`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`, ...log].join('\n'));
    }
    return answer.body as Body;
  }

  async function everything<Item>(path: string, limit: number): Promise<Item[]> {
    const items: Item[] = [];
    let next: string | undefined;
    do {
      const cursor: string = next === undefined ? '' : `&cursor=${encodeURIComponent(next)}`;
      const page = await ask<Page<Item>>('GET', `${path}&limit=${limit}${cursor}`);
      items.push(...page.items);
      ({ next } = page);
    } while (next !== undefined);
    return items;
  }

  /** In any state. */
  async function messagesInQueue(): Promise<number> {
    const { Attributes = {} } = await aws.sqs.send(
      new GetQueueAttributesCommand({
        QueueUrl: queue.url,
        AttributeNames: ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible', 'ApproximateNumberOfMessagesDelayed'],
      }),
    );
    return Object.values(Attributes).reduce((sum, count) => sum + Number(count), 0);
  }

  return {
    aws,
    daemon,
    queue,
    deadLetters,
    installation,
    /** What the control plane answers to a request that must succeed. */
    ask,
    /** Connects a bucket, without a first re-index. */
    connect: (request: AddBucketRequest): Promise<Bucket> =>
      ask('POST', '/v1/buckets', { reindex: false, wired_by_hand: true, ...request }),
    bucketRecord: (bucket: string): Promise<Bucket> => ask('GET', `/v1/buckets/${bucket}`),
    /** The live document of one key as a search answers it. */
    async find(bucket: string, key: string): Promise<StoredObject | undefined> {
      const query = new URLSearchParams({ bucket, key });
      const { items } = await ask<Page<StoredObject>>('GET', `/v1/objects?${query.toString()}`);
      return items[0];
    },
    /** Every live document of a bucket, in the order of the pages. */
    documents: (bucket: string, pageLimit = 100) => everything<StoredObject>(`/v1/objects?bucket=${bucket}`, pageLimit),
    /** The gaps of a bucket, without the one that it has had since it was connected. */
    gaps: async (bucket: string): Promise<readonly Gap[]> =>
      (await everything<Gap>(`/v1/gaps?bucket=${bucket}`, 100)).filter(({ reasons }) => reasons.some(({ kind }) => kind !== 'new')),
    letters: async () => (await ask<{ readonly items: readonly unknown[] }>('GET', '/v1/dead-letters')).items,
    /** Resolves when the bucket queue has been empty, hidden messages included, for three looks. */
    async drained(timeoutMs: number): Promise<void> {
      let emptyLooks = 0;
      let lookAtMs = 0;
      await until(
        `the bucket queue of ${store} is empty`,
        async () => {
          if (performance.now() < lookAtMs) return false;
          lookAtMs = performance.now() + LOOK_EVERY_MS;
          emptyLooks = (await messagesInQueue()) === 0 ? emptyLooks + 1 : 0;
          return emptyLooks === EMPTY_LOOKS;
        },
        timeoutMs,
      );
    },
    async dispose(): Promise<void> {
      await daemon.stop();
      await index.close();
      await aws.dispose();
    },
  };
}
