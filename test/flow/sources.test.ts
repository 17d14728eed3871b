import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sequencerOf } from '../../src/adapters/embedded/clock.ts';
import type { Dialect } from '../../src/domain/events/record.ts';
import type { BucketSource } from '../../src/domain/bucket.ts';
import { until } from '../support/servers/aws.ts';
import { documentedTransformer, otherSpellingTransformer, routingPattern, tellTrail } from '../support/audit-trail.ts';
import type { World } from '../support/worlds/aws.ts';
import { startWorld } from '../support/worlds/aws.ts';
import { confirmationBody, encodesEventBridgeKeys, pendingSubscription } from '../support/sources.ts';
import { awsEndpoint } from '../support/servers/found.ts';

/** A space, a plus, a percent, a quote, a backslash, and letters of two and of four bytes. */
const AWKWARD_KEY = 'dir/a b+c 100%20 "q" \\ ü😀.txt';
const HELLO_ETAG = '5d41402abc4b2a76b9719d911017c592';
const BYE_ETAG = 'bfa99df33b137bc8fb5f5407d7e58da8';
/** A provisional answer that a slow machine wrote out of order is put right by its settle, some 45 s later. */
const AGREE_TIMEOUT_MS = 300_000;

interface Route {
  readonly name: string;
  readonly dialect: Dialect;
  readonly source: BucketSource;
  /** Leads the bucket's events to the bucket queue; resolves with the topic in between, if there is one. */
  readonly lay: (world: World, bucket: string) => Promise<string | undefined>;
}

async function topicTo({ aws, queue }: World, raw = false): Promise<string> {
  const topicArn = await aws.createTopic();
  await aws.subscribe(topicArn, queue, { raw });
  return topicArn;
}

function notification(name: string, raw: boolean): Route {
  return {
    name,
    dialect: 'native',
    source: 'topic',
    async lay(world, bucket) {
      const topicArn = await topicTo(world, raw);
      await world.aws.notify(bucket, { topicArn });
      return topicArn;
    },
  };
}

function routed(name: string, transformer?: typeof documentedTransformer): Route {
  return {
    name,
    dialect: transformer === undefined ? 'trail' : 'synthetic',
    source: 'routed',
    async lay(world, bucket) {
      const topicArn = await topicTo(world);
      const rule = { pattern: routingPattern(bucket), targetArn: topicArn };
      await world.aws.createRule({ ...rule, ...(transformer !== undefined && { transformer }) });
      return topicArn;
    },
  };
}

const routes: readonly Route[] = [
  {
    name: 'a notification straight to the queue',
    dialect: 'native',
    source: 'notification',
    async lay({ aws, queue }, bucket) {
      await aws.notify(bucket, { queue });
      return undefined;
    },
  },
  notification('a notification through a topic, in its envelope', false),
  notification('a notification through a topic with raw delivery', true),
  {
    name: 'EventBridge straight to the queue',
    dialect: 'eventbridge',
    source: 'eventbridge',
    async lay({ aws, queue }, bucket) {
      await aws.createRule({ pattern: { source: ['aws.s3'], detail: { bucket: { name: [bucket] } } }, targetArn: queue.arn });
      await aws.notify(bucket, 'eventbridge');
      return undefined;
    },
  },
  {
    name: 'EventBridge through a topic',
    dialect: 'eventbridge',
    source: 'eventbridge',
    async lay(world, bucket) {
      const targetArn = await topicTo(world);
      await world.aws.createRule({ pattern: { source: ['aws.s3'], detail: { bucket: { name: [bucket] } } }, targetArn });
      await world.aws.notify(bucket, 'eventbridge');
      return targetArn;
    },
  },
  routed('the audit trail, a rule with its transformer and a topic', documentedTransformer),
  routed('the audit trail, a rule with the transformer of the other spelling and a topic', otherSpellingTransformer),
  routed('the audit trail, a rule without its transformer and a topic'),
];

