import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createWeights, weightOf, type MessageWeight, type Weights } from '../../../src/pipeline/ingest/weights.ts';
import { settled } from '../../support/worlds/ingest.ts';

const SMALL = 'x'.repeat(1_000);
const MAX = 4 * weightOf(SMALL, 1);
const LONG = 'x'.repeat(100_000);
const LONG_MAX = 4 * weightOf(LONG, 1);
const { signal } = new AbortController();

/** Opens the message as soon as it may be. */
async function opened(weights: Weights, weight: MessageWeight, records: number, until: AbortSignal = signal): Promise<void> {
  await weights.turn(weight, until);
  weights.opened(weight, records);
}

it('the weight of a message grows with its characters and with its records', () => {
  expect(weightOf(`${SMALL}${SMALL}`, 0)).toBe(2 * weightOf(SMALL, 0));
  expect(weightOf('', 20_000)).toBeGreaterThan(64 * 1_048_576);
});

describe('messages in hand', () => {
  it('Fix: wait with their records unread until what is open has ended, in the order of their arrival', async () => {
    const weights = createWeights(MAX);
    const large = weights.received(SMALL);
    await opened(weights, large, 20_000);
    const order: number[] = [];
    const others = [1, 2, 3].map((number) => {
      const weight = weights.received(SMALL);
      return { weight, done: opened(weights, weight, 1).then(() => order.push(number)) };
    });
    await settled();
    expect(order).toEqual([]);
    weights.ended(large);
    await Promise.all(others.map(({ done }) => done));
    expect(order).toEqual([1, 2, 3]);
    for (const { weight } of others) weights.ended(weight);
    expect(weights.hasRoom).toBe(true);
  });

  it('Fix: that are short do not wait for a long one with thousands of records', async () => {
    const weights = createWeights(LONG_MAX);
    const long = weights.received(LONG);
    await opened(weights, long, 20_000);
    const other = weights.received(LONG);
    let isOpen = false;
    const waits = opened(weights, other, 1).then(() => (isOpen = true));
    for (let each = 0; each < 20; each += 1) {
      const short = weights.received(SMALL);
      expect(weights.turn(short, signal)).toBeUndefined();
      weights.opened(short, 1);
      if (each % 2 === 0) weights.ended(short);
    }
    await settled();
    expect(isOpen).toBe(false);
    weights.ended(long);
    await waits;
  });

  it('give their place in the line up when the process stops', async () => {
    const weights = createWeights(MAX);
    const large = weights.received(SMALL);
    await opened(weights, large, 20_000);
    const stopping = new AbortController();
    const given = weights.received(SMALL);
    const waits = opened(weights, given, 1, stopping.signal);
    const stays = weights.received(SMALL);
    const stayed = opened(weights, stays, 1);
    stopping.abort(new Error('the process stops'));
    await expect(waits).rejects.toThrow('the process stops');
    weights.ended(given);
    weights.ended(large);
    await stayed;
  });

  it('have room again as soon as they weigh less than the limit', async () => {
    const weights = createWeights(MAX);
    const large = weights.received(SMALL);
    await opened(weights, large, 20_000);
    let hasRoom = false;
    const room = weights.room(signal).then(() => (hasRoom = true));
    await settled();
    expect(hasRoom).toBe(false);
    weights.ended(large);
    await room;
    await weights.room(signal);
  });

  it('that are open exceed the limit by one message at most, and all of them end', async () => {
    const message = fc.record({ length: fc.nat(5_000), records: fc.nat(40), turns: fc.nat(5) });
    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 30 }), fc.integer({ min: 1, max: MAX }), async (messages, max) => {
        const weights = createWeights(max);
        let open = 0;
        // bodies of this length are all short
        await Promise.all(
          messages.map(async ({ length, records, turns }) => {
            const body = 'x'.repeat(length);
            const weight = weights.received(body);
            const turn = weights.turn(weight, signal);
            if (turn !== undefined) await turn;
            const before = open;
            weights.opened(weight, records);
            open += weightOf(body, records);
            expect(before === 0 || before + weightOf(body, 0) <= max).toBe(true);
            for (let each = 0; each < turns; each += 1) await Promise.resolve();
            open -= weightOf(body, records);
            weights.ended(weight);
          }),
        );
        expect(weights.hasRoom).toBe(true);
      }),
    );
  });
});
