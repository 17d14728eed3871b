import { describe, expect, it } from 'vitest';
import { faults, type FaultCode } from '../../../src/domain/fault.ts';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import { rangeSchema, type RangeRecord } from '../../../src/domain/reindex/job.ts';
import {
  afterTurn,
  answerTo,
  duringTurn,
  givenBack,
  rewound,
  splitRange,
  takeRange,
} from '../../../src/domain/reindex/range-transitions.ts';

const fresh: RangeRecord = {
  jobId: 'job',
  number: 3,
  from: 'a',
  to: 'z',
  cursor: 'a',
  done: false,
  counts: noCounts,
  fruitless: 0,
  dueAtMs: 0,
};
const taker = { worker: 'w1', nowMs: 1_000, isOver: false };
const nothing = { cursor: 'a', done: false, counts: noCounts, examples: {} };

function taken(range: RangeRecord, nowMs = 1_000, isOver = false): RangeRecord {
  const taking = takeRange(range, { ...taker, nowMs, isOver });
  if (taking.kind !== 'taken') throw new Error(taking.kind);
  return taking.range;
}

describe('taking a range', () => {
  it('leases it for one turn', () => {
    expect(taken(fresh)).toEqual({ ...fresh, lease: { worker: 'w1' }, dueAtMs: 21_000 });
  });

  it('waits until it is due, and then until its lease is over', () => {
    expect(takeRange(taken(fresh), { ...taker, nowMs: 20_999 })).toEqual({ kind: 'early' });
    expect(takeRange(taken(fresh), { ...taker, nowMs: 3_600_000 - 1 })).toEqual({ kind: 'leased' });
    expect(taken(taken(fresh), 21_000, true)).toMatchObject({ fruitless: 1, lease: { worker: 'w1' }, dueAtMs: 41_000 });
  });

  it('is not possible when it is done, or sleeps while its job is paused', () => {
    const { dueAtMs: _, ...sleeping } = fresh;
    expect(takeRange({ ...sleeping, done: true }, taker)).toEqual({ kind: 'early' });
    expect(takeRange(sleeping, taker)).toEqual({ kind: 'early' });
  });

  it('is possible at once where a fast clock put it off for longer than anything is put off', () => {
    expect(takeRange({ ...fresh, dueAtMs: 1_000 + 300_000 }, taker)).toEqual({ kind: 'early' });
    expect(takeRange({ ...fresh, dueAtMs: 1_001 + 300_000 }, taker).kind).toBe('taken');
  });

  it('after three leases that ended by themselves gives the range up', () => {
    let range = taken(fresh);
    for (const nowMs of [100_000, 200_000]) range = taken(range, nowMs, true);
    expect(range.fruitless).toBe(2);
    expect(takeRange(range, { ...taker, nowMs: 300_000, isOver: true })).toMatchObject({
      kind: 'poisonous',
      error: { code: 'internal.unexpected' },
    });
  });
});

describe('a range with deletions that were held back', () => {
  it('is compared again from the first of them, and counts only what becomes of them', () => {
    const counts = { ...noCounts, listed: 9, scanned: 14, phantom: 5, tombstones: 1, held: 4 };
    const again = rewound({ ...fresh, counts, heldBack: 'c', cursor: 'z', done: true }, 5);
    expect(again).toMatchObject({
      done: false,
      cursor: 'c',
      dueAtMs: 5,
      counts: { listed: 9, scanned: 14, phantom: 1, tombstones: 1, held: 0 },
    });
    expect(rewound(again, 5)).toBe(again);
    const found = { ...noCounts, listed: 7, scanned: 11, phantom: 4, tombstones: 3, held: 1, listRequests: 1 };
    const ended = afterTurn(taken(again), { cursor: 'z', done: true, counts: found, heldBack: 'd', examples: {} }, 9_000);
    expect(ended).toMatchObject({ heldBack: 'd', counts: { listed: 9, scanned: 14, phantom: 5, tombstones: 4, held: 1, listRequests: 1 } });
    expect(rangeSchema.parse(ended)).toEqual(ended);
  });
});

