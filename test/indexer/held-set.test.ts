import { describe, expect, it } from 'vitest';
import { createHeldSet, type InHand } from '../../src/indexer/held-set.ts';
import { createWeights } from '../../src/indexer/weights.ts';
import type { QueueMessage } from '../../src/aws/queues.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { settled } from '../support/worlds/ingest.ts';

const times = { sentAtMs: 0, firstReceivedAtMs: 0, receivedAtMonotonicMs: 0 };
const messages = ['a', 'b', 'c'].map((id): QueueMessage => ({
  queueUrl: 'q',
  messageId: id,
  receiptHandle: id,
  body: '',
  receiveCount: 1,
  attributes: {},
  ...times,
}));

function setUp(heldMax = 3) {
  const weightMaxBytes = 1_000_000;
  const held = createHeldSet({
    clock: createFakeClock(),
    load: { held: () => undefined },
    heldMax,
    weights: createWeights(weightMaxBytes),
    weightMaxBytes,
    lastReceive: () => 20,
    stopping: new AbortController().signal,
  });
  const works: { readonly hand: InHand; readonly end: () => void }[] = [];
  const ended: string[] = [];
  const work = (hand: InHand): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    works.push({ hand, end: resolve });
    return promise;
  };
  const note = (name: string) => (): void => void ended.push(name);
  return { held, works, ended, work, note };
}

describe('the work of a batch', () => {
  it('is over for its poller when each message has ended or turned slow, and for the process when all have ended', async () => {
    const { held, works, ended, work, note } = setUp();
    void held.run(messages, work).then(note('batch'));
    void held.idle().then(note('idle'));
    const [a, b, c] = works;
    a!.end();
    b!.hand.turnSlow();
    b!.hand.turnSlow();
    await settled();
    expect([held.size, held.hasRoom, ended]).toEqual([1, true, []]);
    c!.end();
    await settled();
    expect([held.size, ended]).toEqual([1, ['batch']]);
    b!.end();
    await settled();
    expect([held.size, ended]).toEqual([0, ['batch', 'idle']]);
  });

  it('has no room for another batch while as many messages are in hand as may be held, fast or slow', async () => {
    const { held, works, work } = setUp();
    void held.run(messages, work);
    expect([held.hasRoom, held.isFull]).toEqual([false, false]);
    for (const { hand } of works) hand.turnSlow();
    expect([held.hasRoom, held.isFull]).toEqual([false, true]);
    for (const { end } of works) end();
    await settled();
    expect([held.hasRoom, held.isFull]).toEqual([true, false]);
  });

  it('has no room for another batch beside half as many fast messages as may be held', async () => {
    const { held, works, work } = setUp(6);
    void held.run(messages, work);
    expect([held.hasRoom, held.isFull]).toEqual([false, false]);
    works[0]!.hand.turnSlow();
    expect(held.hasRoom).toBe(true);
  });

  it('is waited for again at a stop if a batch came while the last one ended', async () => {
    const { held, works, ended, work, note } = setUp();
    const [first, second] = messages;
    void held.run([first!], work).then(() => held.run([second!], work));
    void held.idle().then(note('idle'));
    works[0]!.end();
    await settled();
    expect([works.length, ended]).toEqual([2, []]);
    works[1]!.end();
    await settled();
    expect(ended).toEqual(['idle']);
  });

  it('is over at once without messages, and there is nothing to wait for', async () => {
    const { held, work } = setUp();
    await held.run([], work);
    await held.idle();
  });
});
