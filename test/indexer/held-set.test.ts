import * as fc from 'fast-check';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { sideBySide } from '../../src/process/async.ts';
import { recordsAtOnce, createHeldSet, type InHand } from '../../src/indexer/held-set.ts';
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

function setUp(heldMax = 3, weightMaxBytes = 1_000_000) {
  const clock = createFakeClock();
  const held = createHeldSet({
    clock,
    load: { held: () => undefined },
    heldMax,
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
  return { clock, held, works, ended, work, note };
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
    // nor beside half as many fast ones
    const half = setUp(6);
    void half.held.run(messages, half.work);
    expect([half.held.hasRoom, half.held.isFull]).toEqual([false, false]);
    half.works[0]!.hand.turnSlow();
    expect(half.held.hasRoom).toBe(true);
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
});

describe('the memory of messages in hand', () => {
  const [template] = messages;
  const long = (length: number): QueueMessage => ({ ...template!, body: 'x'.repeat(length) });
  const MAX = 20 * 300_000;

  it('is bounded by the length of their bodies: fast or slow, none is received beside them, and no large answer read, above the limit', async () => {
    const { clock, held, works, ended, work, note } = setUp(1_000, MAX);
    void held.run([long(150_000), long(149_999)], work);
    expect([held.hasRoom, held.isFull]).toEqual([true, false]);
    void held.run([long(1)], work);
    void held.room(new AbortController().signal).then(note('room'));
    for (const { hand } of works) hand.turnSlow();
    await clock.advance(1_000);
    expect([held.hasRoom, held.isFull, ended]).toEqual([false, true, []]);
    works[2]!.end();
    await settled();
    expect([held.hasRoom, held.isFull]).toEqual([true, false]);
    await clock.advance(1_000);
    await settled();
    expect(ended).toEqual(['room']);
  });

  it('leaves the line for room with the reason of the stop', async () => {
    const { clock, held, work } = setUp(1_000, MAX);
    void held.run([long(300_000)], work);
    const stopping = new AbortController();
    const waits = expect(held.room(stopping.signal)).rejects.toThrow('the process stops');
    stopping.abort(new Error('the process stops'));
    await clock.advance(1_000);
    await waits;
  });

  it('Fix: long bodies are read one after another where two do not fit, and short ones pass them', async () => {
    const { held } = setUp(1_000, 2 * 20 * 1_048_576 - 1);
    const read: string[] = [];
    const first = Promise.withResolvers<void>();
    const reading = (name: string, until?: Promise<void>) => async (): Promise<void> => {
      read.push(name);
      await until;
    };
    const ends = [
      held.inTurn(long(65_537), reading('first', first.promise)),
      held.inTurn(long(65_537), reading('second')),
      held.inTurn(long(65_536), reading('short')),
    ];
    expect(read).toEqual(['short']);
    await settled();
    expect(read).toEqual(['short', 'first']);
    first.resolve();
    await Promise.all(ends);
    expect(read).toEqual(['short', 'first', 'second']);
  });

  it('Fix: has as many records of a body in work at once as S3 would put into one of its length, and all of them are worked off', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 300 }), fc.nat({ max: 50_000 }), async (count, length) => {
        const records = Array.from({ length: count }, (_, number) => number);
        const done: number[] = [];
        let [inWork, most] = [0, 0];
        await sideBySide([...records.entries()], recordsAtOnce('x'.repeat(length)), async ([index, record]) => {
          expect(record).toBe(index);
          most = Math.max(most, (inWork += 1));
          if (record % 3 !== 0) await setImmediate();
          inWork -= 1;
          done[index] = record;
        });
        expect(done).toEqual(records);
        expect(most).toBeLessThanOrEqual(Math.max(10, length / 500));
      }),
      { numRuns: 30 },
    );
  });
});
