import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  HeadBucketCommand,
  PutObjectCommand,
  PutObjectTaggingCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { CreateTopicCommand, DeleteTopicCommand, SubscribeCommand } from '@aws-sdk/client-sns';
import { ChangeMessageVisibilityCommand, DeleteMessageBatchCommand, GetQueueUrlCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import type { Message } from '@aws-sdk/client-sqs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { EmbeddedStartError, startEmbedded } from '../../src/demo/server.ts';
import type { Embedded } from '../../src/demo/server.ts';
import { sequencerClock } from '../../src/ordering/hint.ts';
import { recordOf } from '../support/event-fixtures.ts';
import { createTestAws, type TestAws } from '../support/servers/aws.ts';

const envelopeSchema = z.object({ Type: z.literal('Notification'), TopicArn: z.string(), Message: z.string() });
const notificationSchema = z.object({ Records: z.array(z.looseObject({ eventName: z.string(), eventTime: z.string() })).length(1) });

interface Told {
  readonly eventName: string;
  readonly eventTimeMs: number;
  readonly bucket: string;
  readonly key: string;
  readonly etag?: string | undefined;
  readonly sizeBytes?: number | undefined;
  readonly clock: number;
  readonly sentAtMs: number;
}

let dataDir: string;
let offsetMs: number;
let embedded: Embedded;
let aws: TestAws;

const clock = { nowMs: () => Date.now() + offsetMs, monotonicMs: () => performance.now() };

async function start(port = 0): Promise<void> {
  embedded = await startEmbedded({ host: '127.0.0.1', port, dataDir, region: 'eu-west-1', bucket: 'demo', clock });
  aws = createTestAws(embedded.endpoint, { region: 'eu-west-1' });
}

async function stop(): Promise<void> {
  await aws.dispose();
  await embedded.stop();
}

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'tally-embedded-'));
  offsetMs = 0;
  await start();
});

afterEach(async () => {
  await stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function receive(WaitTimeSeconds: number, QueueUrl = embedded.queueUrl): Promise<readonly Message[]> {
  const { Messages } = await aws.sqs.send(
    new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds, MaxNumberOfMessages: 10, MessageSystemAttributeNames: ['All'] }),
  );
  return Messages ?? [];
}

/** Receives and deletes `count` notifications, in the order of the queue, as the pipeline reads them. */
async function told(count: number): Promise<readonly Told[]> {
  const messages: Message[] = [];
  while (messages.length < count) {
    const more = await receive(20);
    if (more.length === 0) break;
    messages.push(...more);
    const Entries = more.map(({ MessageId, ReceiptHandle }) => ({ Id: MessageId, ReceiptHandle }));
    await aws.sqs.send(new DeleteMessageBatchCommand({ QueueUrl: embedded.queueUrl, Entries }));
  }
  expect(messages).toHaveLength(count);
  return messages.map(toldBy);
}

function toldBy(message: Message): Told {
  const envelope = envelopeSchema.parse(JSON.parse(message.Body ?? ''));
  expect(envelope.TopicArn).toBe(embedded.topicArn);
  const { Records } = notificationSchema.parse(JSON.parse(envelope.Message));
  const record = recordOf({ Records });
  const sequencer = record.sequencer ?? '';
  expect(sequencer).toMatch(/^00[0-9A-F]{16}$/);
  return {
    eventName: record.eventName,
    eventTimeMs: Date.parse(Records[0]!.eventTime),
    bucket: record.bucket,
    key: record.key,
    etag: record.etag,
    sizeBytes: record.sizeBytes,
    clock: sequencerClock(sequencer) ?? 0,
    sentAtMs: Number(message.Attributes?.SentTimestamp),
  };
}

const put = (key: string, body = 'hello', bucket = 'demo') => aws.put(bucket, key, body);
async function get(Key: string): Promise<string | undefined> {
  const { Body } = await aws.s3.send(new GetObjectCommand({ Bucket: 'demo', Key }));
  return Body?.transformToString();
}

