import { ReceiveMessageCommand, SendMessageCommand, StartMessageMoveTaskCommand, type Message } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/servers/aws.ts';
import type { World } from '../support/worlds/aws.ts';
import { startWorld } from '../support/worlds/aws.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { pendingSubscription } from '../support/sources.ts';

const AGREE_TIMEOUT_MS = 300_000;

describe.skipIf(!awsEndpoint())('dead letters on the redrive queue of the bucket queue', { timeout: 2 * AGREE_TIMEOUT_MS }, () => {
  let world: World;
  let bucket: string;
  beforeAll(async () => {
    world = await startWorld();
    bucket = await world.aws.createBucket();
    await world.connect({ bucket });
    await world.daemon.ready();
  });
  afterAll(() => world?.dispose());

  /** A notification that says too little to be believed: the object is looked at. */
  const healthyBody = (key: string): string =>
    JSON.stringify({
      Records: [
        { eventVersion: '2.1', eventSource: 'aws:s3', eventName: 'ObjectCreated:Put', s3: { bucket: { name: bucket }, object: { key } } },
      ],
    });

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

    expect(await world.daemon.request('POST', '/v1/dead-letters/discard', { ids: [letter.id] })).toMatchObject({ body: { discarded: 1 } });
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

  it('that SQS moved there itself are shown, and indexed when they are replayed', async () => {
    const { aws, deadLetters } = world;
    await aws.put(bucket, 'moved-by-sqs', 'hello');
    const body = healthyBody('moved-by-sqs');
    await aws.sendBodies(deadLetters.url, [body]);
    const letter = await world.letterOf(body);
    expect(letter).not.toHaveProperty('fault');
    expect(await world.daemon.request('POST', '/v1/dead-letters/replay', { ids: [letter.id] })).toMatchObject({ body: { replayed: 1 } });
    await until('the object is found', async () => (await world.find(bucket, 'moved-by-sqs')) !== undefined, AGREE_TIMEOUT_MS);
    expect((await world.letters()).filter((each) => each.body === body)).toEqual([]);
  });

  it('can be moved back by SQS itself, which must be told where to', async () => {
    const { aws, queue, deadLetters } = world;
    await aws.put(bucket, 'moved-back', 'hello');
    await aws.sendBodies(deadLetters.url, [healthyBody('moved-back')]);
    await aws.sqs.send(new StartMessageMoveTaskCommand({ SourceArn: deadLetters.arn, DestinationArn: queue.arn }));
    await until('the object is found', async () => (await world.find(bucket, 'moved-back')) !== undefined, AGREE_TIMEOUT_MS);
  });

  it('of a known bucket open a loss gap, once however often they come', async () => {
    const { aws, queue } = world;
    // of the bucket of the tests above, the daemon may have found a letter that SQS moved
    const [other, neighbour] = [await aws.createBucket(), await aws.createBucket()];
    for (const each of [other, neighbour]) await world.connect({ bucket: each });
    const body = JSON.stringify({ Records: [{ eventVersion: '3.0', eventSource: 'aws:s3', s3: { bucket: { name: other } } }] });
    await aws.sendBodies(queue.url, [body, body]);
    await until('both were given up', async () => (await world.letters()).filter((letter) => letter.body === body).length === 2);
    expect(await world.letterOf(body)).toMatchObject({ fault: 'record.version-unknown', context: { records: [0] } });
    // one is that the bucket was never compared
    expect(await world.gaps(other)).toMatchObject([
      { bucket: other, kind: 'loss', state: 'open', count: 3, reason: 'dead letter: record.version-unknown' },
    ]);
    expect(await world.gaps(neighbour)).toEqual([]);
  });
});
