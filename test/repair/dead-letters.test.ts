import { describe, expect, it } from 'vitest';
import { deadLetterView } from '../../src/registry/contract/dead-letters.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { createDeadLetters } from '../../src/repair/dead-letters.ts';
import type { QueueMessage } from '../../src/aws/queues.ts';
import { fakeDeadLetterQueues } from '../support/fakes/dead-letter-queues.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

const DLQ = 'http://queues/dead';
const OTHER = 'http://queues/other-dead';
const FIRST = 'http://queues/first';
const SECOND = 'http://queues/second';
const fault = { code: 'record.invalid', reason: 'record 2 names no key' } as const;

function setUp(queueWatch = fakeDeadLetterQueues({ queueUrl: DLQ, of: [FIRST, SECOND] })) {
  const clock = createFakeClock();
  const queues = createFakeQueues(clock);
  const telemetry = createFakeTelemetry();
  const { state } = createMemoryStore();
  const gaps = createGapReports({ state, clock, telemetry });
  const dependencies = { queues, state, gaps, clock, telemetry, queueWatch, bucketQueueUrls: [FIRST, SECOND] };
  return { ...dependencies, letters: createDeadLetters(dependencies) };
}

type World = ReturnType<typeof setUp>;

/** The letters of the world over queues of which these calls are others. */
const lettersOver = (world: World, calls: Partial<World['queues']>) =>
  createDeadLetters({ ...world, queues: { ...world.queues, ...calls } });

/** A message as a worker has it in hand. */
async function received({ queues }: World, body: string, change: Partial<QueueMessage> = {}): Promise<QueueMessage> {
  const queueUrl = change.queueUrl ?? FIRST;
  await queues.send(queueUrl, { body, attributes: change.attributes ?? {} });
  const [message] = await queues.receive(queueUrl, { visibilityS: 60, max: 10 });
  const { receiptHandle } = message!;
  await queues.deleteBatch(queueUrl, [receiptHandle]);
  return { ...message!, ...change };
}

/** Sends `count` letters and returns their ids. */
async function dead(world: World, count: number, change: Partial<QueueMessage> = {}): Promise<string[]> {
  for (let index = 0; index < count; index += 1) await world.letters.send(await received(world, `body-${index}`, change), fault, [index]);
  return world.queues.messages(DLQ).map(({ messageId }) => messageId);
}

const visibleBodies = ({ queues, clock }: World, queueUrl: string) =>
  queues
    .messages(queueUrl)
    .filter(({ visibleAtMs }) => visibleAtMs <= clock.nowMs())
    .map(({ body }) => body);

