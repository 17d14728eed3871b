import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import { gapSchema } from '../../../src/domain/gaps/gap.ts';
import type { ChangeRecord } from '../../../src/domain/events/record.ts';
import { createEventBuckets, createBucketRecordCache, type Arrival } from '../../../src/pipeline/buckets/event-buckets.ts';
import { createConnectBucket } from '../../../src/pipeline/buckets/connect.ts';
import { createGapReports, createReportUnconnected } from '../../../src/pipeline/gaps/reports.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createBreakableStore } from '../../support/worlds/ingest.ts';

/** When the messages of the events were sent. */
const sentAtMs = Date.UTC(2026, 0, 2, 3, 4, 5);

function setUp(autoConnectMax = 0) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const { objects: storeObjects, state, plainState, broken, stateReads } = createBreakableStore();
  const storage = createFakeStorage(clock);
  const asked: string[] = [];
  const hooks: { beforeRegion?: (bucket: string, signal: AbortSignal | undefined) => Promise<void> } = {};
  const notedStorage = {
    ...storage,
    regionOf: async (bucket: string, signal?: AbortSignal) => {
      asked.push(bucket);
      await hooks.beforeRegion?.(bucket, signal);
      return storage.regionOf(bucket);
    },
  };
  const gaps = createGapReports({ state, clock, telemetry });
  const objects = { ...storeObjects };
  const connect = createConnectBucket({ state, objects, storage: notedStorage, gaps, clock, telemetry });
  const cache = createBucketRecordCache({ state, clock });
  const reportUnconnected = createReportUnconnected({ state, clock, telemetry, gaps });
  const access = createEventBuckets({ records: cache, state, clock, connect, gaps, reportUnconnected, telemetry, autoConnectMax });
  let roomLeft = Infinity;
  const arrival = (eventSentAtMs = sentAtMs): Arrival => ({
    sentAtMs: eventSentAtMs,
    receivedAtMonotonicMs: clock.monotonicMs(),
    signal: new AbortController().signal,
    enter() {
      if (roomLeft <= 0) return undefined;
      roomLeft -= 1;
      return () => void (roomLeft += 1);
    },
  });
  return {
    clock,
    telemetry,
    storage,
    objects,
    /** How many records may wait for their bucket at the same time. */
    limitRoom: (records: number) => void (roomLeft = records),
    hooks,
    connect,
    access,
    broken,
    stateReads,
    asked,
    state,
    gaps: () => listAllRecords(plainState, 'gap', gapSchema),
    record: (bucket: string) => readRecord(plainState, refs.bucket(bucket)),
    unconnected: (bucket: string) => readRecord(plainState, refs.unconnected(bucket)),
    arrival,
    /** One message for each record, received now. */
    lookup: async (...records: readonly ChangeRecord[]) => {
      const looked = Promise.allSettled(records.map((record) => access.lookup(record, arrival())));
      for (let count = 0; count < 20; count += 1) await clock.advance(1e3);
      return looked;
    },
  };
}

const event = (bucket: string, versionId?: string): ChangeRecord => ({
  dialect: 'native',
  bucket,
  key: 'k',
  keyUncertain: false,
  eventName: 'e',
  change: { kind: 'deleted' },
  ...(versionId !== undefined && { versionId }),
});
const found = (bucket: string) => ({
  status: 'fulfilled',
  value: { kind: 'connected', bucket: expect.objectContaining({ bucket }) as unknown },
});
const none = { status: 'fulfilled', value: { kind: 'unconnected' } };
const unconnectable = (code: string) => ({ status: 'fulfilled', value: { kind: 'unconnectable', fault: { code } } });

