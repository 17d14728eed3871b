import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createWeights, weightOf, type Weights } from '../../src/indexer/weights.ts';
import { settled } from '../support/worlds/ingest.ts';

const SMALL = 'x'.repeat(1_000);
const MAX = 4 * weightOf(SMALL, 1);
const LONG = 'x'.repeat(100_000);
const LONG_MAX = 4 * weightOf(LONG, 1);
const { signal } = new AbortController();

/** A body of about this length, with so many records. */
function bodyOf(length: number, records: number): string {
  const record = { s3: { bucket: { name: 'photos' }, object: { key: 'k' } } };
  return JSON.stringify({ Records: Array.from({ length: records }, () => record) }).padEnd(length);
}

/** A message in hand. `read`: resolves when its turn has come. */
function hold(weights: Weights, body: string, until: AbortSignal = signal) {
  const weight = weights.received(body);
  return { weight, read: Promise.resolve(weights.read(body, weight, until)) };
}

it('the weight of a message grows with its characters and with its records', () => {
  expect(weightOf(`${SMALL}${SMALL}`, 0)).toBe(2 * weightOf(SMALL, 0));
  expect(weightOf('', 20_000)).toBeGreaterThan(64 * 1_048_576);
});

describe('messages in hand', () => {
  it('Fix: wait unread until what was read has ended, in the order of their arrival', async () => {
    const weights = createWeights(MAX);
    const large = hold(weights, bodyOf(1_000, 9));
    await large.read;
    const order: number[] = [];
    // the last would fit beside the large one
    const others = [1, 2, 3, 4].map((number) => {
      const { weight, read } = hold(weights, number === 4 ? '{}' : bodyOf(1_000, 1));
      return { weight, done: read.then(() => order.push(number)) };
    });
    await settled();
    expect(order).toEqual([]);
    weights.ended(large.weight);
    await Promise.all(others.map(({ done }) => done));
    expect(order).toEqual([1, 2, 3, 4]);
    for (const { weight } of others) weights.ended(weight);
    expect(weights.hasRoom).toBe(true);
  });

  it('Fix: that are short do not wait for a long one with thousands of records', async () => {
    const weights = createWeights(LONG_MAX);
    const long = hold(weights, bodyOf(0, 20_000));
    await long.read;
    const other = hold(weights, LONG);
    let isRead = false;
    const waits = other.read.then(() => (isRead = true));
    for (let each = 0; each < 20; each += 1) {
      const weight = weights.received(SMALL);
      expect(weights.read(SMALL, weight, signal)).not.toBeInstanceOf(Promise);
      if (each % 2 === 0) weights.ended(weight);
    }
    await settled();
    expect(isRead).toBe(false);
    weights.ended(long.weight);
    await waits;
  });

  it('give their place in the line up when the process stops', async () => {
    const weights = createWeights(MAX);
    const large = hold(weights, bodyOf(1_000, 9));
    await large.read;
    const stopping = new AbortController();
    const given = hold(weights, SMALL, stopping.signal);
    const stays = hold(weights, SMALL);
    let isRead = false;
    const waits = stays.read.then(() => (isRead = true));
    stopping.abort(new Error('the process stops'));
    await expect(given.read).rejects.toThrow('the process stops');
    weights.ended(given.weight);
    await settled();
    expect(isRead).toBe(false);
    weights.ended(large.weight);
    await waits;
  });

  it('have room again as soon as they weigh less than the limit', async () => {
    const weights = createWeights(MAX);
    const large = hold(weights, bodyOf(1_000, 900));
    await large.read;
    let hasRoom = false;
    const room = weights.room(signal).then(() => (hasRoom = true));
    await settled();
    expect(hasRoom).toBe(false);
    weights.ended(large.weight);
    await room;
    await weights.room(signal);
  });

  it('that were read exceed the limit by one message at most, and all of them end', async () => {
    const message = fc.record({ length: fc.nat(5_000), records: fc.nat(40), turns: fc.nat(5) });
    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 30 }), fc.integer({ min: 1, max: MAX }), async (messages, max) => {
        const weights = createWeights(max);
        let open = 0;
        // bodies of this length are all short
        await Promise.all(
          messages.map(async ({ length, records, turns }) => {
            const body = bodyOf(length, records);
            const { weight, read } = hold(weights, body);
            await read.then(() => {
              expect(open === 0 || open + weightOf(body, 0) <= max).toBe(true);
              open += weightOf(body, records);
            });
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
