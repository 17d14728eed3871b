import { setTimeout as delay } from 'node:timers/promises';
import { startFauxqs } from 'fauxqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSqsClient } from '../../src/aws/sqs-client.ts';
import { createSqsReceiver } from '../../src/aws/sqs-receiver.ts';
import type { FaultError } from '../../src/base/fault.ts';
import type { QueueMessage, QueueReceiver } from '../../src/aws/queues.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws, until } from '../support/servers/aws.ts';
import { startScripted } from '../support/servers/scripted.ts';

type Options = Parameters<typeof createSqsReceiver>[0];
type Handlers = Parameters<QueueReceiver['start']>[0];

const clock = {
  monotonicMs: () => performance.now(),
  sleep: (delayMs: number, signal?: AbortSignal) => delay(delayMs, undefined, { ...(signal && { signal }) }),
};

/** A receiver that notes what it is given. */
function startReceiver(aws: TestAws, options: Partial<Options> & Pick<Options, 'queueUrls'>, handlers: Partial<Handlers> = {}) {
  const messages: QueueMessage[] = [];
  const faults: FaultError[] = [];
  const seen = { polled: 0 };
  const receiver = createSqsReceiver({
    clientFor: aws.clients({ waitS: 20 }).sqsReceivingFor,
    pollers: 2,
    waitS: 1,
    visibilityS: 30,
    clock,
    ...options,
  });
  receiver.start({
    admit: async () => undefined,
    handle: async (batch) => void messages.push(...batch),
    failed: (fault) => faults.push(fault),
    polled: () => (seen.polled += 1),
    ...handlers,
  });
  return { receiver, messages, faults, seen };
}

async function countsOf(aws: TestAws, url: string): Promise<{ visible: number; inFlight: number }> {
  const { visible, inFlight } = await createSqsClient({ clientFor: aws.clients().sqsFor, clock }).attributes(url);
  return { visible, inFlight };
}

