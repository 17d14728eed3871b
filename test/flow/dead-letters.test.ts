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

test.runIf(awsEndpoint() !== undefined).each([
  { maxReceiveCount: 100, times: 20, fault: 'message.received-too-often' },
  { maxReceiveCount: 3, times: 3, fault: undefined },
])(
  'with a maxReceiveCount of $maxReceiveCount, a message that ended its process $times times is a letter, its bucket has a gap, and its neighbour is indexed',
  async ({ maxReceiveCount, times, fault }) => {
    const world = await startWorld({ maxReceiveCount });
    try {
      const { aws, queue } = world;
      const bucket = await aws.createBucket();
      const poison = event(bucket, 'poison');
      await aws.sendBodies(queue.url, [poison]);
      await receive(world, 1, times);
      await aws.put(bucket, 'neighbour', 'x');
      await aws.sendBodies(queue.url, [event(bucket, 'neighbour')]);
      await world.connect({ bucket });
      const letter = await world.letterOf(poison);
      expect(letter.fault).toBe(fault);
      await until('the neighbour is indexed', async () => (await world.find(bucket, 'neighbour')) !== undefined);
      await until('the gap is open', async () => (await world.gaps(bucket)).length > 0);
      expect(await world.gaps(bucket)).toMatchObject([
        {
          reasons: expect.arrayContaining([expect.objectContaining({ kind: 'loss', example: `dead letter: ${fault ?? 'message.moved'}` })]),
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
