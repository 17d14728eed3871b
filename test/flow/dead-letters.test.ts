/** How messages are given up, on a real SQS, by a daemon that receives nothing until a bucket is connected. */
import { ChangeMessageVisibilityCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { awsEndpoint } from '../support/servers/found.ts';
import { until } from '../support/servers/aws.ts';
import { startWorld, type World } from '../support/worlds/aws.ts';
import { sequencerAt } from '../support/worlds/ingest.ts';

/** A native event of an object that is there, or of none. */
const event = (bucket: string, key: string): string =>
  JSON.stringify({
    Records: [
      {
        eventVersion: '2.1',
        eventSource: 'aws:s3',
        eventTime: new Date().toISOString(),
        eventName: 'ObjectCreated:Put',
        s3: { bucket: { name: bucket }, object: { key, size: 1, eTag: 'e', sequencer: sequencerAt(Date.now()) } },
      },
    ],
  });

/** Receives all messages as often, as workers would that are killed each time. */
async function receive({ aws, queue }: World, messages: number, times: number): Promise<void> {
  for (let received = 0; received < messages * times;) {
    const { Messages = [] } = await aws.sqs.send(new ReceiveMessageCommand({ QueueUrl: queue.url, MaxNumberOfMessages: 10 }));
    for (const { ReceiptHandle } of Messages)
      await aws.sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl: queue.url, ReceiptHandle, VisibilityTimeout: 0 }));
    received += Messages.length;
  }
}

/** Fewer than those after which Tally itself gives a message up: test/repair/outcomes.test.ts has each number. */
const MAX_RECEIVE_COUNT = 3;

test.runIf(awsEndpoint() !== undefined)(
  'a message that ended its process three times is moved by SQS, its bucket has a gap, and its neighbour is indexed',
  async () => {
    const world = await startWorld({ maxReceiveCount: MAX_RECEIVE_COUNT });
    try {
      const { aws, queue } = world;
      const bucket = await aws.createBucket();
      const poison = event(bucket, 'poison');
      await aws.sendBodies(queue.url, [poison]);
      await receive(world, 1, MAX_RECEIVE_COUNT);
      await aws.put(bucket, 'neighbour', 'x');
      await aws.sendBodies(queue.url, [event(bucket, 'neighbour')]);
      await world.connect({ bucket });
      const letter = await world.letterOf(poison);
      expect(letter.fault).toBeUndefined();
      await until('the neighbour is indexed', async () => (await world.find(bucket, 'neighbour')) !== undefined);
      await until('the gap is open', async () => (await world.gaps(bucket)).length > 0);
      expect(await world.gaps(bucket)).toMatchObject([
        {
          reasons: expect.arrayContaining([expect.objectContaining({ kind: 'loss', example: 'dead letter: message.moved' })]),
        },
      ]);
      expect(await world.find(bucket, 'poison')).toBeUndefined();
      await until('the queue is empty', async () => (await world.messagesIn(queue.url)) === 0);
    } finally {
      await world.dispose();
    }
  },
  180_000,
);