describe('the bucket of an event', () => {
  it('is its record when it is connected', async () => {
    const world = setUp();
    world.storage.createBucket('bbb');
    await world.connect.connect({ bucket: 'bbb' }, 'test');
    expect(world.access.peek(event('bbb'), sentAtMs)).toBeUndefined();
    expect(await world.access.lookup(event('bbb'), world.arrival())).toMatchObject({ kind: 'connected', bucket: { bucket: 'bbb' } });
    expect(world.access.peek(event('bbb'), sentAtMs)).toMatchObject({ bucket: 'bbb' });
  });

  it('is none when it is not, and its events are counted soon', async () => {
    const world = setUp();
    expect(await world.lookup(event('bbb'), event('bbb'))).toEqual([none, none]);
    for (let count = 0; count < 2; count += 1) world.access.countUnconnected('bbb', sentAtMs);
    await world.clock.advance(1e3);
    expect(await world.unconnected('bbb')).toMatchObject({ count: 2 });
    expect(world.asked).toEqual([]);
  });

  it('Fix: is none only if that was read after the event came, so that a bucket that was connected meanwhile loses none', async () => {
    const world = setUp();
    expect(await world.lookup(event('bbb'))).toEqual([none]);
    world.storage.createBucket('bbb');
    await world.connect.connect({ bucket: 'bbb' }, 'another process');
    expect(await world.lookup(event('bbb'))).toEqual([found('bbb')]);
  });

  it('that is none is read again at most ten times a second, however many events come', async () => {
    const world = setUp();
    await world.lookup(event('bbb'));
    const reads = world.stateReads.length;
    for (let count = 0; count < 50; count += 1) {
      void world.access.lookup(event('bbb'), world.arrival());
      await world.clock.advance(10);
    }
    expect(world.stateReads.length - reads).toBeLessThanOrEqual(6);
  });

  it('is known to be versioned from the first event with a version id, whatever was read before', async () => {
    const world = setUp();
    world.storage.createBucket('bbb');
    await world.connect.connect({ bucket: 'bbb' }, 'test');
    expect(await world.access.lookup(event('bbb'), world.arrival())).toMatchObject({ bucket: { versioning: { status: 'never' } } });
    // not without waiting: it must be stored first
    expect(world.access.peek(event('bbb', 'v1'), sentAtMs)).toBeUndefined();
    expect(await world.access.lookup(event('bbb', 'v1'), world.arrival())).toMatchObject({ bucket: { versioning: { status: 'enabled' } } });
    expect(await world.record('bbb')).toMatchObject({ versioning: { status: 'enabled' } });
    expect(world.access.peek(event('bbb'), sentAtMs)).toMatchObject({ versioning: { status: 'enabled' } });
    expect(world.access.peek(event('bbb', 'v1'), sentAtMs)).toBeDefined();
  });

  it('Fix: is unsubscribed from its topic until an event that happened and was sent a minute later, which ends in a gap', async () => {
    const world = setUp();
    const topicArn = 'arn:aws:sns:eu-west-1:123456789012:events';
    world.storage.createBucket('bbb');
    await world.connect.connect({ bucket: 'bbb', source: 'topic', topic_arn: topicArn }, 'test');
    await updateRecord(world.state, refs.bucket('bbb'), (record) => record && { ...record, unsubscribed: { topicArn, atMs: sentAtMs } });
    await world.clock.advance(1_000);
    const ended = async (eventTimeMs: number | undefined, eventSentAtMs: number): Promise<boolean> => {
      const change = { ...event('bbb'), ...(eventTimeMs !== undefined && { eventTimeMs }) };
      if (world.access.peek(change, eventSentAtMs) === undefined) await world.access.lookup(change, world.arrival(eventSentAtMs));
      await world.clock.advance(1_000);
      return (await world.record('bbb'))?.unsubscribed === undefined;
    };
    const minuteMs = 60_000;
    expect(await ended(sentAtMs + minuteMs, sentAtMs + minuteMs - 1)).toBe(false);
    // a dead letter that was sent back: it is sent again, but it happened before
    expect(await ended(sentAtMs - 1, sentAtMs + 10 * minuteMs)).toBe(false);
    expect((await world.gaps()).map(({ reason }) => reason)).toEqual(['never compared']);
    expect(await ended(sentAtMs + 2 * minuteMs, sentAtMs + 3 * minuteMs)).toBe(true);
    expect(await world.gaps()).toMatchObject([
      { reason: 'the bucket queue had been unsubscribed from the topic of the bucket', lastSeenMs: sentAtMs + 3 * minuteMs },
    ]);
    expect(world.access.peek(event('bbb'), sentAtMs)).toBeDefined();
  });

  it('is not to be known while the store does not answer', async () => {
    const world = setUp();
    world.broken.all = new FaultError('index.unreachable', 'gone');
    await expect(world.access.lookup(event('bbb'), world.arrival())).rejects.toMatchObject({ code: 'index.unreachable' });
  });
});

