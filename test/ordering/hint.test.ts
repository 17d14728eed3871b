import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bucketSources, type BucketSource } from '../../src/records/bucket.ts';
import { clockOfMs } from '../../src/ordering/document.ts';
import { FUTURE_MS, PLAUSIBLE_MS } from '../../src/ordering/constants.ts';
import { hintOf, hintOfTie, sequencerClock, type BucketFacts, type Hint } from '../../src/ordering/hint.ts';
import { dialectFacts, dialects, isFormOf, type Change, type ChangeRecord } from '../../src/events/record.ts';
import { sequencerAt } from '../support/worlds/ingest.ts';

const T = Date.UTC(2026, 0, 2, 3, 4, 5);
const DAY_MS = 86_400_000;
const clock = sequencerClock(sequencerAt(T))!;
const times = { sentAtMs: T + 500, nowMs: T + 900 };
const unversioned: BucketFacts = {
  source: 'notification',
  floor: 0,
  enrich: 'none',
  versioning: { status: 'never', observedAtMs: T + 3_000 },
};
const versioned: BucketFacts = { ...unversioned, versioning: { status: 'enabled', observedAtMs: 0 } };
const readAs = (status: BucketFacts['versioning']['status'], afterMs: number): BucketFacts => ({
  ...unversioned,
  versioning: { status, observedAtMs: T + afterMs },
});

const created: ChangeRecord = {
  dialect: 'native',
  bucket: 'b',
  key: 'k',
  eventName: 'ObjectCreated:Put',
  change: { kind: 'created', copied: false },
  eventTimeMs: T,
  sequencer: sequencerAt(T),
  etag: 'e',
  sizeBytes: 3,
};
const without = (record: ChangeRecord, ...fields: readonly (keyof ChangeRecord)[]): ChangeRecord =>
  Object.fromEntries(Object.entries(record).filter(([name]) => !fields.some((field) => field === name))) as unknown as ChangeRecord;
const changed = (kind: Exclude<Change['kind'], 'created' | 'ignored'>): ChangeRecord => ({ ...created, change: { kind } });

const observeFrom = (timeMs: number, settleFromMs: number): Hint => ({ kind: 'observe', clock: clockOfMs(timeMs), settleFromMs });
const resolve: Hint = { kind: 'resolve', clock };
const absent: Hint = { kind: 'exact', clock, state: { present: false } };

describe('a record is exact', () => {
  it('when S3 states what was created and when', () => {
    const state = { present: true, etag: 'e', sizeBytes: 3, lastModifiedMs: T, lastModifiedExact: false };
    expect(hintOf(created, unversioned, times)).toEqual({ kind: 'exact', clock, state });
    expect(hintOf({ ...created, dialect: 'eventbridge', versionId: 'v' }, { ...versioned, source: 'eventbridge' }, times)).toEqual({
      kind: 'exact',
      clock,
      state: { ...state, versionId: 'v' },
    });
    expect(hintOf({ ...created, change: { kind: 'created', copied: true } }, unversioned, times).kind).toBe('exact');
  });

  it('when S3 says that a delete marker became current', () => {
    expect(hintOf({ ...changed('marker-created'), versionId: 'v' }, versioned, times)).toEqual(absent);
  });

  it('when an object was deleted and the bucket was read as never versioned at least 3 s later', () => {
    expect(hintOf(changed('deleted'), unversioned, times)).toEqual(absent);
  });
});

describe('a record is resolved', () => {
  it.each<[string, ChangeRecord, BucketFacts, typeof times?]>([
    ['a delete, when versioning was read less than 3 s after it', changed('deleted'), readAs('never', 2_999)],
    ['a delete where versioning is enabled', changed('deleted'), versioned],
    ['a delete where versioning is suspended', changed('deleted'), readAs('suspended', 9_000)],
    ['a delete where versioning is unknown', changed('deleted'), readAs('unknown', 9_000)],
    ['a version deleted', { ...changed('deleted'), versionId: 'v' }, unversioned],
    ['a storage class changed', changed('storage-changed'), unversioned],
    ['a creation at the floor', created, { ...unversioned, floor: clock }],
    ['a creation a day old by SQS’s clock', created, unversioned, { sentAtMs: T + DAY_MS, nowMs: T }],
    ['a creation a day old by this machine’s clock', created, unversioned, { sentAtMs: T, nowMs: T + DAY_MS }],
    ['a creation without etag', without(created, 'etag'), unversioned],
    ['a creation without size', without(created, 'sizeBytes'), unversioned],
  ])('%s', (_what, record, bucket, at = times) => {
    expect(hintOf(record, bucket, at)).toEqual(resolve);
  });

  it('just inside of its limits it is exact', () => {
    expect(hintOf(created, { ...unversioned, floor: clock - 1 }, times).kind).toBe('exact');
    expect(hintOf(created, unversioned, { sentAtMs: T + DAY_MS - 1, nowMs: T + DAY_MS - 1 }).kind).toBe('exact');
  });
});

