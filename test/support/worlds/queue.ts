/**
 * A small AWS in this process (fauxqs): one bucket, its queue and dead-letter queue, each behind a proxy that can fail.
 * Changes of the bucket are made here and told by native notifications in SNS envelopes, in any order and as often as
 * the test likes.
 */
import { randomBytes } from 'node:crypto';
import { sequencerOf } from '../../../src/demo/clock.ts';
import { createFauxqs } from '../../../src/demo/fauxqs.ts';
import { formEncoded } from '../event-fixtures.ts';
import type { Environment } from '../servers/daemon.ts';
import { messageWith } from '../servers/queue-message.ts';
import { startFaultProxy } from '../servers/fault-proxy.ts';
import type { FaultProxy } from '../servers/fault-proxy.ts';

const REGION = 'us-east-1';
const ACCOUNT = '000000000000';

/** A message as the queue holds it. */
export interface StoredMessage {
  readonly messageId: string;
  readonly body: string;
  readonly approximateReceiveCount: number;
  readonly messageAttributes: Readonly<Record<string, { readonly DataType: string; readonly StringValue?: string | undefined }>>;
}

export interface StoredMessages {
  /** To be received now, delayed ones included. */
  readonly visible: readonly StoredMessage[];
  /** Received and not yet deleted or visible again. */
  readonly inFlight: readonly StoredMessage[];
}

/** A bucket of the world. Its changes are told when the caller sends the notifications that they return. */
export interface WorldBucket {
  readonly bucket: string;
  /** Puts an object, and returns the notification of it. */
  put(key: string, eventName?: 'ObjectCreated:Put' | 'ObjectCreated:CompleteMultipartUpload'): string;
  /** Puts an object, and returns a notification of it that does not state the result, so that S3 must be asked. */
  putUnstated(key: string): string;
  /** Deletes an object, and returns the notification of it. */
  remove(key: string): string;
  /** Etags by key. */
  objects(): ReadonlyMap<string, string>;
}

export interface QueueWorld extends WorldBucket {
  readonly sqs: FaultProxy;
  readonly s3: FaultProxy;
  /** The settings of a daemon for this world, through the proxies. The index is not among them. */
  readonly env: Environment;
  /** Another bucket, whose notifications go to the same queue. */
  readonly neighbour: WorldBucket;
  /** Sends bodies to the bucket queue. */
  send(...bodies: readonly string[]): void;
  /** Moves a body to the dead-letter queue, as SQS itself does: without a reason. */
  bury(body: string): void;
  messages(): StoredMessages;
  deadLetters(): readonly StoredMessage[];
  close(): Promise<void>;
}

export interface WorldOptions {
  readonly maxReceiveCount?: number;
}

/** Starts the world, with an empty bucket and empty queues. */
export async function startQueueWorld({ maxReceiveCount = 10 }: WorldOptions = {}): Promise<QueueWorld> {
  const fauxqs = await createFauxqs(REGION);
  const endpoint = await fauxqs.app.listen({ host: '127.0.0.1', port: 0 });
  const createQueue = (queueName: string, attributes?: Record<string, string>) =>
    fauxqs.sqs.createQueue(queueName, `${endpoint}/${ACCOUNT}/${queueName}`, `arn:aws:sqs:${REGION}:${ACCOUNT}:${queueName}`, attributes);
  // names that no other world has: what still polls a port of one that was closed finds no queue here
  const name = randomBytes(4).toString('hex');
  const letters = createQueue(`dead-letters-${name}`);
  const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: letters.arn, maxReceiveCount });
  const queue = createQueue(`bucket-events-${name}`, { RedrivePolicy });
  const topic = fauxqs.sns.createTopic('bucket-events', undefined, undefined, REGION);
  const [sqs, s3] = await Promise.all([startFaultProxy(endpoint), startFaultProxy(endpoint)]);
  let lastMoment = 0;
  let versions = 0;

  function notification(bucket: string, key: string, { eventName, ...object }: NotifiedObject): string {
    lastMoment = Math.max(lastMoment + 1, Date.now() * 1_000);
    const record = {
      eventVersion: '2.1',
      eventSource: 'aws:s3',
      awsRegion: REGION,
      eventTime: new Date(Math.floor(lastMoment / 1_000)).toISOString(),
      eventName,
      s3: {
        bucket: { name: bucket, arn: `arn:aws:s3:::${bucket}` },
        object: { key: formEncoded(key), ...object, sequencer: sequencerOf(lastMoment) },
      },
    };
    return JSON.stringify({
      Type: 'Notification',
      MessageId: randomBytes(16).toString('hex'),
      TopicArn: topic.arn,
      Subject: 'Amazon S3 Notification',
      Message: JSON.stringify({ Records: [record] }),
      Timestamp: new Date().toISOString(),
    });
  }

  function createBucket(bucket: string): WorldBucket {
    fauxqs.s3.createBucket(bucket);
    function write(key: string) {
      versions += 1;
      return fauxqs.s3.putObject(bucket, key, Buffer.from(`version ${versions}`));
    }
    return {
      bucket,
      put(key, eventName = 'ObjectCreated:Put') {
        const object = write(key);
        return notification(bucket, key, { eventName, size: object.contentLength, eTag: object.etag.replaceAll('"', '') });
      },
      putUnstated(key) {
        write(key);
        return notification(bucket, key, { eventName: 'ObjectCreated:Put' });
      },
      remove(key) {
        fauxqs.s3.deleteObject(bucket, key);
        return notification(bucket, key, { eventName: 'ObjectRemoved:Delete' });
      },
      objects() {
        const { objects } = fauxqs.s3.listObjects(bucket, { maxKeys: Number.POSITIVE_INFINITY });
        return new Map(objects.map(({ key, etag }) => [key, etag.replaceAll('"', '')]));
      },
    };
  }

  return {
    ...createBucket(`flow-${name}`),
    neighbour: createBucket(`flow-${name}-neighbour`),
    sqs,
    s3,
    env: {
      AWS_ENDPOINT_URL_SQS: sqs.url,
      AWS_ENDPOINT_URL_SNS: endpoint,
      AWS_ENDPOINT_URL_S3: s3.url,
      TALLY_QUEUE_URL: queue.url,
      // short polls: what a killed process was waiting for may swallow a message
      TALLY_INGEST_WAIT_S: '1',
      TALLY_INGEST_POLLERS: '2',
      TALLY_INGEST_VISIBILITY_S: '10',
    },
    send(...bodies) {
      for (const body of bodies) queue.enqueue(messageWith(body));
    },
    bury: (body) => letters.enqueue(messageWith(body)),
    messages() {
      const { ready, delayed, inflight } = queue.inspectMessages();
      return { visible: copies([...ready, ...delayed]), inFlight: copies(inflight.map(({ message }) => message)) };
    },
    deadLetters() {
      const { ready, delayed, inflight } = letters.inspectMessages();
      return copies([...ready, ...delayed, ...inflight.map(({ message }) => message)]);
    },
    async close() {
      await Promise.all([sqs.close(), s3.close()]);
      await fauxqs.app.close();
    },
  };
}

interface NotifiedObject {
  readonly eventName: string;
  readonly size?: number;
  readonly eTag?: string;
}

/** As they are now: the queue goes on counting receives in its own objects. */
function copies(messages: readonly StoredMessage[]): readonly StoredMessage[] {
  return messages.map((message) => ({ ...message }));
}
