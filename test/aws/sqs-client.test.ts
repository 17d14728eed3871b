import { startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createSqsClient, confirmSubscription } from '../../src/aws/sqs-client.ts';
import { faultOf } from '../../src/base/fault.ts';
import type { QueueClient } from '../../src/aws/queues.ts';
import { type TestAws, createTestAws } from '../support/servers/aws.ts';
import { startScripted } from '../support/servers/scripted.ts';

const clock = { monotonicMs: () => performance.now() };

describe('the SQS client on fauxqs', () => {
  let aws: TestAws;
  let queues: QueueClient;
  let stop: () => Promise<unknown>;

  beforeAll(async () => {
    const server = await startFauxqs({ port: 0, logger: false });
    stop = () => server.stop();
    aws = createTestAws(server.address);
    queues = createSqsClient({ clientFor: aws.clients().sqsFor, clock });
  });
  afterAll(async () => {
    await aws.dispose();
    await stop();
  });

  it('sends a message with its attributes, receives it with all facts, and deletes it', async () => {
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
    expect(await queues.deleteBatch(url, [message!.receiptHandle])).toEqual([]);
    expect(await queues.attributes(url)).toMatchObject({ visible: 0, inFlight: 0 });
  });

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

  it('reads the attributes of a queue and finds the URL of the dead-letter queue', async () => {
    const deadLetters = await aws.createQueue();
    const { url } = await aws.createQueue({
      attributes: { VisibilityTimeout: '45', MessageRetentionPeriod: '3600', MaximumMessageSize: '262144' },
      deadLetters: { queue: deadLetters, maxReceiveCount: 20 },
    });
    const found = await queues.attributes(url);
    expect(found).toMatchObject({ visible: 0, inFlight: 0, delayed: 0, visibilityTimeoutS: 45, maxReceiveCount: 20 });
    expect(found).toMatchObject({ retentionMs: 3_600_000, messageBytesMax: 262_144 });
    await queues.send(found.deadLetterQueueUrl!, { body: 'dead', attributes: {} });
    expect(await aws.takeBodies(deadLetters.url, 1)).toEqual(['dead']);
    expect(await queues.attributes(deadLetters.url)).not.toHaveProperty('maxReceiveCount');
  });

  it('says that a queue does not exist', async () => {
    const gone = `${aws.endpoint}/000000000000/there-is-no-such-queue`;
    await expect(queues.attributes(gone)).rejects.toThrow(`GetQueueAttributes ${gone}: the queue does not exist`);
    await expect(queues.deleteBatch(gone, ['x'])).rejects.toMatchObject({ code: 'queue.missing' });
  });
});

