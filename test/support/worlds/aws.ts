/** A daemon at work: its bucket queue with a redrive queue, its index, and what tests ask of its control plane. */
import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import type { Bucket } from '../../../src/registry/contract/bucket.ts';
import type { AddBucketRequest } from '../../../src/registry/contract/buckets.ts';
import type { WholeDeadLetter } from '../../../src/registry/contract/dead-letters.ts';
import type { Gap } from '../../../src/registry/contract/gaps.ts';
import type { StoredObject } from '../../../src/registry/contract/search.ts';
import type { Page } from '../../../src/store/stored.ts';
import type { TestAws } from '../servers/aws.ts';
import { createTestAws, until } from '../servers/aws.ts';
import { startDaemon } from '../servers/daemon.ts';
import type { Daemon, Environment } from '../servers/daemon.ts';
import { openIndex } from './flow.ts';
import type { IndexKind } from './flow.ts';
import { awsEndpoint } from '../servers/found.ts';
import { setUp, type SetUp } from '../servers/set-up.ts';

export interface World {
  readonly aws: TestAws;
  readonly daemon: Daemon;
  readonly queue: { readonly url: string; readonly arn: string };
  /** Empty: nothing was set up. */
  readonly installation: string;
  /** The bucket queue's redrive target. */
  readonly deadLetters: { readonly url: string; readonly arn: string };
  /** Connects a bucket, without a first re-index. */
  connect(request: AddBucketRequest): Promise<Bucket>;
  bucketRecord(bucket: string): Promise<Bucket>;
  /** The live document of one key as a search answers it. */
  find(bucket: string, key: string): Promise<StoredObject | undefined>;
  /** Every live document of a bucket, in the order of the pages. */
  documents(bucket: string, pageLimit?: number): Promise<readonly StoredObject[]>;
  /** The gaps of a bucket, without the one that it has had since it was connected. */
  gaps(bucket: string): Promise<readonly Gap[]>;
  letters(): Promise<readonly WholeDeadLetter[]>;
  /** The dead letter with this body, once it is there. */
  letterOf(body: string): Promise<WholeDeadLetter>;
  /** Resolves when the bucket queue has been empty, hidden messages included, for three looks. */
  drained(timeoutMs: number): Promise<void>;
  /** Messages of a queue in any state. */
  messagesIn(queueUrl: string): Promise<number>;
  dispose(): Promise<void>;
}

function isNotConnected(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'code' in body && body.code === 'bucket.not-connected';
}

/** As `tally setup` sets it. */
const MAX_RECEIVE_COUNT = 100;
const LOOK_EVERY_MS = 1_000;
const EMPTY_LOOKS = 3;

/** Starts a daemon with queues and an index of its own. It is not waited for to be ready: with no bucket connected it is not. */
export async function startWorld({
  store = 'sqlite',
  maxReceiveCount = MAX_RECEIVE_COUNT,
  regions,
  env = {},
}: {
  readonly store?: IndexKind;
  readonly maxReceiveCount?: number;
  /** The installation is set up, for its own region and these, so that buckets can be connected. */
  readonly regions?: readonly string[];
  readonly env?: Environment;
} = {}): Promise<World> {
  const endpoint = awsEndpoint();
  if (endpoint === undefined) throw new Error('this run has no LocalStack');
  const aws = createTestAws(endpoint);
  const {
    queue,
    deadLetters,
    installation = '',
  } = regions === undefined ? await queuesOf(aws, maxReceiveCount) : await setUp(aws, { regions });
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
    return checkOf((await daemon.readyz())?.body, 'index')?.status === 'ok';
  });

  async function ask<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await daemon.request(method, path, body);
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

  async function messagesIn(queueUrl: string): Promise<number> {
    const { Attributes = {} } = await aws.sqs.send(
      new GetQueueAttributesCommand({
        QueueUrl: queueUrl,
        AttributeNames: ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible', 'ApproximateNumberOfMessagesDelayed'],
      }),
    );
    return Object.values(Attributes).reduce((sum, count) => sum + Number(count), 0);
  }

  async function letters(): Promise<WholeDeadLetter[]> {
    const { items } = await ask<{ items: { readonly id: string }[] }>('GET', '/v1/dead-letters');
    const found: WholeDeadLetter[] = [];
    for (const { id } of items) {
      const { status, body } = await daemon.request('GET', `/v1/dead-letters/${id}`);
      // the daemon itself looks for letters from time to time, and hides them meanwhile
      if (status === 200) found.push(body as WholeDeadLetter);
    }
    return found;
  }

  return {
    aws,
    daemon,
    queue,
    deadLetters,
    installation,
    connect: (request) => ask('POST', '/v1/buckets', { reindex: false, wired_by_hand: true, ...request }),
    bucketRecord: (bucket) => ask('GET', `/v1/buckets/${bucket}`),
    async find(bucket, key) {
      const query = new URLSearchParams({ bucket, key });
      const { items } = await ask<Page<StoredObject>>('GET', `/v1/objects?${query.toString()}`);
      return items[0];
    },
    documents: (bucket, pageLimit = 100) => everything(`/v1/objects?bucket=${bucket}`, pageLimit),
    gaps: async (bucket) =>
      (await everything<Gap>(`/v1/gaps?bucket=${bucket}`, 100)).filter(({ reasons }) => reasons.some(({ kind }) => kind !== 'new')),
    letters,
    async letterOf(body) {
      let letter: WholeDeadLetter | undefined;
      await until(`a dead letter of ${body.slice(0, 100)}`, async () => {
        letter = (await letters()).find((each) => each.body === body);
        return letter !== undefined;
      });
      return letter!;
    },
    async drained(timeoutMs) {
      let emptyLooks = 0;
      let lookAtMs = 0;
      await until(
        `the bucket queue of ${store} is empty`,
        async () => {
          if (performance.now() < lookAtMs) return false;
          lookAtMs = performance.now() + LOOK_EVERY_MS;
          emptyLooks = (await messagesIn(queue.url)) === 0 ? emptyLooks + 1 : 0;
          return emptyLooks === EMPTY_LOOKS;
        },
        timeoutMs,
      );
    },
    messagesIn,
    async dispose() {
      await daemon.stop();
      await index.close();
      await aws.dispose();
    },
  };
}

async function queuesOf(
  aws: TestAws,
  maxReceiveCount: number,
): Promise<Pick<SetUp, 'queue' | 'deadLetters'> & { readonly installation?: string }> {
  const deadLetters = await aws.createQueue();
  return { deadLetters, queue: await aws.createQueue({ deadLetters: { queue: deadLetters, maxReceiveCount } }) };
}

/** One check of a readiness report. */
function checkOf(report: unknown, name: string): { readonly status: string; readonly code?: string } | undefined {
  return (report as { checks?: Record<string, { status: string; code?: string }> } | undefined)?.checks?.[name];
}