describe.skipIf(!awsEndpoint())('a daemon on LocalStack', { timeout: 4 * AGREE_TIMEOUT_MS }, () => {
  let world: World;
  let eventBridgeEncodes: boolean;
  beforeAll(async () => {
    world = await startWorld();
    eventBridgeEncodes = await encodesEventBridgeKeys(world.aws);
    // some bucket must be connected, or nothing is received
    await world.connect({ bucket: await world.aws.createBucket() });
    await world.daemon.ready();
  });
  afterAll(() => world?.dispose());

  describe.each(routes)('told by $name', ({ dialect, source, lay }) => {
    it('indexes what is put, follows what is put over it, and forgets what is deleted', async () => {
      const { aws, daemon } = world;
      const key = dialect === 'eventbridge' && eventBridgeEncodes ? 'dir/plain.txt' : AWKWARD_KEY;
      const bucket = await aws.createBucket({ versioned: true });
      const topicArn = await lay(world, bucket);
      await world.connect({ bucket, source, ...(topicArn !== undefined && { topic_arn: topicArn }) });
      const told = (eventName: 'PutObject' | 'DeleteObject'): Promise<void> =>
        source === 'routed'
          ? tellTrail(aws, [{ eventName, bucket, key, isDeleteMarker: eventName === 'DeleteObject', timeMs: Date.now() }])
          : Promise.resolve();
      const ended = await daemon.metric('tally_records_total', { dialect });

      await aws.put(bucket, key, 'hello');
      await told('PutObject');
      await until('the object is found', async () => (await world.find(bucket, key)) !== undefined, AGREE_TIMEOUT_MS);
      const document = await world.find(bucket, key);
      expect(document).toMatchObject({
        bucket,
        key,
        etag: HELLO_ETAG,
        size: 5,
        source: dialect === 'trail' || dialect === 'synthetic' ? 'routed' : dialect,
      });
      expect(document?.version_id).toMatch(/.{10,}/);

      await aws.put(bucket, key, 'bye');
      await told('PutObject');
      await until('the new object is found', async () => (await world.find(bucket, key))?.etag === BYE_ETAG, AGREE_TIMEOUT_MS);

      await aws.remove(bucket, key);
      await told('DeleteObject');
      await until('the object is found no longer', async () => (await world.find(bucket, key)) === undefined, AGREE_TIMEOUT_MS);
      await until('three records have ended', async () => (await daemon.metric('tally_records_total', { dialect })) >= ended + 3);
      expect(await world.gaps(bucket)).toEqual([]);
    });
  });

  it('takes S3’s test event for what it is', async () => {
    const { aws, daemon, queue } = world;
    const seen = (): Promise<number> => daemon.metric('tally_service_messages_total', { kind: 'test-event' });
    const before = await seen();
    const bucket = await aws.createBucket();
    await aws.notify(bucket, { queue });
    await aws.notify(bucket, { topicArn: await topicTo(world) });
    await until('both test events were taken', async () => (await seen()) >= before + 2);
    expect((await world.bucketList()).unconnected).toEqual([]);
  });

  it('takes each record of a message for itself, and names the one that is broken in a dead letter', async () => {
    const { aws, queue } = world;
    const bucket = await aws.createBucket();
    await world.connect({ bucket });
    const record = (key: string | undefined, sizeBytes: number) => nativeRecord(bucket, { key, size: sizeBytes, eTag: HELLO_ETAG });
    const body = JSON.stringify({ Records: [record('first', 1), record('second', 2), record(undefined, 3), record('last', 4)] });
    await aws.sendBodies(queue.url, [body]);
    const letter = await world.letterOf(body);
    expect(letter).toMatchObject({ fault: 'record.key-missing', context: { queue: queue.url, records: [2] } });
    await until('all good records are found', async () => (await world.documents(bucket)).length === 3);
    expect((await world.documents(bucket)).map(({ key, size }) => [key, size])).toEqual([
      ['first', 1],
      ['last', 4],
      ['second', 2],
    ]);
    expect(await world.gaps(bucket)).toMatchObject([{ kind: 'loss', state: 'open', reason: 'dead letter: record.key-missing' }]);
  });

  it.each([
    ['with its transformer', documentedTransformer],
    ['without its transformer', undefined],
  ])('opens a gap for a bulk delete that names no key, by a rule %s', async (_name, transformer) => {
    const { aws, queue } = world;
    const bucket = await aws.createBucket({ versioned: true });
    await aws.createRule({ pattern: routingPattern(bucket), targetArn: queue.arn, ...(transformer !== undefined && { transformer }) });
    await world.connect({ bucket, source: 'routed' });
    await tellTrail(aws, [{ eventName: 'DeleteObjects', bucket, timeMs: Date.now() }]);
    await until('the gap is open', async () => (await world.gaps(bucket)).length > 0);
    expect(await world.gaps(bucket)).toMatchObject([{ bucket, kind: 'bulk-delete', state: 'open', count: 1 }]);
  });

  it('confirms a subscription to the topic of a connected bucket', async () => {
    const { aws, queue } = world;
    const { topicArn, body, isPending } = await pendingSubscription(aws);
    await world.connect({ bucket: await aws.createBucket(), source: 'topic', topic_arn: topicArn });
    expect(await isPending()).toBe(true);
    await aws.sendBodies(queue.url, [body]);
    await until('the subscription is confirmed', async () => !(await isPending()));
  });

  it('confirms no subscription to a topic that no connected bucket names', async () => {
    const { body, isPending } = await pendingSubscription(world.aws);
    await world.aws.sendBodies(world.queue.url, [body]);
    expect(await world.letterOf(body)).toMatchObject({ fault: 'message.unknown-topic' });
    expect(await isPending()).toBe(true);
  });

  it('opens a loss gap for each bucket of a topic that the queue was unsubscribed from', async () => {
    const { aws, queue } = world;
    const topicArn = await aws.createTopic();
    const buckets = [await aws.createBucket(), await aws.createBucket()];
    for (const bucket of buckets) await world.connect({ bucket, source: 'topic', topic_arn: topicArn });
    const neighbour = await aws.createBucket();
    await world.connect({ bucket: neighbour, source: 'topic', topic_arn: await aws.createTopic() });
    await aws.sendBodies(queue.url, [confirmationBody('UnsubscribeConfirmation', topicArn, 'a-token')]);
    for (const bucket of buckets) {
      await until('the gap is open', async () => (await world.gaps(bucket)).length > 0);
      expect(await world.gaps(bucket)).toMatchObject([
        { bucket, kind: 'loss', state: 'open', reason: 'the bucket queue was unsubscribed from the topic of the bucket' },
      ]);
    }
    expect(await world.gaps(neighbour)).toEqual([]);
  });
});

/** A record of now that states its result: its sequencer is that of its time. */
function nativeRecord(bucket: string, object: object): object {
  const nowMs = Date.now();
  return {
    eventVersion: '2.1',
    eventSource: 'aws:s3',
    awsRegion: 'us-east-1',
    eventTime: new Date(nowMs).toISOString(),
    eventName: 'ObjectCreated:Put',
    s3: { bucket: { name: bucket }, object: { sequencer: sequencerOf(nowMs * 1_000), ...object } },
  };
}
