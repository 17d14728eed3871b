import { ReceiveMessageCommand, SendMessageCommand, type Message } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/servers/aws.ts';
import type { World } from '../support/worlds/aws.ts';
import { checkOf, startWorld } from '../support/worlds/aws.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { pendingSubscription } from '../support/sources.ts';

/** A provisional answer that a slow machine wrote out of order is put right by its settle, some 45 s later. */
const AGREE_TIMEOUT_MS = 300_000;

describe.skipIf(!awsEndpoint())('a daemon on LocalStack, from its first bucket on', { timeout: 4 * AGREE_TIMEOUT_MS }, () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world?.dispose());

  /** A bucket that notifies the bucket queue itself. */
  async function notifyingBucket(): Promise<string> {
    const { aws, queue } = world;
    const bucket = await aws.createBucket();
    await aws.notify(bucket, { queue });
    return bucket;
  }

  const found = async (bucket: string, key: string): Promise<boolean> => (await world.find(bucket, key)) !== undefined;

  it('receives nothing and says so until a bucket is connected, then goes on without a restart', async () => {
    const { aws, daemon, queue } = world;
    const bucket = await notifyingBucket();
    await aws.put(bucket, 'k', 'hello');
    // S3's test event and the object's
    await until('both messages are there', async () => (await world.messagesIn(queue.url)) === 2);
    await until('it says so', async () => (await daemon.metric('tally_receiving', { state: 'no-bucket' })) === 1);
    const answer = await daemon.readyz();
    expect(answer).toMatchObject({ status: 503, body: { ready: false, roles: { ingest: { ready: false }, http: { ready: true } } } });
    expect(checkOf(answer?.body, 'buckets')).toMatchObject({ status: 'failed', code: 'no-bucket' });
    expect(await world.messagesIn(queue.url)).toBe(2);

    await world.connect({ bucket });
    await daemon.ready();
    await until('the object is found', () => found(bucket, 'k'), AGREE_TIMEOUT_MS);
    expect((await world.bucketList()).unconnected).toEqual([]);
  });

  it('counts and shows the events of a bucket that is not connected, and indexes what comes after it was', async () => {
    const { aws, daemon } = world;
    const bucket = await notifyingBucket();
    for (const key of ['a', 'b', 'c']) await aws.put(bucket, key, 'before');
    await until('three events were counted', async () => (await world.bucketList()).unconnected[0]?.count === 3);
    expect((await world.bucketList()).unconnected).toMatchObject([{ bucket, count: 3 }]);
    expect((await daemon.request('GET', `/v1/buckets/${bucket}`)).status).toBe(404);
    expect(await world.documents(bucket)).toEqual([]);

    await world.connect({ bucket });
    expect(await world.everyGap(bucket)).toMatchObject([
      { bucket, state: 'open', reasons: expect.arrayContaining([expect.objectContaining({ kind: 'new' })]) },
    ]);
    expect((await world.bucketList()).unconnected).toEqual([]);
    // whoever asked for its record just now may believe the answer for some seconds: those events are told by the gap
    await until(
      'a new object is found',
      async () => {
        await aws.put(bucket, 'd', 'after');
        return found(bucket, 'd');
      },
      AGREE_TIMEOUT_MS,
    );
    expect(await world.documents(bucket)).toMatchObject([{ key: 'd' }]);
  });

  it('learns from a version id that a bucket has versions now', async () => {
    const { aws } = world;
    const bucket = await notifyingBucket();
    expect(await world.connect({ bucket })).toMatchObject({ versioning: { status: 'never' } });
    await aws.put(bucket, 'k', 'without a version');
    await until('it is found', () => found(bucket, 'k'), AGREE_TIMEOUT_MS);
    expect(await world.bucketRecord(bucket)).toMatchObject({ versioning: { status: 'never' } });
    await aws.setVersioning(bucket, 'Enabled');
    await aws.put(bucket, 'k', 'with a version');
    await until('the record says so', async () => (await world.bucketRecord(bucket)).versioning.status === 'enabled', AGREE_TIMEOUT_MS);
    await until('the version is found', async () => (await world.find(bucket, 'k'))?.version_id !== undefined, AGREE_TIMEOUT_MS);
    await aws.remove(bucket, 'k');
    await until('it is found no longer', async () => !(await found(bucket, 'k')), AGREE_TIMEOUT_MS);
  });

  // their bodies and faults: bad-input.test.ts
  describe('dead letters on the redrive queue', () => {
    it('keep the body as it was, with the reason and their own attributes beside it', async () => {
      const { aws, queue, deadLetters } = world;
      const body = ' {"no": "event", "of": "ünïcode 😀 and \\u0000"} \n';
      const MessageAttributes = { trace: { DataType: 'String', StringValue: 'abc' } };
      const { MessageId } = await aws.sqs.send(new SendMessageCommand({ QueueUrl: queue.url, MessageBody: body, MessageAttributes }));
      const letter = await world.letterOf(body);
      expect(letter).toMatchObject({
        fault: 'message.unknown-wrapper',
        context: { queue: queue.url, message_id: MessageId, records: [] },
        size_bytes: Buffer.byteLength(body),
      });
      await until('the message is gone', async () => (await world.messagesIn(queue.url)) === 0);

      const receive = new ReceiveMessageCommand({ QueueUrl: deadLetters.url, MessageAttributeNames: ['All'], VisibilityTimeout: 0 });
      let raw: Message | undefined;
      // the daemon looks for letters from time to time, and hides them meanwhile
      await until('the letter is received', async () => {
        [raw] = (await aws.sqs.send(receive)).Messages ?? [];
        return raw !== undefined;
      });
      expect(raw?.Body).toBe(body);
      expect(raw?.MessageAttributes).toMatchObject({
        trace: { StringValue: 'abc' },
        'tally-fault': { StringValue: 'message.unknown-wrapper' },
      });
      expect(raw?.MessageAttributes?.['tally-reason']?.StringValue).toMatch(/^[ -~]{1,256}$/);

      expect(await world.daemon.request('POST', '/v1/dead-letters/discard', { ids: [letter.id] })).toMatchObject({
        body: { discarded: 1 },
      });
      expect(await world.messagesIn(deadLetters.url)).toBe(0);
    });

    it('are handled when they are replayed after what was wrong was put right', async () => {
      const { aws, queue, deadLetters } = world;
      const { topicArn, body, isPending } = await pendingSubscription(aws);
      await aws.sendBodies(queue.url, [body]);
      expect(await world.letterOf(body)).toMatchObject({ fault: 'message.unknown-topic' });
      await world.connect({ bucket: await aws.createBucket(), source: 'topic', topic_arn: topicArn });
      expect(await world.daemon.request('POST', '/v1/dead-letters/replay', { all: true })).toMatchObject({ body: { replayed: 1 } });
      await until('the subscription is confirmed', async () => !(await isPending()));
      expect(await world.messagesIn(deadLetters.url)).toBe(0);
    });
  });
});
