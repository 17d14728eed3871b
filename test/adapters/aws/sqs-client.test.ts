import { startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSqsClient } from '../../../src/adapters/aws/sqs-client.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import type { QueueClient } from '../../../src/pipeline/ports/queues.ts';
import type { TestAws } from '../../support/servers/aws.ts';
import { createTestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';

const clock = { monotonicMs: () => performance.now() };

const emulators = [
  {
    name: 'fauxqs',
    isMissing: false,
    start: async () => {
      const server = await startFauxqs({ port: 0, logger: false });
      return { endpoint: server.address, stop: () => server.stop() };
    },
  },
  { name: 'LocalStack', isMissing: !awsEndpoint(), start: async () => ({ endpoint: awsEndpoint()!, stop: async () => undefined }) },
];

describe.each(emulators)('the SQS client on $name', ({ name, isMissing, start }) => {
  describe.skipIf(isMissing)('', () => {
    let aws: TestAws;
    let queues: QueueClient;
    let stop: () => Promise<unknown>;

    beforeAll(async () => {
      const server = await start();
      stop = server.stop;
      aws = createTestAws(server.endpoint);
      queues = createSqsClient({ clientFor: aws.clients().sqsFor, clock });
    });
    afterAll(async () => {
      await aws.dispose();
      await stop();
    });

    it('sends a message with its attributes and receives it with all facts', async () => {
      const { url } = await aws.createQueue();
      const attributes = {
        note: { dataType: 'String', stringValue: 'ünï' },
        bytes: { dataType: 'Binary', binaryValue: new Uint8Array([0, 255]) },
      };
      const messageId = await queues.send(url, { body: '{"a":1}', attributes });
      const [message] = await queues.receive(url, { visibilityS: 30, max: 10 });
      expect(message).toMatchObject({ queueUrl: url, messageId, body: '{"a":1}', receiveCount: 1 });
      expect(message?.attributes['note']).toEqual(attributes.note);
      expect([...message!.attributes['bytes']!.binaryValue!]).toEqual([0, 255]);
      expect(Math.abs(message!.sentAtMs - Date.now())).toBeLessThan(60_000);
      expect(message!.firstReceivedAtMs).toBeGreaterThanOrEqual(message!.sentAtMs);
      expect(await queues.receive(url, { visibilityS: 30, max: 10 })).toEqual([]);
    });

    it('deletes a batch', async () => {
      const { url } = await aws.createQueue();
      await aws.sendBodies(url, ['a', 'b']);
      const received = await queues.receive(url, { visibilityS: 30, max: 10 });
      const handles = received.map((message) => message.receiptHandle);
      expect(await queues.deleteBatch(url, handles)).toEqual([]);
      expect(await queues.attributes(url)).toMatchObject({ visible: 0, inFlight: 0 });
    });

    // fauxqs answers as if it had deleted something
    if (name !== 'fauxqs') {
      it('tells which entries of a batch failed, and does the others', async () => {
        const { url } = await aws.createQueue();
        await aws.sendBodies(url, ['a']);
        const [message] = await queues.receive(url, { visibilityS: 30, max: 10 });
        const failures = await queues.deleteBatch(url, ['no-receipt-handle', message!.receiptHandle]);
        expect(failures).toEqual([{ receiptHandle: 'no-receipt-handle', code: 'ReceiptHandleIsInvalid', senderFault: true }]);
        const hidden = await queues.changeVisibilityBatch(url, [{ receiptHandle: 'no-receipt-handle', timeoutS: 5 }]);
        expect(hidden).toMatchObject([{ receiptHandle: 'no-receipt-handle', senderFault: true }]);
        expect(await queues.attributes(url)).toMatchObject({ visible: 0, inFlight: 0 });
      });
    }

    it('gives messages back, and hides them, in one batch', async () => {
      const { url } = await aws.createQueue();
      await aws.sendBodies(url, ['a', 'b']);
      const [a, b] = await queues.receive(url, { visibilityS: 30, max: 10 });
      const failures = await queues.changeVisibilityBatch(url, [
        { receiptHandle: a!.receiptHandle, timeoutS: 0 },
        { receiptHandle: b!.receiptHandle, timeoutS: 600 },
      ]);
      expect(failures).toEqual([]);
      const [again] = await queues.receive(url, { visibilityS: 30, max: 10 });
      expect(again).toMatchObject({ body: a!.body, receiveCount: 2 });
      expect(await queues.attributes(url)).toMatchObject({ visible: 0, inFlight: 2 });
    });

    it('reads the redrive policy and finds the URL of the dead-letter queue', async () => {
      const deadLetters = await aws.createQueue();
      const { url } = await aws.createQueue({
        attributes: { VisibilityTimeout: '45' },
        deadLetters: { queue: deadLetters, maxReceiveCount: 20 },
      });
      const found = await queues.attributes(url);
      expect(found).toMatchObject({ visible: 0, inFlight: 0, delayed: 0, visibilityTimeoutS: 45, maxReceiveCount: 20 });
      await queues.send(found.deadLetterQueueUrl!, { body: 'dead', attributes: {} });
      expect(await aws.takeBodies(deadLetters.url, 1)).toEqual(['dead']);
      expect(await queues.attributes(deadLetters.url)).not.toHaveProperty('maxReceiveCount');
    });

    it('reads how long the queue keeps a message, and how large one may be', async () => {
      const { url } = await aws.createQueue({ attributes: { MessageRetentionPeriod: '3600', MaximumMessageSize: '262144' } });
      expect(await queues.attributes(url)).toMatchObject({ retentionMs: 3_600_000, messageBytesMax: 262_144 });
    });

    it('says that a queue does not exist', async () => {
      const gone = `${aws.endpoint}/000000000000/there-is-no-such-queue`;
      await expect(queues.attributes(gone)).rejects.toThrow(`GetQueueAttributes ${gone}: the queue does not exist`);
      await expect(queues.deleteBatch(gone, ['x'])).rejects.toMatchObject({ code: 'queue.unreachable' });
    });

    it('rejects with the reason of an aborted signal', async () => {
      const { url } = await aws.createQueue();
      const reason = new Error('enough');
      await expect(queues.attributes(url, AbortSignal.abort(reason))).rejects.toBe(reason);
    });
  });
});

describe('the SQS client', () => {
  it('says that nothing answers', async () => {
    // nothing is ever given this port
    const aws = createTestAws('http://127.0.0.1:1');
    const queues = createSqsClient({ clientFor: aws.clients().sqsFor, clock });
    const error = await queues.deleteBatch(`${aws.endpoint}/000000000000/q`, ['x']).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(FaultError);
    expect(error).toMatchObject({ code: 'queue.unreachable', reason: expect.stringContaining('ECONNREFUSED') as string });
    await aws.dispose();
  });
});