async function upload(Key: string, parts: readonly Uint8Array[]): Promise<void> {
  const { UploadId } = await aws.s3.send(new CreateMultipartUploadCommand({ Bucket: 'demo', Key }));
  const Parts: { ETag: string | undefined; PartNumber: number }[] = [];
  for (const [index, Body] of parts.entries()) {
    const PartNumber = index + 1;
    const { ETag } = await aws.s3.send(new UploadPartCommand({ Bucket: 'demo', Key, UploadId, PartNumber, Body }));
    Parts.push({ ETag, PartNumber });
  }
  await aws.s3.send(new CompleteMultipartUploadCommand({ Bucket: 'demo', Key, UploadId, MultipartUpload: { Parts } }));
}

function expectIncreasing(events: readonly Told[]): void {
  const clocks = events.map((event) => event.clock);
  expect(clocks).toEqual([...new Set(clocks)].sort((a, b) => a - b));
}

describe('notifications', () => {
  test('each kind of change in any bucket arrives as a notification of S3, in order', async () => {
    await put('a.txt');
    await aws.s3.send(new CopyObjectCommand({ Bucket: 'demo', Key: 'b.txt', CopySource: 'demo/a.txt' }));
    await aws.remove('demo', 'a.txt');
    await upload('big.bin', [Buffer.alloc(5 * 1024 * 1024), Buffer.from('end')]);
    const form = new FormData();
    form.set('key', 'posted.txt');
    form.set('file', new Blob(['hello']));
    await fetch(`${embedded.endpoint}/demo`, { method: 'POST', body: form });
    // in chunks, with a checksum behind them
    const Body = Readable.from([Buffer.from('abc'), Buffer.from('def')]);
    await aws.s3.send(new PutObjectCommand({ Bucket: 'demo', Key: 'stream', Body, ContentLength: 6, ChecksumAlgorithm: 'SHA256' }));
    await aws.s3.send(new CreateBucketCommand({ Bucket: 'later' }));
    await put('x', 'hello', 'later');

    const events = await told(7);
    const etag = '5d41402abc4b2a76b9719d911017c592';
    expect(events).toMatchObject([
      { eventName: 'ObjectCreated:Put', bucket: 'demo', key: 'a.txt', etag, sizeBytes: 5 },
      { eventName: 'ObjectCreated:Put', bucket: 'demo', key: 'b.txt', etag, sizeBytes: 5 },
      { eventName: 'ObjectRemoved:Delete', bucket: 'demo', key: 'a.txt', etag: undefined, sizeBytes: undefined },
      {
        eventName: 'ObjectCreated:Put',
        bucket: 'demo',
        key: 'big.bin',
        etag: expect.stringMatching(/^[0-9a-f]{32}-2$/),
        sizeBytes: 5_242_883,
      },
      { eventName: 'ObjectCreated:Put', key: 'posted.txt', etag, sizeBytes: 5 },
      { key: 'stream', sizeBytes: 6, etag: 'e80b5017098950fc58aad83c8c14978e' },
      { bucket: 'later', key: 'x' },
    ]);
    expectIncreasing(events);
    for (const event of events) expect(Math.abs(event.clock / 1_000 - event.eventTimeMs)).toBeLessThan(2);
  });

  test('a change that cannot be published fails, so that its client repeats it', async () => {
    const { sns } = aws;
    const { topicArn: TopicArn } = embedded;
    const Endpoint = 'arn:aws:sqs:eu-west-1:000000000000:tally-bucket-events';
    const statusOf = async (method: string) => (await fetch(`${embedded.endpoint}/demo/a`, { method })).status;
    for (const method of ['PUT', 'DELETE']) {
      await sns.send(new DeleteTopicCommand({ TopicArn }));
      expect(await statusOf(method)).toBe(500);
      await sns.send(new CreateTopicCommand({ Name: 'tally-bucket-events' }));
      await sns.send(new SubscribeCommand({ TopicArn, Protocol: 'sqs', Endpoint }));
      expect(await statusOf(method)).toBeLessThan(300);
    }
    expect(await told(2)).toMatchObject([{ eventName: 'ObjectCreated:Put' }, { eventName: 'ObjectRemoved:Delete' }]);
  });
});

