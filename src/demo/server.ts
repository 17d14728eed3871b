/**
 * The embedded AWS: SQS, SNS and S3 in this process, for trying Tally on one machine. fauxqs implements them. This file
 * joins its parts, stores its data and adds event notifications to its buckets:
 *
 *   object written ──► s3.ts ──► topic ──► bucket queue ──► Tally, which takes it for AWS
 *
 * fauxqs.ts and s3.ts correct where fauxqs differs from AWS.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { RECEIVES_WANTED } from '../connect/shared.rules.ts';
import type { Clock } from '../process/clock.ts';
import {
  ACCOUNT,
  embeddedEndpoint,
  embeddedQueues,
  correctQueues,
  keepGivenBack,
  releaseMessages,
  createFauxqs,
  type Fauxqs,
  type Persistence,
} from './fauxqs.ts';
import { createEmbeddedClock } from './clock.ts';
import { sortListings, correctRequests, notificationOf, watchObjects } from './s3.ts';

const TOPIC = 'tally-bucket-events';

export interface EmbeddedOptions {
  /** 0.0.0.0 or :: for all interfaces. */
  readonly host: string;
  /** 0: the system chooses. */
  readonly port: number;
  /** Data is stored in its sub-folder `embedded`. Only one process may use it at a time. */
  readonly dataDir: string;
  readonly region: string;
  /** The bucket is created if it does not exist. */
  readonly bucket: string;
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
}

export interface Embedded {
  /** The endpoint of SQS, SNS and S3 (path-style). Requests need no signature. */
  readonly endpoint: string;
  readonly queueUrl: string;
  readonly deadLetterQueueUrl: string;
  readonly topicArn: string;
  /** Ends long polls and open connections, and closes the data. */
  stop(): Promise<void>;
}

/** The embedded AWS cannot start. The message names the setting to change. */
export class EmbeddedStartError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EmbeddedStartError';
  }
}

/**
 * Starts SQS, SNS and S3 on the address with the data of earlier runs, and creates what Tally needs if it is missing: the
 * bucket, the queues and the topic that receives the notifications of every bucket. Throws {@link EmbeddedStartError} if
 * it cannot listen on the address or use the data folder.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { region } = options;
  const folder = join(options.dataDir, 'embedded');
  const moments = createEmbeddedClock(options.clock);
  const fauxqs = await createFauxqs(region);
  const ready = Promise.withResolvers<void>();
  const requestBucket = correctRequests(fauxqs.app, { region, moments, ready: ready.promise, store: fauxqs.s3 });

  // listening comes first, so that a second process on the same address does not touch the data
  const endpoint = await listen(fauxqs, options);
  correctQueues(fauxqs.sqs, { endpoint, moments });

  const topicArn = arnOf('sns', region, TOPIC);
  const queueArn = arnOf('sqs', region, embeddedQueues.bucket);
  const publish = (message: string): void => fauxqs.publish({ topicArn, queueArn, subject: 'Amazon S3 Notification', message });
  const forgetListing = sortListings(fauxqs.s3);
  watchObjects(fauxqs.s3, requestBucket, (change) => {
    forgetListing(change.bucket);
    publish(notificationOf(change, region, moments.next()));
  });

  const persistence = await openData(fauxqs, folder);
  const queues = provision(fauxqs, options);
  ready.resolve();

  return {
    endpoint,
    ...queues,
    topicArn,
    stop: async () => {
      await fauxqs.app.close();
      persistence.close();
    },
  };
}

/** Listens, and returns the endpoint that clients on this machine use. */
async function listen({ app }: Fauxqs, { host, port }: EmbeddedOptions): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    await app.close();
    const inUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    const problem = inUse ? 'is already in use' : `cannot be used (${reasonOf(error)})`;
    const message = `${host}:${port} ${problem}: set TALLY_EMBEDDED_ADDRESS to another HOST:PORT`;
    throw new EmbeddedStartError(message, { cause: error });
  }
  const address = app.server.address();
  const bound = address === null || typeof address === 'string' ? port : address.port;
  return embeddedEndpoint({ host, port: bound });
}

async function openData(fauxqs: Fauxqs, folder: string): Promise<Persistence> {
  const { sqs, sns, s3 } = fauxqs;
  try {
    mkdirSync(folder, { recursive: true });
    const persistence = fauxqs.open(folder);
    keepGivenBack(persistence);
    // it is loaded before the stores write to it: loading creates each queue again, which would delete its stored messages
    persistence.load(sqs, sns, s3);
    for (const store of [sqs, sns, s3, ...sqs.allQueues()]) store.persistence = persistence;
    releaseMessages(sqs);
    return persistence;
  } catch (error) {
    await fauxqs.app.close();
    throw dataError(folder, error);
  }
}

/** Creates what does not exist yet. Existing queues, topics and buckets are not changed. */
function provision({ sqs, sns, s3 }: Fauxqs, { region, bucket }: EmbeddedOptions): Pick<Embedded, 'queueUrl' | 'deadLetterQueueUrl'> {
  const queue = (name: string, attributes?: Record<string, string>) => {
    const arn = arnOf('sqs', region, name);
    return sqs.getQueueByArn(arn) ?? sqs.createQueue(name, '', arn, attributes);
  };
  const deadLetters = queue(embeddedQueues.deadLetters);
  const redrive = { deadLetterTargetArn: deadLetters.arn, maxReceiveCount: RECEIVES_WANTED };
  const bucketQueue = queue(embeddedQueues.bucket, { RedrivePolicy: JSON.stringify(redrive) });
  const topic = sns.createTopic(TOPIC, undefined, undefined, region);
  const { subscriptions } = sns.listSubscriptionsByTopic(topic.arn);
  if (!subscriptions.some(({ endpoint }) => endpoint === bucketQueue.arn)) sns.subscribe(topic.arn, 'sqs', bucketQueue.arn);
  if (!s3.hasBucket(bucket)) s3.createBucket(bucket);
  return { queueUrl: bucketQueue.url, deadLetterQueueUrl: deadLetters.url };
}

function arnOf(service: 'sqs' | 'sns', region: string, name: string): string {
  return `arn:aws:${service}:${region}:${ACCOUNT}:${name}`;
}

function dataError(folder: string, error: unknown): EmbeddedStartError {
  return new EmbeddedStartError(`${folder} cannot be used (${reasonOf(error)}): set TALLY_EMBEDDED_DATA to another folder, or repair it`, {
    cause: error,
  });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