describe('a record is observed', () => {
  const sequenced = (ms: number): ChangeRecord => ({ ...created, sequencer: sequencerAt(ms) });

  it.each<[string, ChangeRecord]>([
    ['a completed multipart upload', changed('multipart-completed')],
    ['a lifecycle expiration, whatever its sequencer', changed('lifecycle-expired')],
    ['a lost object', changed('lost')],
    ['no sequencer', without(created, 'sequencer')],
    ['a sequencer of unknown form', { ...created, sequencer: 'abc' }],
    ['a sequencer more than W before the event', sequenced(T - PLAUSIBLE_MS - 1)],
    ['a sequencer more than W after the event', sequenced(T + PLAUSIBLE_MS + 1)],
    ['a constant sequencer', { ...created, sequencer: '000000000000000001' }],
  ])('%s, from max(event, sent)', (_what, record) => {
    expect(hintOf(record, unversioned, times)).toEqual(observeFrom(T, T + 500));
  });

  it.each([-PLAUSIBLE_MS + 1, PLAUSIBLE_MS - 1])('not yet with a sequencer %i ms off', (offMs) => {
    expect(hintOf(sequenced(T + offMs), unversioned, times).kind).toBe('exact');
  });

  it.each<[string, ChangeRecord, BucketSource]>([
    ['an EventBridge event of a bucket that sends notifications', { ...created, dialect: 'eventbridge' }, 'notification'],
    ['an EventBridge event of a bucket whose topic receives notifications', { ...created, dialect: 'eventbridge' }, 'topic'],
    ['an EventBridge event of a bucket whose audit trail is routed', { ...created, dialect: 'eventbridge' }, 'routed'],
    ['an EventBridge event that came through a topic', { ...created, dialect: 'eventbridge', throughTopic: true }, 'eventbridge'],
    ['a notification of a bucket that sends EventBridge events', created, 'eventbridge'],
    ['a notification of a bucket whose audit trail is routed', created, 'routed'],
  ])('%s, from max(event, sent): others could have written it', (_what, record, source) => {
    expect(hintOf(record, { ...unversioned, source }, times)).toEqual(observeFrom(T, T + 500));
    expect(hintOf({ ...record, change: { kind: 'deleted' } }, { ...unversioned, source }, times)).toEqual(observeFrom(T, T + 500));
  });

  it.each(['notification', 'topic'] as const)('not if its source is %s and it is a notification', (source) => {
    expect(hintOf(created, { ...unversioned, source }, times).kind).toBe('exact');
  });

  it('when its source has no sequencers, from its event’s time', () => {
    for (const dialect of ['trail', 'synthetic'] as const) {
      expect(hintOf({ ...created, dialect }, unversioned, times)).toEqual(observeFrom(T, T));
      expect(hintOf({ ...changed('deleted'), dialect }, unversioned, times)).toEqual(observeFrom(T, T));
      // copies and multipart uploads end long after they began
      expect(hintOf({ ...created, dialect, change: { kind: 'created', copied: true } }, unversioned, times)).toEqual(
        observeFrom(T, T + 500),
      );
      expect(hintOf({ ...changed('multipart-completed'), dialect }, unversioned, times)).toEqual(observeFrom(T, T + 500));
    }
  });

  it('when it has no time, at the time it was sent', () => {
    expect(hintOf(without(created, 'eventTimeMs'), unversioned, times)).toEqual(observeFrom(T + 500, T + 500));
  });

  it('when it is from the future, at the time it was sent, with its own time in case that S3’s clock is there too', () => {
    const year2099 = Date.UTC(2099, 0, 1);
    const future = { ...created, eventTimeMs: year2099, sequencer: sequencerAt(year2099) };
    const observed = { ...observeFrom(T + 500, T + 500), futureMs: year2099 };
    expect(hintOf(future, unversioned, times)).toEqual(observed);
    expect(hintOf({ ...future, dialect: 'synthetic' }, unversioned, times)).toEqual(observed);
    // its sequencer is not, but its time is
    const latestMs = times.sentAtMs + FUTURE_MS;
    const ahead = { ...created, eventTimeMs: latestMs + 1_000, sequencer: sequencerAt(latestMs - 1_000) };
    expect(hintOf(ahead, unversioned, times)).toMatchObject({ kind: 'observe', futureMs: latestMs + 1_000 });
    const late = { sentAtMs: T - FUTURE_MS - 1, nowMs: T };
    expect(hintOf(created, unversioned, late)).toEqual({ ...observeFrom(late.sentAtMs, late.sentAtMs), futureMs: T });
    expect(hintOf(created, unversioned, { sentAtMs: T - FUTURE_MS, nowMs: T }).kind).toBe('exact');
  });

  it.each<[string, Partial<BucketFacts>, number]>([
    ['is ahead, that much later', { s3AheadMs: 900_000 }, T + 500 + 900_000],
    ['seems to be hours ahead, as a slow process measures it, a quarter of an hour later', { s3AheadMs: 46_800_000 }, T + 500 + 900_000],
    ['is behind, no earlier', { s3AheadMs: -900_000 }, T + 500],
  ])('and settles from the time of sending by the clock of S3: where it %s', (_, skew, settleFromMs) => {
    const bucket = { ...unversioned, ...skew };
    expect(hintOf(without(created, 'eventTimeMs'), bucket, times)).toEqual(observeFrom(T + 500, settleFromMs));
    expect(hintOf(changed('multipart-completed'), bucket, times)).toEqual(observeFrom(T, settleFromMs));
    // the time of a trail is S3's own
    expect(hintOf({ ...changed('deleted'), dialect: 'trail' }, bucket, times)).toEqual(observeFrom(T, T));
  });

  it('when tags changed, if the bucket’s documents hold them; else it is ignored', () => {
    expect(hintOf(changed('tagged'), { ...unversioned, enrich: 'tags' }, times).kind).toBe('observe');
    expect(hintOf(changed('tagged'), { ...unversioned, enrich: 'head' }, times)).toEqual({ kind: 'ignored', reason: 'no-tags' });
  });
});