describe('a turn', () => {
  it('moves the cursor, adds to the counts, and makes the range due again', () => {
    const counts = { ...noCounts, listed: 5 };
    const once = afterTurn(taken(fresh), { cursor: 'f', done: false, counts, examples: { missing: [{ key: 'b' }] } }, 9_000);
    expect(once).toEqual({
      ...fresh,
      cursor: 'f',
      counts: { ...noCounts, listed: 5 },
      examples: { missing: [{ key: 'b' }] },
      dueAtMs: 9_000,
    });
    expect(rangeSchema.parse(once)).toEqual(once);
    const done = afterTurn(taken(once, 9_000), { cursor: 'z', done: true, counts, examples: {} }, 9_000);
    expect(done).toMatchObject({ done: true, counts: { listed: 10 } });
    expect(done).not.toHaveProperty('dueAtMs');
  });

  it('keeps so many examples of each kind that a job with all its ranges stays small', () => {
    const { to: _, ...endless } = fresh;
    const examples = { missing: Array.from({ length: 200 }, (__, at) => ({ key: `k${at}` })) };
    const keptBy = (range: RangeRecord): number | undefined =>
      afterTurn(taken(range), { ...nothing, cursor: 'k', examples }, 9_000).examples?.missing?.length;
    expect(keptBy({ ...endless, number: 0, from: '' })).toBe(100);
    expect(keptBy({ ...fresh, number: 63 })).toBe(25);
    expect(keptBy({ ...fresh, number: 64 })).toBe(5);
  });

  it('that got further forgives what was before', () => {
    const range = { ...taken(fresh), fruitless: 2 };
    const fault = { code: 'listing.disorder', reason: 'r' } as const;
    expect(afterTurn(range, { ...nothing, cursor: 'b', fault }, 0)).toMatchObject({ fruitless: 0, error: { code: 'listing.disorder' } });
    expect(afterTurn(range, { ...nothing, cursor: 'b' }, 0).error).toBeUndefined();
  });

  it('without progress counts by a fault of its own alone', () => {
    const by = (code: FaultCode): number => afterTurn(taken(fresh), { ...nothing, fault: { code, reason: 'r' } }, 0).fruitless;
    expect(by('listing.incomplete')).toBe(1);
    expect(by('s3.unavailable')).toBe(0);
    expect(by('index.overloaded')).toBe(0);
    expect(afterTurn(taken(fresh), nothing, 0).fruitless).toBe(0);
  });

  it('that goes on leaves its cursor and counts together, which the next worker continues with, and its own end replaces', () => {
    const begun = { ...taken(fresh), fruitless: 2 };
    const progress = { ...nothing, cursor: 'f', counts: { ...noCounts, listed: 5 } };
    const stored = duringTurn(begun, { begun, progress, nowMs: 9_000 });
    expect(stored).toEqual({ ...begun, cursor: 'f', counts: { ...noCounts, listed: 5 }, fruitless: 0 });
    // its worker has died
    expect(taken(stored, 100_000, true)).toMatchObject({ cursor: 'f', counts: { listed: 5 }, fruitless: 1 });
    const end = { ...nothing, cursor: 'k', counts: { ...noCounts, listed: 8 } };
    expect(afterTurn(begun, end, 9_000)).toMatchObject({ cursor: 'k', counts: { listed: 8 } });
    const given = givenBack(stored, 0);
    expect(duringTurn(given, { begun, progress, nowMs: 9_000 })).toBe(given);
  });

  it('that was broken off changes nothing', () => {
    expect(givenBack(taken(fresh), 0)).toEqual(fresh);
  });
});

it('answers every fault: what is nobody’s fault is waited out, what cannot get better fails the job', () => {
  const by = Map.groupBy(Object.keys(faults) as FaultCode[], answerTo);
  expect(by.get('wait')).toEqual(expect.arrayContaining(['index.unreachable', 'index.overloaded', 's3.unavailable', 's3.throttled']));
  expect(by.get('wait')).toEqual(expect.arrayContaining(['bucket.missing', 'object.denied', 'bucket.index-missing']));
  expect(by.get('fail')).toEqual(expect.arrayContaining(['index.rejected']));
  expect(by.get('retry')).toEqual(expect.arrayContaining(['listing.disorder', 'listing.incomplete', 'internal.unexpected']));
});

it('that is refused is tried again soon, then once a minute, and every five minutes after an hour', () => {
  let nowMs = 0;
  let range = fresh;
  const delays: number[] = [];
  for (; nowMs < 2 * 3_600_000; nowMs = range.dueAtMs ?? Infinity) {
    range = afterTurn(range, { ...nothing, fault: { code: 'bucket.missing', reason: 'gone' } }, nowMs);
    delays.push((range.dueAtMs ?? Infinity) - nowMs);
  }
  expect([...new Set(delays)]).toEqual([15_000, 60_000, 300_000]);
  expect(delays.length).toBeLessThan(4 + 60 + 13);
  expect(range.fruitless).toBe(0);
  expect(afterTurn(range, { ...nothing, cursor: 'b' }, nowMs)).not.toHaveProperty('waitingSinceMs');
});

it('splits into ranges that are one', () => {
  expect(splitRange(fresh, [{ number: 7, boundary: 'm' }])).toMatchObject({
    from: 'a',
    to: 'm',
    splits: [{ number: 7, from: 'm', to: 'z' }],
  });
  const cuts = [
    { number: 7, boundary: 'c' },
    { number: 8, boundary: 'm' },
  ];
  expect(splitRange(fresh, cuts)).toMatchObject({
    from: 'a',
    to: 'c',
    splits: [
      { number: 7, from: 'c', to: 'm' },
      { number: 8, from: 'm', to: 'z' },
    ],
  });
  const { to: _, ...open } = fresh;
  expect(splitRange(open, cuts).splits?.at(-1)).toEqual({ number: 8, from: 'm' });
  expect(splitRange(fresh, [])).toEqual(fresh);
});
