/**
 * A small AWS in this process (fauxqs): one bucket, its queue and dead-letter queue, each behind a proxy that can fail.
 * Changes of the bucket are made here and told by native notifications in SNS envelopes, in any order and as often as
 * the test likes.
 */
import { randomBytes } from 'node:crypto';
import { sequencerOf } from '../../../src/demo/clock.ts';
import { createFauxqs } from '../../../src/demo/fauxqs.ts';
import { formEncoded } from '../event-fixtures.ts';
import { messageWith } from '../servers/queue-message.ts';
import { startFaultProxy } from '../servers/fault-proxy.ts';

const REGION = 'us-east-1';
const ACCOUNT = '000000000000';

/** A message as the queue holds it. */
export interface StoredMessage {
  readonly messageId: string;
  readonly body: string;
  readonly approximateReceiveCount: number;
  readonly messageAttributes: Readonly<Record<string, { readonly DataType: string; readonly StringValue?: string | undefined }>>;
}

export type QueueWorld = Awaited<ReturnType<typeof startQueueWorld>>;

/** A bucket of the world. Its changes are told when the caller sends the notifications that they return. */
export type WorldBucket = QueueWorld['neighbour'];

export interface WorldOptions {
  readonly maxReceiveCount?: number;
}

/** Starts the world, with an empty bucket and empty queues. */
export async function startQueueWorld({ maxReceiveCount = 10 }: WorldOptions = {}) {
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

  function createBucket(bucket: string) {
    fauxqs.s3.createBucket(bucket);
    function write(key: string) {
      versions += 1;
      return fauxqs.s3.putObject(bucket, key, Buffer.from(`version ${versions}`));
    }
    return {
      bucket,
      /** Puts an object, and returns the notification of it. */
      put(key: string, eventName: 'ObjectCreated:Put' | 'ObjectCreated:CompleteMultipartUpload' = 'ObjectCreated:Put'): string {
        const object = write(key);
        return notification(bucket, key, { eventName, size: object.contentLength, eTag: object.etag.replaceAll('"', '') });
      },
      /** Puts an object, and returns a notification of it that does not state the result, so that S3 must be asked. */
      putUnstated(key: string): string {
        write(key);
        return notification(bucket, key, { eventName: 'ObjectCreated:Put' });
      },
      /** Deletes an object, and returns the notification of it. */
      remove(key: string): string {
        fauxqs.s3.deleteObject(bucket, key);
        return notification(bucket, key, { eventName: 'ObjectRemoved:Delete' });
      },
      /** Etags by key. */
      objects(): ReadonlyMap<string, string> {
        const { objects } = fauxqs.s3.listObjects(bucket, { maxKeys: Number.POSITIVE_INFINITY });
        return new Map(objects.map(({ key, etag }) => [key, etag.replaceAll('"', '')]));
      },
    };
  }

  return {
    ...createBucket(`flow-${name}`),
    /** Another bucket, whose notifications go to the same queue. */
    neighbour: createBucket(`flow-${name}-neighbour`),
    sqs,
    s3,
    /** The settings of a daemon for this world, through the proxies. The index is not among them. */
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
    /** Sends bodies to the bucket queue. */
    send(...bodies: readonly string[]): void {
      for (const body of bodies) queue.enqueue(messageWith(body));
    },
    /** Moves a body to the dead-letter queue, as SQS itself does: without a reason. */
    bury: (body: string): void => letters.enqueue(messageWith(body)),
    /** What is to be received now, delayed messages included, and what was received and is not yet deleted or visible again. */
    messages() {
      const { ready, delayed, inflight } = queue.inspectMessages();
      return { visible: copies([...ready, ...delayed]), inFlight: copies(inflight.map(({ message }) => message)) };
    },
    deadLetters(): readonly StoredMessage[] {
      const { ready, delayed, inflight } = letters.inspectMessages();
      return copies([...ready, ...delayed, ...inflight.map(({ message }) => message)]);
    },
    async close(): Promise<void> {
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