it('a record without a key is a gap at its time, never later than a minute after it was sent', () => {
  expect(hintOf(changed('bulk-deleted'), unversioned, times)).toEqual({ kind: 'gap', seenAtMs: T });
  const { sentAtMs } = times;
  const future = { ...changed('bulk-deleted'), eventTimeMs: T + DAY_MS };
  expect(hintOf(future, unversioned, times)).toEqual({ kind: 'gap', seenAtMs: sentAtMs + FUTURE_MS });
  expect(hintOf(without(changed('bulk-deleted'), 'eventTimeMs'), unversioned, times)).toEqual({ kind: 'gap', seenAtMs: sentAtMs });
});

describe('a tie', () => {
  it('is observed at the clock that was met', () => {
    expect(hintOfTie(5_000)).toEqual({ kind: 'observe', clock: 5_000, settleFromMs: 5 });
  });

  it('leaves a hint that shared the write its own settle condition', () => {
    const tied = (tiedClock: number, settleFromMs: number) => hintOfTie(5_000, { kind: 'observe', clock: tiedClock, settleFromMs });
    expect(tied(4_000, 99)).toEqual({ kind: 'observe', clock: 5_000, settleFromMs: 99 });
    expect(tied(5_500, 1)).toEqual({ kind: 'observe', clock: 5_500, settleFromMs: 5 });
  });
});