describe('tags', () => {
  test('an object has none and takes none, and a missing object is refused as by S3', async () => {
    await put('with space/ä');
    const at = (Key: string, Bucket = 'demo') => aws.s3.send(new GetObjectTaggingCommand({ Bucket, Key }));
    expect((await at('with space/ä')).TagSet).toEqual([]);
    await expect(at('gone')).rejects.toMatchObject({ name: 'NoSuchKey' });
    await expect(at('a', 'nowhere')).rejects.toMatchObject({ name: 'NoSuchBucket' });
    const write = new PutObjectTaggingCommand({ Bucket: 'demo', Key: 'with space/ä', Tagging: { TagSet: [{ Key: 'a', Value: 'b' }] } });
    await expect(aws.s3.send(write)).rejects.toMatchObject({ name: 'NotImplemented' });
    const tagged = new PutObjectCommand({ Bucket: 'demo', Key: 'with space/ä', Body: 'other', Tagging: 'a=b' });
    await expect(aws.s3.send(tagged)).rejects.toMatchObject({ name: 'NotImplemented' });
    expect(await get('with space/ä')).toBe('hello');
  });
});

describe('time', () => {
  test('sequencers increase when the clock is set back, and SentTimestamp and Date go with them', async () => {
    await put('1');
    offsetMs = -3_600_000;
    await put('2');
    await put('3');
    const events = await told(3);
    expectIncreasing(events);
    for (const event of events) expect(event.sentAtMs).toBeGreaterThanOrEqual(event.eventTimeMs);
    const answer = await fetch(`${embedded.endpoint}/demo/3`, { method: 'HEAD' });
    expect(Date.parse(answer.headers.get('date') ?? '')).toBeGreaterThanOrEqual(Math.floor(events[2]!.eventTimeMs / 1_000) * 1_000);
  });
});

describe('queues', () => {
  test('a message that is given back, or was held at a stop, is there again, with its receive count', async () => {
    await put('a');
    const [message] = await receive(20);
    const { queueUrl: QueueUrl } = embedded;
    await aws.sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle: message!.ReceiptHandle, VisibilityTimeout: 0 }));
    const again = (count: string) => [{ MessageId: message!.MessageId, Attributes: { ApproximateReceiveCount: count } }];
    expect(await receive(0)).toMatchObject(again('2'));
    await stop();
    await start();
    expect(await receive(20)).toMatchObject(again('3'));
  });
});

describe('start and stop', () => {
  test('objects, untold messages and queues survive a restart, at the address of the new process', async () => {
    await put('a', 'kept');
    await aws.s3.send(new CreateBucketCommand({ Bucket: 'other' }));
    await stop();
    await start();
    expect(await get('a')).toBe('kept');
    await aws.s3.send(new HeadBucketCommand({ Bucket: 'other' }));
    expect(embedded.queueUrl.startsWith(embedded.endpoint)).toBe(true);
    const { QueueUrl } = await aws.sqs.send(new GetQueueUrlCommand({ QueueName: 'tally-bucket-events' }));
    expect(QueueUrl).toBe(embedded.queueUrl);
    expect(await told(1)).toMatchObject([{ key: 'a' }]);
  });

  test('a taken port and an unusable data folder are errors that name the setting, and leave the data alone', async () => {
    const options = { host: '127.0.0.1', port: 0, dataDir, region: 'us-east-1', bucket: 'demo', clock };
    const { host, port } = new URL(embedded.endpoint);
    const failure = startEmbedded({ ...options, port: Number(port) });
    await expect(failure).rejects.toThrow(EmbeddedStartError);
    await expect(failure).rejects.toThrow(`${host} is already in use: set TALLY_EMBEDDED_ADDRESS to another HOST:PORT`);
    await writeFile(join(dataDir, 'file'), '');
    await expect(startEmbedded({ ...options, dataDir: join(dataDir, 'file') })).rejects.toThrow(/TALLY_EMBEDDED_DATA/);
  });
});