describe('connecting at the first event', () => {
  it('connects up to the maximum, however many events of however many buckets come together', async () => {
    const world = setUp(2);
    for (const bucket of ['one', 'two', 'three']) world.storage.createBucket(bucket);
    const events = ['one', 'two', 'three', 'one', 'two', 'three'].map((bucket) => event(bucket));
    expect(await world.lookup(...events)).toEqual([found('one'), found('two'), none, found('one'), found('two'), none]);
    expect(world.telemetry.logged('bucket connected')).toEqual([
      { bucket: 'one', by: 'auto-connect' },
      { bucket: 'two', by: 'auto-connect' },
    ]);
  });

  it('of a name that no bucket has is an unconnected name, and S3 is asked twice a minute', async () => {
    const world = setUp(9);
    const flood = Array.from({ length: 50 }, () => event('nowhere'));
    expect(await world.lookup(...flood)).toEqual(flood.map(() => none));
    world.storage.createBucket('nowhere');
    expect(await world.lookup(event('nowhere'))).toEqual([none]);
    expect(world.asked).toEqual(['nowhere']);
    expect(await world.lookup(event('nowhere'))).toEqual([found('nowhere')]);
  });

  it('Fix: of a directory bucket is an unconnected name', async () => {
    const world = setUp(9);
    expect(await world.lookup(event('logs--use1-az4--x-s3'))).toEqual([none]);
  });

  it('Fix: that S3 does not answer is tried twice a minute, however many events come', async () => {
    const world = setUp(9);
    world.storage.createBucket('bbb');
    world.storage.failWith(new FaultError('s3.unavailable', '503'));
    const flood = Array.from({ length: 50 }, () => event('bbb'));
    expect(await world.lookup(...flood)).toMatchObject(flood.map(() => unconnectable('s3.unavailable')));
    expect(await world.lookup(event('bbb'))).toMatchObject([unconnectable('s3.unavailable')]);
    expect(world.asked).toEqual(['bbb']);
    world.storage.failWith(undefined);
    expect(await world.lookup(event('bbb'))).toEqual([found('bbb')]);
  });

  it('Fix: that its index refuses is a fault of its name alone', async () => {
    const world = setUp(9);
    world.storage.createBucket('bbb');
    world.objects.createBucket = async () => {
      throw new FaultError('bucket.index-unavailable', 'no shard is left');
    };
    expect(await world.lookup(event('bbb'))).toMatchObject([unconnectable('bucket.index-unavailable')]);
  });

  it('that the whole index store refuses is that store’s fault, and not remembered', async () => {
    const world = setUp(9);
    world.storage.createBucket('bbb');
    const working = { ...world.objects };
    world.objects.createBucket = async () => {
      throw new FaultError('index.unreachable', 'gone');
    };
    expect(await world.lookup(event('bbb'))).toMatchObject([{ status: 'rejected', reason: { code: 'index.unreachable' } }]);
    Object.assign(world.objects, working);
    expect(await world.lookup(event('bbb'))).toEqual([found('bbb')]);
  });

  it('Fix: that hangs ends after half a minute, and keeps no other name from being connected', async () => {
    const world = setUp(900);
    const hanging = Array.from({ length: 15 }, (_, count) => `hangs-${count}`);
    for (const bucket of [...hanging, 'bbb']) world.storage.createBucket(bucket);
    world.hooks.beforeRegion = (bucket) => (bucket === 'bbb' ? Promise.resolve() : new Promise(() => undefined));
    const waits = Promise.all(hanging.map((bucket) => world.access.lookup(event(bucket), world.arrival())));
    expect(await world.lookup(event('bbb'))).toEqual([found('bbb')]);
    for (let count = 0; count < 20; count += 1) await world.clock.advance(1e3);
    expect(await waits).toMatchObject(hanging.map(() => ({ kind: 'unconnectable', fault: { code: 'bucket.connecting' } })));
  });

  it('Fix: goes first for a name that has not failed yet, when 300 others hang', async () => {
    const world = setUp(900);
    const hanging = Array.from({ length: 300 }, (_, count) => `hangs-${count}`);
    for (const bucket of [...hanging, 'bbb']) world.storage.createBucket(bucket);
    world.hooks.beforeRegion = (bucket) => (bucket === 'bbb' ? Promise.resolve() : new Promise(() => undefined));
    const all = (): void => {
      for (const bucket of hanging) void world.access.lookup(event(bucket), world.arrival());
    };
    all();
    // each of them has had its turn
    for (let count = 0; count < 600; count += 1) await world.clock.advance(1e3);
    all();
    const asked = world.asked.length;
    const looked = world.access.lookup(event('bbb'), world.arrival());
    for (let count = 0; count < 31; count += 1) await world.clock.advance(1e3);
    expect(await looked).toMatchObject({ kind: 'connected' });
    expect(world.asked.slice(asked).filter((bucket) => bucket !== 'bbb').length).toBeLessThan(60);
  });

  it('Fix: lets only so many events wait as have room, and the others come again', async () => {
    const world = setUp(9);
    world.storage.createBucket('bbb');
    world.hooks.beforeRegion = () => new Promise(() => undefined);
    world.limitRoom(2);
    const flood = Array.from({ length: 5 }, () => event('bbb'));
    const looked = flood.map((record) => world.access.lookup(record, world.arrival()));
    for (let count = 0; count < 2; count += 1) await world.clock.advance(1e3);
    expect(await Promise.all(looked.slice(2))).toMatchObject(
      Array.from({ length: 3 }, () => ({ kind: 'unconnectable', fault: { code: 'bucket.connecting' } })),
    );
  });

  it('is not waited for by a message whose process stops', async () => {
    const world = setUp(9);
    world.storage.createBucket('bbb');
    world.hooks.beforeRegion = () => new Promise(() => undefined);
    const stop = new AbortController();
    const looked = world.access.lookup(event('bbb'), { ...world.arrival(), signal: stop.signal });
    await world.clock.advance(1e3);
    stop.abort(new Error('it stops'));
    await expect(looked).rejects.toThrow('it stops');
  });
});
