import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { ChangeRecord } from '../../src/events/record.ts';
import { createEventBuckets, createBucketRecordCache, type Arrival } from '../../src/indexer/event-buckets.ts';
import { createConnectBucket } from '../../src/connect/connect.ts';
import { createGapReports, createReportUnconnected } from '../../src/observing/reports.ts';
import { readRecord, refs } from '../../src/store/stored.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createBreakableStore } from '../support/worlds/ingest.ts';

/** When the messages of the events were sent. */
const sentAtMs = Date.UTC(2026, 0, 2, 3, 4, 5);

function setUp() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const { objects, state, plainState, broken, stateReads } = createBreakableStore();
  const storage = createFakeStorage(clock);
  const asked: string[] = [];
  const notedStorage = {
    ...storage,
    regionOf: async (bucket: string) => {
      asked.push(bucket);
      return storage.regionOf(bucket);
    },
  };
  const gaps = createGapReports({ state, clock, telemetry });
  const connect = createConnectBucket({ state, objects, storage: notedStorage, gaps, clock, telemetry });
  const cache = createBucketRecordCache({ state, clock });
  const reportUnconnected = createReportUnconnected({ state, clock, telemetry, gaps });
  const access = createEventBuckets({ records: cache, state, clock, connect, reportUnconnected, telemetry });
  const arrival = (eventSentAtMs = sentAtMs): Arrival => ({
    sentAtMs: eventSentAtMs,
    receivedAtMonotonicMs: clock.monotonicMs(),
  });
  return {
    clock,
    telemetry,
    storage,
    connect,
    access,
    broken,
    stateReads,
    asked,
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
  it('is its record when it is connected', async () => {
    const world = setUp();
    world.storage.createBucket('bbb');
    await world.connect.connect({ bucket: 'bbb' }, 'test');
    expect(world.access.peek(event('bbb'))).toBeUndefined();
    expect(await world.access.lookup(event('bbb'), world.arrival())).toMatchObject({ bucket: 'bbb' });
    expect(world.access.peek(event('bbb'))).toMatchObject({ bucket: 'bbb' });
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
    expect(await world.access.lookup(event('bbb'), world.arrival())).toMatchObject({ versioning: { status: 'never' } });
    // not without waiting: it must be stored first
    expect(world.access.peek(event('bbb', 'v1'))).toBeUndefined();
    expect(await world.access.lookup(event('bbb', 'v1'), world.arrival())).toMatchObject({ versioning: { status: 'enabled' } });
    expect(await world.record('bbb')).toMatchObject({ versioning: { status: 'enabled' } });
    expect(world.access.peek(event('bbb'))).toMatchObject({ versioning: { status: 'enabled' } });
    expect(world.access.peek(event('bbb', 'v1'))).toBeDefined();
  });

  it('is not to be known while the store does not answer', async () => {
    const world = setUp();
    world.broken.all = new FaultError('index.unreachable', 'gone');
    await expect(world.access.lookup(event('bbb'), world.arrival())).rejects.toMatchObject({ code: 'index.unreachable' });
  });
});
