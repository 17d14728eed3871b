import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deferDelayS, lastReceiveOf, settlementOf, type Outcome } from '../../src/events/outcome.ts';

const first = { receiveCount: 1, isLastReceive: false };
const last = { receiveCount: 20, isLastReceive: true };
const denied = { code: 'object.denied', reason: 'denied' } as const;
const unreachable = { code: 'index.unreachable', reason: 'gone' } as const;
const invalid = { code: 'record.invalid', reason: 'no key' } as const;

const written: Outcome = { kind: 'written' };
const superseded: Outcome = { kind: 'superseded' };
const gap: Outcome = { kind: 'gap' };
const ignored: Outcome = { kind: 'ignored', reason: 'no-effect' };
const unconnected: Outcome = { kind: 'unconnected' };
const provisional = (dueInS: number): Outcome => ({ kind: 'provisional', dueInS });
const deferred: Outcome = { kind: 'deferred', fault: denied, delayS: 30, bucket: 'a', key: 'k' };
const givenBack: Outcome = { kind: 'deferred', fault: unreachable, delayS: 0, bucket: 'a' };
const rejected: Outcome = { kind: 'rejected', fault: invalid, bucket: 'b' };

describe('the settlement of a message', () => {
  it.each<[string, readonly Outcome[], ReturnType<typeof settlementOf>, typeof first?]>([
    ['all done: deleted', [written, superseded, gap, ignored, unconnected], { kind: 'delete' }],
    ['one provisional: waits until it is due', [written, provisional(46)], { kind: 'wait', delayS: 46 }],
    ['several provisional: until the latest', [provisional(3), provisional(46), provisional(9)], { kind: 'wait', delayS: 46 }],
    ['provisional before rejected', [rejected, provisional(3)], { kind: 'wait', delayS: 3 }],
    ['deferred before all', [rejected, provisional(99), deferred, written], { kind: 'defer', delayS: 30, fault: denied, buckets: [] }],
    ['deferred for no time: given back', [givenBack], { kind: 'defer', delayS: 0, fault: unreachable, buckets: ['a'] }],
    ['the longest delay of several', [deferred, givenBack], { kind: 'defer', delayS: 30, fault: unreachable, buckets: ['a'] }],
    [
      'rejected: one dead letter',
      [written, rejected, superseded, rejected],
      { kind: 'dead-letter', fault: invalid, records: [1, 3], losses: [{ bucket: 'b' }] },
    ],
    [
      'deferred at the last receive: one dead letter with the last fault, naming all that failed',
      [rejected, written, { kind: 'deferred', fault: unreachable, delayS: 30, bucket: 'c' }, deferred],
      { kind: 'dead-letter', fault: denied, records: [0, 2, 3], losses: [{ bucket: 'b' }, { bucket: 'c' }, { bucket: 'a', key: 'k' }] },
      last,
    ],
    [
      'provisional beside deferred at the last receive: waited for before the dead letter',
      [deferred, provisional(7)],
      { kind: 'wait', delayS: 7 },
      last,
    ],
    ['provisional at the last receive: still waited for', [provisional(3)], { kind: 'wait', delayS: 3 }, last],
    [
      'rejected without a bucket',
      [{ kind: 'rejected', fault: invalid }],
      { kind: 'dead-letter', fault: invalid, records: [0], losses: [] },
    ],
  ])('%s', (_what, outcomes, settlement, receives = first) => {
    expect(settlementOf(outcomes, receives)).toEqual(settlement);
  });

  const outcome = fc.oneof(
    fc.constantFrom(written, superseded, gap, ignored, unconnected, deferred, givenBack, rejected),
    fc.integer({ min: 3, max: 99 }).map(provisional),
  );

  it('never deletes a message of which a record is not done, and names every failed record', () => {
    fc.assert(
      fc.property(fc.array(outcome, { minLength: 1 }), fc.integer({ min: 1, max: 25 }), (outcomes, receiveCount) => {
        const settlement = settlementOf(outcomes, { receiveCount, isLastReceive: receiveCount >= 20 });
        const kinds = new Set(outcomes.map(({ kind }) => kind));
        const isDone = !kinds.has('deferred') && !kinds.has('provisional') && !kinds.has('rejected');
        expect(settlement.kind === 'delete').toBe(isDone);
        if (settlement.kind !== 'dead-letter') return;
        const failed = outcomes.flatMap(({ kind }, index) => (kind === 'rejected' || kind === 'deferred' ? [index] : []));
        expect(settlement.records).toEqual(failed);
      }),
    );
  });

  it('names the first hundred of more failed records than a letter has room for', () => {
    const outcomes = Array.from({ length: 20_000 }, (_, index) => (index % 2 === 0 ? rejected : written));
    const settlement = settlementOf(outcomes, first);
    expect(settlement).toMatchObject({ kind: 'dead-letter', records: Array.from({ length: 100 }, (_, index) => 2 * index) });
  });
});

it.each([
  [1, 30],
  [2, 60],
  [3, 120],
  [5, 480],
  [6, 900],
  [20, 900],
  [1_000_000, 900],
  [0, 30],
])('the delay of a deferred message at receive %i is %i s', (receiveCount, delayS) => {
  expect(deferDelayS(receiveCount)).toBe(delayS);
});

it.each([
  [undefined, 20],
  [1_000, 20],
  [100, 20],
  [21, 20],
  [20, 19],
  [5, 4],
  // each receive counts: a message that ends its process is SQS's to move
  [4, 4],
  [1, 1],
])('the last receive is, with a maxReceiveCount of %s, number %i', (limit, receive) => {
  expect(lastReceiveOf(limit)).toBe(receive);
});