describe('whatever a record says', () => {
  const reasons = ['no-effect', 'failed-call'] as const;
  const change = fc.oneof(
    fc.boolean().map((copied): Change => ({ kind: 'created', copied })),
    fc.constantFrom(...reasons).map((reason): Change => ({ kind: 'ignored', reason })),
    fc
      .constantFrom(
        'multipart-completed',
        'marker-created',
        'deleted',
        'bulk-deleted',
        'lifecycle-expired',
        'storage-changed',
        'tagged',
        'lost',
        'unknown',
      )
      .map((kind) => ({ kind })),
  );
  const around = (ms: number) => fc.integer({ min: -200_000, max: 200_000 }).map((offMs) => ms + offMs);
  const time = fc.oneof(around(T), fc.integer({ min: 0, max: Date.UTC(10_000, 0) - 1 }));
  const sequencer = fc.oneof(around(T).map(sequencerAt), fc.string({ maxLength: 20 }), fc.stringMatching(/^[0-9A-F]{16}([0-9A-F]{2})?$/));
  const record: fc.Arbitrary<ChangeRecord> = fc.record(
    {
      dialect: fc.constantFrom(...dialects),
      bucket: fc.constant('b'),
      key: fc.string({ minLength: 1 }),
      eventName: fc.string(),
      change,
      eventTimeMs: time,
      sequencer,
      etag: fc.string({ minLength: 1 }),
      sizeBytes: fc.nat(),
      versionId: fc.string({ minLength: 1 }),
      throughTopic: fc.constant(true as const),
    },
    { requiredKeys: ['dialect', 'bucket', 'key', 'eventName', 'change'] },
  );
  const bucket: fc.Arbitrary<BucketFacts> = fc.record({
    source: fc.constantFrom(...bucketSources),
    floor: fc.oneof(fc.constant(0), around(T).map(clockOfMs)),
    enrich: fc.constantFrom('none', 'head', 'tags'),
    versioning: fc.record({ status: fc.constantFrom('unknown', 'never', 'enabled', 'suspended'), observedAtMs: around(T) }),
  });
  const at = fc.record({ sentAtMs: around(T), nowMs: time });

  it('it has one hint, with a clock that is no further ahead than a minute after it was sent', () => {
    fc.assert(
      fc.property(record, bucket, at, (said, facts, when) => {
        const hint = hintOf(said, facts, when);
        if (!('clock' in hint)) return;
        expect(Number.isSafeInteger(hint.clock)).toBe(true);
        expect(hint.clock).toBeGreaterThanOrEqual(0);
        expect(hint.clock).toBeLessThanOrEqual(clockOfMs(when.sentAtMs + FUTURE_MS));
      }),
      { numRuns: 2_000 },
    );
  });

  it('it is never exact without all that rule 3 asks for', () => {
    fc.assert(
      fc.property(record, bucket, at, (said, facts, when) => {
        const hint = hintOf(said, facts, when);
        if (hint.kind !== 'exact') return;
        expect(said.dialect === 'native' ? ['notification', 'topic'] : ['eventbridge']).toContain(facts.source);
        expect(said.dialect === 'native' || (said.dialect === 'eventbridge' && said.throughTopic !== true)).toBe(true);
        expect(['created', 'marker-created', 'deleted']).toContain(said.change.kind);
        expect(hint.clock).toBe(sequencerClock(said.sequencer!));
        expect(Math.abs(hint.clock - clockOfMs(said.eventTimeMs!))).toBeLessThanOrEqual(clockOfMs(PLAUSIBLE_MS));
        expect(hint.clock).toBeGreaterThan(facts.floor);
        expect(when.sentAtMs - said.eventTimeMs!).toBeLessThan(DAY_MS);
        expect(when.nowMs - said.eventTimeMs!).toBeLessThan(DAY_MS);
        if (said.change.kind !== 'deleted') return;
        expect(said.versionId).toBeUndefined();
        expect(facts.versioning.status).toBe('never');
        expect(facts.versioning.observedAtMs).toBeGreaterThanOrEqual(said.eventTimeMs! + 3_000);
      }),
      { numRuns: 5_000 },
    );
  });
});

/** Of which sources' buckets a record proves that events arrive: a wrong one would call a bucket proven whose own events may never come. */
it('the sources that a dialect proves are those whose buckets get their events in it', () => {
  const proven = dialects.map((dialect) => [dialect, bucketSources.filter((source) => isFormOf(source, dialect))]);
  expect(Object.fromEntries(proven)).toEqual({
    native: ['notification', 'topic'],
    eventbridge: ['eventbridge'],
    trail: ['routed'],
    synthetic: ['routed'],
    webhook: ['webhook'],
  });
});

it('the source of a document follows from the dialect', () => {
  expect(dialects.map((dialect) => dialectFacts[dialect].documentSource)).toEqual(['native', 'eventbridge', 'routed', 'routed', 'webhook']);
});