describe('a dead letter', () => {
  it('that could not be sent is said until one is', async () => {
    const world = setUp();
    const message = await received(world, 'bad');
    world.queues.failSends(DLQ);
    await expect(world.letters.send(message, fault, [0])).rejects.toMatchObject({ code: 'queue.unreachable' });
    expect(world.letters.sendFault()).toMatchObject({ code: 'queue.unreachable' });
    world.queues.failSends(undefined);
    await world.letters.send(message, fault, [0]);
    expect(world.letters.sendFault()).toBeUndefined();
  });

  it('carries the body as it was, and why', async () => {
    const world = setUp();
    const message = await received(world, '{"é":1}', { attributes: { trace: { dataType: 'String', stringValue: 't' } } });
    await world.letters.send(message, fault, [1, 4]);
    const [letter] = await world.letters.list(100);
    expect(deadLetterView(letter!)).toEqual({
      id: world.queues.messages(DLQ)[0]?.messageId,
      sent_at: new Date(world.clock.nowMs()).toISOString(),
      fault: fault.code,
      reason: fault.reason,
      context: {
        queue: FIRST,
        message_id: message.messageId,
        first_received_at: new Date(message.firstReceivedAtMs).toISOString(),
        records: [1, 4],
      },
      size_bytes: 8,
    });
    expect(world.queues.messages(DLQ)[0]).toMatchObject({ body: '{"é":1}', attributes: { trace: { stringValue: 't' } } });
    expect(world.telemetry.logged('message dead-lettered')).toMatchObject([
      { code: fault.code, reason: fault.reason, messageId: message.messageId },
    ]);
    expect(world.telemetry.labels('tally_dead_letters_total')).toEqual([{ fault: fault.code }]);
  });

  it.each([
    [1_048_576, {}],
    [262_144, { messageBytesMax: 262_144 }],
  ])(
    'whose queue takes no more than its body of %i bytes goes alone, and is sent back to the queue of SQS’s',
    async (bytes, attributes) => {
      const world = setUp(fakeDeadLetterQueues({ queueUrl: OTHER, of: [FIRST] }, { queueUrl: DLQ, of: [SECOND], attributes }));
      const body = 'x'.repeat(bytes);
      await world.letters.send(await received(world, body, { queueUrl: SECOND }), fault, [0]);
      expect(world.queues.messages(DLQ)).toMatchObject([{ body, attributes: {} }]);
      expect(await world.letters.replay({ all: true })).toMatchObject({ count: 1 });
      expect(world.queues.messages(SECOND)).toHaveLength(1);
    },
  );

  it('whose queue does not even take the body is not sent, and the fault says how much it takes', async () => {
    const world = setUp(fakeDeadLetterQueues({ queueUrl: DLQ, of: [FIRST], attributes: { messageBytesMax: 262_144 } }));
    const sent = world.letters.send(await received(world, 'x'.repeat(262_145)), fault, [0]);
    await expect(sent).rejects.toMatchObject({ code: 'message.too-large', reason: expect.stringContaining('262144') });
    expect(world.queues.messages(DLQ)).toEqual([]);
  });

  it('without a known queue is queue.no-dead-letter, and all else is refused', async () => {
    const world = setUp(fakeDeadLetterQueues());
    const { letters } = world;
    await expect(letters.send(await received(world, 'a'), fault, [])).rejects.toMatchObject({ code: 'queue.no-dead-letter' });
    for (const refused of [letters.list(100), letters.show('a'), letters.replay({ all: true }), letters.discard({ ids: ['a'] })]) {
      await expect(refused).rejects.toMatchObject({ code: 'dead-letter.no-queue' });
    }
  });
});

describe('looking at dead letters', () => {
  it('Fix: takes 1,000 of more letters at a time, though SQS shows the others first to whoever reads again', async () => {
    const world = setUp();
    for (let index = 0; index < 2_010; index += 1) await world.queues.send(DLQ, { body: 'a', attributes: {} });
    const letters = lettersOver(world, {
      async changeVisibilityBatch(...args) {
        await world.clock.advance(1);
        return world.queues.changeVisibilityBatch(...args);
      },
    });
    for (const [count, remaining] of [
      [1_000, 1_010],
      [1_000, 10],
      [10, 0],
    ])
      expect(await letters.discard({ all: true })).toEqual({ count, remaining });
  });

  it('goes on over an empty answer, which SQS gives now and then, and ends although letters come back in the middle of it', async () => {
    const world = setUp();
    await dead(world, 15);
    let calls = 0;
    const interrupted = lettersOver(world, {
      async receive(...args) {
        calls += 1;
        return calls % 2 === 1 ? [] : world.queues.receive(...args);
      },
    });
    expect(await interrupted.list(100)).toHaveLength(15);
    const slow = lettersOver(world, {
      async receive(...args) {
        await world.clock.advance(31_000);
        return world.queues.receive(...args);
      },
    });
    expect(new Set((await slow.list(100)).map(({ id }) => id)).size).toBeGreaterThanOrEqual(10);
    expect(visibleBodies(world, DLQ)).toHaveLength(15);
  });
});

it('several dead-letter queues have each the letters of its own bucket queue, and are listed, shown and discarded together', async () => {
  const world = setUp(fakeDeadLetterQueues({ queueUrl: DLQ, of: [FIRST] }, { queueUrl: OTHER, of: [SECOND] }));
  await world.letters.send(await received(world, 'one'), fault, [0]);
  await world.letters.send(await received(world, 'two', { queueUrl: SECOND }), fault, [0]);
  expect([DLQ, OTHER].map((url) => visibleBodies(world, url))).toEqual([['one'], ['two']]);
  const [first, second] = await world.letters.list(100);
  expect(await world.letters.list(1)).toHaveLength(1);
  expect(await world.letters.show(second!.id)).toMatchObject({ body: 'two', notes: { fault: fault.code } });
  expect(await world.letters.show(first!.id)).toMatchObject({ body: 'one' });
  await expect(world.letters.show('message-none')).rejects.toMatchObject({ code: 'dead-letter.not-found' });
  expect(await world.letters.discard({ ids: [second!.id] })).toEqual({ count: 1, remaining: 1 });
  expect(await world.letters.discard({ all: true })).toEqual({ count: 1, remaining: 0 });
  expect([DLQ, OTHER, FIRST, SECOND].flatMap((url) => visibleBodies(world, url))).toEqual([]);
});