describe('the SQS receiver', () => {
  let aws: TestAws;
  let stopServer: () => Promise<unknown>;

  beforeAll(async () => {
    const server = await startFauxqs({ port: 0, logger: false });
    stopServer = () => server.stop();
    aws = createTestAws(server.address);
  });
  afterAll(async () => {
    await aws.dispose();
    await stopServer();
  });

  async function queueOf(bodies: readonly string[]): Promise<string> {
    const { url } = await aws.createQueue();
    await aws.sendBodies(url, bodies);
    return url;
  }

  it('hands over messages of every queue with all their facts, and deletes none', async () => {
    const bodies = Array.from({ length: 25 }, (_, index) => `body ${index}`);
    const queueUrls = [await queueOf(bodies), await queueOf(['other'])];
    const { receiver, messages, faults, seen } = startReceiver(aws, { queueUrls });
    await until('all messages have come', () => messages.length === 26);
    await receiver.stop(0);
    const [first, second] = queueUrls.map((url) => messages.filter(({ queueUrl }) => queueUrl === url));
    expect(first!.map(({ body }) => body).toSorted()).toEqual(bodies.toSorted());
    const other = second![0]!;
    expect(other).toMatchObject({ body: 'other', receiveCount: 1, attributes: {} });
    expect(other.receivedAtMonotonicMs).toBeLessThanOrEqual(performance.now());
    expect(await countsOf(aws, queueUrls[0]!)).toEqual({ visible: 0, inFlight: 25 });
    expect(faults).toEqual([]);
    expect(seen.polled).toBeGreaterThanOrEqual(4);
  });

  it('receives nothing until it is admitted', async () => {
    const url = await queueOf(['waits']);
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    const admit = async () => {
      asked += 1;
      await gate.promise;
    };
    const { receiver, messages } = startReceiver(aws, { queueUrls: [url] }, { admit });
    await until('both pollers ask', () => asked === 2);
    expect(await countsOf(aws, url)).toEqual({ visible: 1, inFlight: 0 });
    gate.resolve();
    await until('the message has come', () => messages.length === 1);
    await receiver.stop(0);
  });

  it('Fix: leaves large messages in the connection until there is room, one answer after another, and takes others meanwhile', async () => {
    const [large, small] = [await aws.createQueue(), await aws.createQueue()];
    // each fills an answer of its own
    const bodies = Array.from({ length: 4 }, (_, index) => String(index).repeat(200_000));
    await aws.sendBodies(large.url, bodies);
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    const roomForLarge = async () => {
      asked += 1;
      await gate.promise;
    };
    const options = { queueUrls: [large.url, small.url, large.url], batchMax: 2, pollers: 4 };
    const { receiver, messages, faults } = startReceiver(aws, options, { roomForLarge });
    await until('the first asks', () => asked === 1);
    await aws.sendBodies(small.url, ['small']);
    await until('the small one has come', () => messages.length === 1);
    expect(asked).toBe(1);
    gate.resolve();
    await until('the large ones have come', () => messages.length === 5);
    expect(asked).toBe(2);
    expect(messages.map(({ body }) => body).toSorted()).toEqual([...bodies, 'small'].toSorted());
    await receiver.stop(0);
    expect(faults).toEqual([]);
  });

  it('stops at once although a large answer waits for room', async () => {
    const url = await queueOf(['x'.repeat(900_000)]);
    let asked = 0;
    const roomForLarge = (signal: AbortSignal) =>
      new Promise<void>((_, reject) => {
        asked += 1;
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const { receiver, messages } = startReceiver(aws, { queueUrls: [url] }, { roomForLarge });
    await until('it asks', () => asked === 1);
    await receiver.stop(60_000);
    expect(messages).toEqual([]);
  });

  it('holds a poller back until its batch is handled', async () => {
    const url = await queueOf(Array.from({ length: 12 }, (_, index) => String(index)));
    const handled = Promise.withResolvers<void>();
    const sizes: number[] = [];
    const handle = async (batch: readonly QueueMessage[]) => {
      sizes.push(batch.length);
      await handled.promise;
    };
    const { receiver } = startReceiver(aws, { queueUrls: [url], pollers: 1 }, { handle });
    await until('a batch has come', () => sizes.length === 1);
    expect(await countsOf(aws, url)).toEqual({ visible: 2, inFlight: 10 });
    handled.resolve();
    await until('the rest has come', () => sizes.length === 2);
    expect(sizes).toEqual([10, 2]);
    await receiver.stop(0);
  });

  it('tells of a handler that throws, and goes on', async () => {
    const url = await queueOf(['a']);
    const bodies: string[] = [];
    const handle = async (batch: readonly QueueMessage[]) => {
      bodies.push(...batch.map((message) => message.body));
      if (bodies.length === 1) throw new Error('a mistake of ours');
    };
    const instant = { ...clock, sleep: async () => undefined };
    const { receiver, faults } = startReceiver(aws, { queueUrls: [url], pollers: 1, clock: instant }, { handle });
    await until('the fault is told', () => faults.length === 1);
    await aws.sendBodies(url, ['b']);
    await until('the next message has come', () => bodies.length === 2);
    expect(faults).toMatchObject([{ code: 'internal.unexpected', reason: 'Error: a mistake of ours' }]);
    await receiver.stop(0);
  });

  it('hands over what a running poll still receives in the grace of a stop, and begins no other', async () => {
    const { url } = await aws.createQueue();
    const admitted: number[] = [];
    const admit = async () => void admitted.push(1);
    const { receiver, messages } = startReceiver(aws, { queueUrls: [url], pollers: 1, waitS: 20 }, { admit });
    await until('a poll runs', () => admitted.length === 1);
    const stopped = receiver.stop(60_000);
    await aws.sendBodies(url, ['late']);
    await stopped;
    await until('it was handed over', () => messages.length === 1);
    await aws.sendBodies(url, ['too late']);
    expect(await countsOf(aws, url)).toEqual({ visible: 1, inFlight: 1 });
    expect(admitted).toHaveLength(1);
  });

  it('aborts the polls that outlast the grace of a stop', async () => {
    // nothing but the abort can end these
    const { url, asked } = await startScripted(() => undefined);
    const own = createTestAws(url);
    const { receiver, faults } = startReceiver(own, { queueUrls: [`${url}/000000000000/q`], waitS: 20 });
    await until('the polls run', () => asked.length === 2);
    await receiver.stop(50);
    expect(faults).toEqual([]);
    await own.dispose();
  });

  it('stops while its pollers wait to be admitted', async () => {
    const { url } = await aws.createQueue();
    const reasons: unknown[] = [];
    const admit = (signal: AbortSignal) =>
      new Promise<void>((_, reject) => {
        signal.addEventListener('abort', () => {
          reasons.push(signal.reason);
          reject(new Error('not admitted'));
        });
      });
    const { receiver, faults } = startReceiver(aws, { queueUrls: [url] }, { admit });
    await receiver.stop(10_000);
    expect(reasons).toHaveLength(2);
    expect(faults).toEqual([]);
  });
});

describe('the back-off of the SQS receiver', () => {
  /** What it was asked to sleep until it has failed so often; the last sleep lasts until the stop. */
  async function sleptUntil(failures: number, endpoint: string) {
    const delays: number[] = [];
    const sleep = async (delayMs: number, signal?: AbortSignal) => {
      if (delays.length === failures - 1) await clock.sleep(3_600_000, signal);
      delays.push(delayMs);
    };
    const aws = createTestAws(endpoint);
    const { receiver, faults } = startReceiver(aws, { queueUrls: [`${endpoint}/000000000000/q`], pollers: 1, clock: { ...clock, sleep } });
    await until('it has failed so often', () => faults.length === failures);
    await receiver.stop(0);
    await aws.dispose();
    return { delays, faults };
  }

  it('is short after one failure, and doubles from 1 s to 30 s with jitter on a port where nothing listens', async () => {
    const { delays, faults } = await sleptUntil(9, 'http://127.0.0.1:1');
    [100, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].forEach((fullMs, index) => {
      expect(delays[index]).toBeGreaterThanOrEqual(fullMs / 2);
      expect(delays[index]).toBeLessThanOrEqual(fullMs);
    });
    expect(faults[0]).toMatchObject({
      code: 'queue.unreachable',
      reason: expect.stringMatching(/^ReceiveMessage .*ECONNREFUSED/) as string,
    });
  });

  it('begins at its start after a receive that was answered', async () => {
    const failure = { status: 503, body: { __type: 'ServiceUnavailable', message: 'as scripted' } };
    let receives = 0;
    // the second receive is two requests, because the SDK asks again after an error
    const { url } = await startScripted(() => ((receives += 1) === 4 ? { body: {} } : failure));
    const { delays } = await sleptUntil(4, url);
    expect(delays[1]).toBeGreaterThanOrEqual(500);
    expect(delays[2]).toBeLessThanOrEqual(100);
  });
});
