import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { ChangeRecord } from '../../src/events/record.ts';
import { createEventBuckets } from '../../src/indexer/event-buckets.ts';
import { createConnectBucket } from '../../src/connect/connect.ts';
import { createGapReports, createReportUnconnected } from '../../src/observing/gaps.ts';
import type { StateStore } from '../../src/store/store.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createBreakableStore, settled } from '../support/worlds/ingest.ts';

function setUp() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const { objects, state, plainState, broken, stateReads } = createBreakableStore();
  const storage = createFakeStorage(clock);
  const gaps = createGapReports({ state, clock, telemetry });
  const connect = createConnectBucket({ state, objects, storage, gaps, clock, telemetry });
  const reportUnconnected = createReportUnconnected({ state, clock, telemetry, gaps });
  /** Reads answer when this is resolved. */
  let reading: Promise<void> = Promise.resolve();
  const held: StateStore = {
    ...state,
    get: async (...args) => {
      const entry = await state.get(...args);
      await reading;
      return entry;
    },
  };
  const access = createEventBuckets({ state: held, clock, connect, reportUnconnected, telemetry });
  const arrival = () => ({ receivedAtMonotonicMs: clock.monotonicMs() });
  return {
    clock,
    telemetry,
    storage,
    connect,
    access,
    broken,
    stateReads,
    record: (bucket: string) => readRecord(plainState, refs.bucket(bucket)),
    arrival,
    plainState,
    /** Stores the record of `bbb`, told apart by its floor. */
    store: (floor: number) => updateRecord(plainState, refs.bucket('bbb'), () => recordOf('bbb', { source: 'topic', floor })),
    look: () => access.lookup(event('bbb'), arrival()),
    peek: () => access.peek(event('bbb')),
    holdReads: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      reading = promise;
      return () => {
        reading = Promise.resolve();
        resolve();
      };
    },
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
  eventName: 'e',
  change: { kind: 'deleted' },
  ...(versionId !== undefined && { versionId }),
});
const found = (bucket: string) => ({
  status: 'fulfilled',
  value: expect.objectContaining({ bucket }) as unknown,
});
const none = { status: 'fulfilled', value: undefined };

describe('the bucket of an event', () => {
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
    expect(await world.access.lookup(event('bbb'), world.arrival())).toMatchObject({ versioning: { status: 'never' } });
    // not without waiting: it must be stored first
    expect(world.access.peek(event('bbb', 'v1'))).toBeUndefined();
    expect(await world.access.lookup(event('bbb', 'v1'), world.arrival())).toMatchObject({ versioning: { status: 'enabled' } });
    expect(await world.record('bbb')).toMatchObject({ versioning: { status: 'enabled' } });
    expect(world.access.peek(event('bbb'))).toMatchObject({ versioning: { status: 'enabled' } });
    expect(world.access.peek(event('bbb', 'v1'))).toBeDefined();
  });
});

describe('the cached record of a bucket', () => {
  it('is read by its id once for all who ask, and then known without waiting', async () => {
    const world = setUp();
    await world.store(1);
    expect(world.peek()).toBeUndefined();
    const known = await Promise.all([world.look(), world.look(), world.look()]);
    expect([...known, world.peek(), await world.look()]).toEqual(
      Array.from({ length: 5 }, () => recordOf('bbb', { source: 'topic', floor: 1 })),
    );
    expect(world.stateReads).toEqual(['bucket:bbb']);
  });

  it('never decides when it is older than ten seconds, and that of a busy bucket is read again before that', async () => {
    const world = setUp();
    await world.store(1);
    await world.look();
    await world.store(2);
    await world.clock.advance(5_000);
    expect(world.peek()).toMatchObject({ floor: 1 });
    expect(world.stateReads).toHaveLength(1);
    await world.clock.advance(1);
    // this look reads it again, for the next
    expect(world.peek()).toMatchObject({ floor: 1 });
    await settled();
    expect(world.stateReads).toHaveLength(2);
    expect(world.peek()).toMatchObject({ floor: 2 });
    await removeRecord(world.plainState, 'bucket:bbb');
    await world.clock.advance(10_001);
    expect(world.peek()).toBeUndefined();
    expect(await world.look()).toBeUndefined();
  });

  it('ages from before it was read, so that a read that took too long is a fault', async () => {
    const world = setUp();
    await world.store(1);
    const release = world.holdReads();
    const looked = expect(world.look()).rejects.toMatchObject({ code: 'index.unreachable' });
    await world.clock.advance(10_001);
    release();
    await looked;
    expect(world.peek()).toBeUndefined();
  });

  it('that cannot be read is a fault of whoever must wait, and of nobody who need not', async () => {
    const world = setUp();
    await world.store(1);
    await world.look();
    world.broken.all = new FaultError('index.unreachable', 'gone');
    await world.clock.advance(6_000);
    expect(world.peek()).toMatchObject({ floor: 1 });
    await world.clock.advance(5_000);
    await expect(world.look()).rejects.toMatchObject({ code: 'index.unreachable' });
  });

  it('that was read before this process changed it is not remembered', async () => {
    const world = setUp();
    world.storage.createBucket('bbb');
    await world.store(1);
    const release = world.holdReads();
    const before = world.look();
    await settled();
    world.access.readRegionAgain('bbb');
    await settled();
    await world.store(2);
    release();
    await before;
    await world.clock.advance(1);
    expect(await world.look()).toMatchObject({ floor: 2 });
  });
});