describe('replaying dead letters', () => {
  it('sends the bodies back where they came from, with their own attributes, and removes the letters', async () => {
    const world = setUp();
    const attributes = { trace: { dataType: 'String', stringValue: 't' } };
    await dead(world, 12, { queueUrl: SECOND, attributes });
    expect(await world.letters.replay({ all: true })).toMatchObject({ count: 12 });
    expect(world.queues.messages(DLQ)).toEqual([]);
    expect(visibleBodies(world, SECOND)).toEqual(Array.from({ length: 12 }, (_, index) => `body-${index}`));
    expect(world.queues.messages(SECOND)[0]?.attributes).toEqual(attributes);
  });

  it('sends to the first bucket queue what came from a queue that is not ours', async () => {
    const world = setUp();
    await dead(world, 1, { queueUrl: 'http://evil/queue' });
    await world.queues.send(DLQ, { body: 'moved by SQS', attributes: {} });
    expect(await world.letters.replay({ all: true })).toMatchObject({ count: 2 });
    expect(visibleBodies(world, FIRST)).toEqual(['body-0', 'moved by SQS']);
    expect(world.queues.messages('http://evil/queue')).toEqual([]);
  });

  it('Fix: takes only those named, gives the others back, and names those that are not there', async () => {
    const world = setUp();
    const ids = await dead(world, 15);
    const refusal = { code: 'dead-letter.not-found', message: expect.stringMatching(/: message-none; the other 2 are done$/) };
    await expect(world.letters.replay({ ids: [ids[12]!, ids[3]!, 'message-none'] })).rejects.toMatchObject(refusal);
    expect(visibleBodies(world, FIRST).toSorted()).toEqual(['body-12', 'body-3']);
    expect(visibleBodies(world, DLQ)).toHaveLength(13);
    expect(await world.letters.replay({ ids: [] })).toMatchObject({ count: 0 });
  });

  it('Fix: sends each letter back once, though all fail again at once', async () => {
    const world = setUp();
    await dead(world, 3);
    const letters = lettersOver(world, {
      async send(queueUrl, message) {
        // a worker meanwhile: what is sent back becomes a letter again
        await world.clock.advance(1_000);
        return world.queues.send(queueUrl === FIRST ? DLQ : queueUrl, message);
      },
    });
    expect(await letters.replay({ all: true })).toEqual({ count: 3, remaining: 3 });
    expect(visibleBodies(world, DLQ).toSorted()).toEqual(['body-0', 'body-1', 'body-2']);
  });

  it('keeps a letter whose body could not be sent', async () => {
    const world = setUp();
    await dead(world, 2);
    await dead(world, 2, { queueUrl: SECOND });
    world.queues.failSends(FIRST);
    await expect(world.letters.replay({ all: true })).rejects.toMatchObject({ code: 'queue.unreachable' });
    expect(visibleBodies(world, SECOND)).toHaveLength(2);
    expect(visibleBodies(world, DLQ)).toHaveLength(2);
  });
});

it('discarding dead letters does not count what could not be deleted', async () => {
  const world = setUp();
  await dead(world, 2);
  const letters = lettersOver(world, {
    deleteBatch: async (_, [receiptHandle = '']) => [{ receiptHandle, code: 'Expired', senderFault: true }],
  });
  expect(await letters.discard({ all: true })).toMatchObject({ count: 1 });
  expect(world.telemetry.recorded('warn')).toHaveLength(1);
});

it('Fix: readings at the same time see every letter each, and one whose caller has gone leaves the queue to the next one', async () => {
  const world = setUp();
  await dead(world, 25);
  const gone = new AbortController();
  const [first, second, third] = [undefined, gone.signal, undefined].map((signal) => world.letters.list(100, signal));
  gone.abort(new Error('gone'));
  await expect(second).rejects.toThrow('gone');
  expect([await first, await third].map((letters) => letters?.length)).toEqual([25, 25]);
});
