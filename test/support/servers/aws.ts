/** Queues, topics, buckets and rules for tests, with fresh names, on an emulator of AWS. `dispose` removes them. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  EventBridgeClient,
  PutEventsCommand,
  PutRuleCommand,
  PutTargetsCommand,
  DeleteRuleCommand,
  RemoveTargetsCommand,
} from '@aws-sdk/client-eventbridge';
import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  ListObjectVersionsCommand,
  PutBucketNotificationConfigurationCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  S3Client,
  type BucketLocationConstraint,
  type Event,
} from '@aws-sdk/client-s3';
import { CreateTopicCommand, DeleteTopicCommand, SNSClient, SubscribeCommand } from '@aws-sdk/client-sns';
import {
  CreateQueueCommand,
  DeleteMessageCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { createAwsClients } from '../../../src/aws/clients.ts';
import type { InputTransformer } from '../../../src/connect/plan.rules.ts';

export interface TestQueue {
  readonly url: string;
  readonly arn: string;
}

interface QueueOptions {
  readonly attributes?: Readonly<Record<string, string>>;
  readonly deadLetters?: { readonly queue: TestQueue; readonly maxReceiveCount: number };
}

interface TestRule {
  readonly pattern: object;
  readonly targetArn: string;
  readonly transformer?: InputTransformer;
}

export type TestAws = ReturnType<typeof createTestAws>;

const REGION = 'us-east-1';
const EVENTS: Event[] = ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'];

/** A place on the emulator at `endpoint` (LocalStack, or fauxqs for what it knows). */
export function createTestAws(
  endpoint: string,
  { region = REGION, account }: { readonly region?: string; readonly account?: string } = {},
) {
  // LocalStack takes an access key of 12 digits for the account
  const credentials = { accessKeyId: account ?? 'test', secretAccessKey: 'test' };
  const common = { endpoint, region, credentials };
  const s3 = new S3Client({ ...common, forcePathStyle: true });
  const sqs = new SQSClient({ ...common, useQueueUrlAsEndpoint: false });
  const sns = new SNSClient(common);
  const events = new EventBridgeClient(common);
  const disposals: (() => Promise<unknown>)[] = [];
  const freshName = (): string => `tally-test-${randomBytes(6).toString('hex')}`;

  async function emptyBucket(bucket: string): Promise<void> {
    const { Versions = [], DeleteMarkers = [] } = await s3.send(new ListObjectVersionsCommand({ Bucket: bucket }));
    for (const { Key, VersionId } of [...Versions, ...DeleteMarkers])
      await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key, VersionId }));
  }

  async function setVersioning(bucket: string, Status: 'Enabled' | 'Suspended'): Promise<void> {
    await s3.send(new PutBucketVersioningCommand({ Bucket: bucket, VersioningConfiguration: { Status } }));
  }

  return {
    endpoint,
    region,
    credentials,
    s3,
    sqs,
    sns,
    /** The product's clients for this endpoint. */
    clients({ waitS = 1, s3TimeoutMs = 60_000 } = {}) {
      const clients = createAwsClients({
        region,
        endpoints: { sqs: endpoint, sns: endpoint, s3: endpoint, events: endpoint },
        credentials,
        s3: { forcePathStyle: true, timeoutMs: s3TimeoutMs, connectionsMax: 50 },
        sqs: { receivesMax: 50, waitS },
      });
      disposals.push(async () => clients.close());
      return clients;
    },
    /** With `deadLetters`, a queue that moves messages there after so many receives. */
    async createQueue({ attributes = {}, deadLetters }: QueueOptions = {}): Promise<TestQueue> {
      // what has no dead-letter queue may be one
      const kept = deadLetters === undefined ? { MessageRetentionPeriod: '1209600' } : {};
      const redrive = deadLetters && {
        RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetters.queue.arn, maxReceiveCount: deadLetters.maxReceiveCount }),
      };
      const { QueueUrl } = await sqs.send(
        new CreateQueueCommand({ QueueName: freshName(), Attributes: { ...kept, ...attributes, ...redrive } }),
      );
      disposals.push(() => sqs.send(new DeleteQueueCommand({ QueueUrl })));
      const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }));
      return { url: QueueUrl!, arn: Attributes!['QueueArn']! };
    },
    /** Sends bodies, ten a request. */
    async sendBodies(queueUrl: string, bodies: readonly string[]): Promise<void> {
      for (let start = 0; start < bodies.length; start += 10) {
        const Entries = bodies.slice(start, start + 10).map((MessageBody, index) => ({ Id: String(index), MessageBody }));
        await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
      }
    },
    /** Receives and deletes until `count` messages have come, and returns their bodies. Fails when they do not come. */
    async takeBodies(queueUrl: string, count: number): Promise<string[]> {
      const bodies: string[] = [];
      const isEnough = async (): Promise<boolean> => {
        const { Messages = [] } = await sqs.send(
          new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }),
        );
        for (const { Body, ReceiptHandle } of Messages) {
          bodies.push(Body!);
          await sqs.send(new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle }));
        }
        return bodies.length >= count;
      };
      await until(`${count} messages have come`, isEnough);
      return bodies;
    },
    async createTopic(): Promise<string> {
      const { TopicArn } = await sns.send(new CreateTopicCommand({ Name: freshName() }));
      disposals.push(() => sns.send(new DeleteTopicCommand({ TopicArn })));
      return TopicArn!;
    },
    async subscribe(topicArn: string, queue: TestQueue): Promise<void> {
      await sns.send(new SubscribeCommand({ TopicArn: topicArn, Protocol: 'sqs', Endpoint: queue.arn }));
    },
    async createBucket({ versioned = false } = {}): Promise<string> {
      const bucket = freshName();
      const place = region === REGION ? {} : { CreateBucketConfiguration: { LocationConstraint: region as BucketLocationConstraint } };
      await s3.send(new CreateBucketCommand({ Bucket: bucket, ...place }));
      disposals.push(async () => {
        await emptyBucket(bucket);
        await s3.send(new DeleteBucketCommand({ Bucket: bucket }));
      });
      if (versioned) await setVersioning(bucket, 'Enabled');
      return bucket;
    },
    setVersioning,
    async put(bucket: string, key: string, body = ''): Promise<void> {
      await s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
    },
    async remove(bucket: string, key: string, VersionId?: string): Promise<void> {
      await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: key, VersionId }));
    },
    /** Native notifications of everything that concerns an index, to a topic. S3 sends a test event for each call. */
    async notify(bucket: string, TopicArn: string): Promise<void> {
      const NotificationConfiguration = { TopicConfigurations: [{ TopicArn, Events: EVENTS }] };
      await s3.send(new PutBucketNotificationConfigurationCommand({ Bucket: bucket, NotificationConfiguration }));
    },
    /** An EventBridge rule of the default bus with one target. */
    async createRule({ pattern, targetArn, transformer }: TestRule): Promise<void> {
      const Rule = freshName();
      await events.send(new PutRuleCommand({ Name: Rule, EventPattern: JSON.stringify(pattern) }));
      disposals.push(async () => {
        await events.send(new RemoveTargetsCommand({ Rule, Ids: ['target'] }));
        await events.send(new DeleteRuleCommand({ Name: Rule }));
      });
      await events.send(
        new PutTargetsCommand({ Rule, Targets: [{ Id: 'target', Arn: targetArn, ...(transformer && { InputTransformer: transformer }) }] }),
      );
    },
    /** Puts events on the default bus: an emulator takes them from `aws.s3`, AWS itself would not. */
    async putEvents(list: readonly { readonly source: string; readonly detailType: string; readonly detail: object }[]): Promise<void> {
      const Entries = list.map(({ source, detailType, detail }) => ({
        Source: source,
        DetailType: detailType,
        Detail: JSON.stringify(detail),
      }));
      const { FailedEntryCount } = await events.send(new PutEventsCommand({ Entries }));
      if (FailedEntryCount !== 0) throw new Error(`${String(FailedEntryCount)} events were refused`);
    },
    async dispose(): Promise<void> {
      for (const dispose of disposals.splice(0).toReversed()) await dispose().catch(() => undefined);
      for (const client of [s3, sqs, sns, events]) client.destroy();
    },
  };
}

/** Nothing waits so long where it works, not even on two cores that have much other work. */
const PATIENCE_MS = 300_000;

/**
 * Waits until the condition holds, asking every 50 ms, or as seldom as asking takes a fifth of the time or was in vain
 * for twenty times as long, and once a second at least: what is waited for needs the same cores. Fails after `timeoutMs` with what was waited for.
 */
export async function until(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = PATIENCE_MS): Promise<void> {
  const startMs = performance.now();
  for (;;) {
    const askedMs = performance.now();
    if (await condition()) return;
    const nowMs = performance.now();
    if (nowMs > startMs + timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await delay(Math.min(1_000, Math.max(50, 4 * (nowMs - askedMs), (nowMs - startMs) / 20)));
  }
}