describe('the SQS client', () => {
  // fauxqs answers as if it had deleted something
  it('tells which entries of a batch failed', async () => {
    const Failed = [
      { Id: '0', Code: 'ReceiptHandleIsInvalid', SenderFault: false },
      { Id: '1', Code: 'InternalError', SenderFault: false },
      { Id: '3', Code: 'OverLimit', SenderFault: true },
    ];
    const headers = { 'content-type': 'application/x-amz-json-1.0' };
    const { url } = await startScripted(() => ({ headers, body: { Successful: [{ Id: '2' }], Failed } }));
    const aws = createTestAws(url);
    onTestFinished(() => aws.dispose());
    const queues = createSqsClient({ clientFor: aws.clients().sqsFor, clock });
    const failures = [
      // not every emulator says that it is the sender's fault
      { receiptHandle: 'a', code: 'ReceiptHandleIsInvalid', senderFault: true },
      { receiptHandle: 'b', code: 'InternalError', senderFault: false },
      { receiptHandle: 'd', code: 'OverLimit', senderFault: true },
    ];
    const handles = ['a', 'b', 'c', 'd'];
    const queueUrl = `${url}/000000000000/q`;
    expect(await queues.deleteBatch(queueUrl, handles)).toEqual(failures);
    const hidden = handles.map((receiptHandle) => ({ receiptHandle, timeoutS: 5 }));
    expect(await queues.changeVisibilityBatch(queueUrl, hidden)).toEqual(failures);
  });

  async function faultFrom(endpoint: string): Promise<unknown> {
    const aws = createTestAws(endpoint);
    const queues = createSqsClient({ clientFor: aws.clients().sqsFor, clock });
    const fault = await queues.deleteBatch(`${aws.endpoint}/000000000000/q`, ['x']).then(() => 'no fault', faultOf);
    await aws.dispose();
    return fault;
  }
  const unreachable = (reason: string) => ({ code: 'queue.unreachable', reason: expect.stringContaining(reason) as string });

  it('says that nothing answers', async () => {
    // nothing is ever given this port
    expect(await faultFrom('http://127.0.0.1:1')).toEqual(unreachable('ECONNREFUSED'));
  });

  it.each([-600_000, 600_000])('Fix: shows that the clock of SQS is %d ms ahead of that of this machine', async (aheadMs) => {
    const Attributes = {
      ApproximateNumberOfMessages: '0',
      ApproximateNumberOfMessagesNotVisible: '0',
      ApproximateNumberOfMessagesDelayed: '0',
      VisibilityTimeout: '30',
    };
    const { url } = await startScripted(() => ({
      headers: { 'content-type': 'application/x-amz-json-1.0', date: new Date(Date.now() + aheadMs).toUTCString() },
      body: { Attributes },
    }));
    const aws = createTestAws(url);
    const { sqsAheadMs = 0 } = await createSqsClient({ clientFor: aws.clients().sqsFor, clock }).attributes(`${url}/000000000000/events`);
    await aws.dispose();
    expect(Math.abs(sqsAheadMs - aheadMs)).toBeLessThan(30_000);
  });

  it.each([
    [403, 'AccessDeniedException', 'permission denied'],
    [400, 'UnrecognizedClientException', 'the AWS credentials are missing or not accepted'],
  ])('says of %d %s: %s', async (status, type, reason) => {
    const body = { __type: `com.amazon.coral.service#${type}`, message: 'as scripted' };
    const { url } = await startScripted(() => ({ status, headers: { 'content-type': 'application/x-amz-json-1.0' }, body }));
    expect(await faultFrom(url)).toEqual(unreachable(reason));
  });
});

const TOPIC_ARN = 'arn:aws:sns:eu-west-1:000000000000:some-topic';

it('a subscription is confirmed with the token that the topic sent', async () => {
  const confirmed = '<ConfirmSubscriptionResult><SubscriptionArn>arn</SubscriptionArn></ConfirmSubscriptionResult>';
  const body = `<ConfirmSubscriptionResponse>${confirmed}</ConfirmSubscriptionResponse>`;
  const { url, asked } = await startScripted(() => ({ headers: { 'content-type': 'text/xml' }, body }));
  const aws = createTestAws(url);
  onTestFinished(() => aws.dispose());
  await confirmSubscription(aws.clients().snsFor, TOPIC_ARN, 'token');
  const sent = Object.fromEntries(new URLSearchParams(asked[0]?.body));
  expect(sent).toMatchObject({ Action: 'ConfirmSubscription', TopicArn: TOPIC_ARN, Token: 'token' });
});

describe('a subscription to a topic that cannot be asked', () => {
  it('is not confirmed; the region is that of its ARN', async () => {
    const regions: string[] = [];
    const aws = createTestAws('http://127.0.0.1:1');
    const clients = aws.clients();
    const unreachable = (region: string) => {
      regions.push(region);
      return clients.snsFor(region);
    };
    await expect(confirmSubscription(unreachable, TOPIC_ARN, 'token')).rejects.toMatchObject({
      code: 'message.confirmation-failed',
      reason: expect.stringContaining('ECONNREFUSED') as string,
    });
    expect(regions).toEqual(['eu-west-1']);
    const reason = new Error('enough');
    const aborted = AbortSignal.abort(reason);
    await expect(confirmSubscription(unreachable, TOPIC_ARN, 'token', aborted)).rejects.toBe(reason);
    await aws.dispose();
  });

  it.each(['', 'arn:aws:sqs:eu-west-1:000000000000:q', 'arn:aws:sns:evil.example/:000000000000:t', `${TOPIC_ARN}\n`])(
    'is none where the ARN is %j',
    async (topicArn) => {
      const clientFor = () => {
        throw new Error('asked');
      };
      await expect(confirmSubscription(clientFor, topicArn, 'token')).rejects.toMatchObject({
        reason: expect.stringContaining('not the ARN of an SNS topic') as string,
      });
    },
  );
});
