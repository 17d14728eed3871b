import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import type { ChangeRecord } from '../../../src/domain/events/record.ts';
import { createBucketAccess } from '../../../src/pipeline/buckets/access.ts';
import { createBucketRecordCache } from '../../../src/pipeline/buckets/record-cache.ts';
import { createConnectBucket } from '../../../src/pipeline/buckets/connect.ts';
import { createGapReports, createReportUnconnected } from '../../../src/pipeline/gaps/reports.ts';
import { readRecord, refs } from '../../../src/pipeline/records/stored.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createBreakableStore } from '../../support/worlds/ingest.ts';

function setUp(autoConnectMax = 0) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const { objects, state, plainState, broken } = createBreakableStore();
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
  const access = createBucketAccess({ records: cache, state, clock, connect, reportUnconnected, autoConnectMax });
  return {
    clock,
    telemetry,
    storage,
    connect,
    access,
    broken,
    asked,
    record: (bucket: string) => readRecord(plainState, refs.bucket(bucket)),
    unconnected: (bucket: string) => readRecord(plainState, refs.unconnected(bucket)),
    lookup: async (...records: readonly ChangeRecord[]) => {
      const looked = Promise.allSettled(records.map((record) => access.lookup(record)));
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
const found = (bucket: string) => ({ status: 'fulfilled', value: expect.objectContaining({ bucket }) as unknown });
const none = { status: 'fulfilled', value: undefined };

describe('the bucket of an event', () => {
  it('is its record when it is connected', async () => {
    const world = setUp();
    world.storage.createBucket('bbb');
    await world.connect.connect({ bucket: 'bbb' }, 'test');
    expect(world.access.peek(event('bbb'))).toBeUndefined();
    expect(await world.access.lookup(event('bbb'))).toMatchObject({ bucket: 'bbb' });
    expect(world.access.peek(event('bbb'))).toMatchObject({ bucket: 'bbb' });
  });

  it('is none when it is not, and that is stored before it is told', async () => {
    const world = setUp();
    expect(await world.lookup(event('bbb'), event('bbb'))).toEqual([none, none]);
    expect(await world.unconnected('bbb')).toMatchObject({ count: 2 });
    expect(world.asked).toEqual([]);
  });

  it('is known to be versioned from the first event with a version id, whatever was read before', async () => {
    const world = setUp();
    world.storage.createBucket('bbb');
    await world.connect.connect({ bucket: 'bbb' }, 'test');
    expect(await world.access.lookup(event('bbb'))).toMatchObject({ versioning: { status: 'never' } });
    // not without waiting: it must be stored first
    expect(world.access.peek(event('bbb', 'v1'))).toBeUndefined();
    expect(await world.access.lookup(event('bbb', 'v1'))).toMatchObject({ versioning: { status: 'enabled' } });
    expect(await world.record('bbb')).toMatchObject({ versioning: { status: 'enabled' } });
    expect(world.access.peek(event('bbb'))).toMatchObject({ versioning: { status: 'enabled' } });
    expect(world.access.peek(event('bbb', 'v1'))).toBeDefined();
  });

  it('is not to be known while the store does not answer', async () => {
    const world = setUp();
    world.broken.all = new FaultError('index.unreachable', 'gone');
    await expect(world.access.lookup(event('bbb'))).rejects.toMatchObject({ code: 'index.unreachable' });
  });
});

describe('connecting at the first event', () => {
  it('connects up to the maximum, however many events of however many buckets come together', async () => {
    const world = setUp(2);
    for (const bucket of ['one', 'two', 'three']) world.storage.createBucket(bucket);
    const events = ['one', 'two', 'three', 'one', 'two', 'three'].map((bucket) => event(bucket));
    expect(await world.lookup(...events)).toEqual([found('one'), found('two'), none, found('one'), found('two'), none]);
    expect(world.telemetry.recorded('bucketConnected')).toEqual([
      ['one', 'auto-connect'],
      ['two', 'auto-connect'],
    ]);
    expect(await world.unconnected('three')).toMatchObject({ count: 2 });
    expect(await world.unconnected('one')).toBeUndefined();
  });

  it('of a name that no bucket has is an unconnected name, and S3 is asked seldom', async () => {
    const world = setUp(9);
    const flood = Array.from({ length: 50 }, () => event('nowhere'));
    expect(await world.lookup(...flood)).toEqual(flood.map(() => none));
    expect(world.asked).toEqual(['nowhere']);
    world.storage.createBucket('nowhere');
    expect(await world.lookup(event('nowhere'))).toEqual([found('nowhere')]);
  });

  it('that S3 does not answer is a fault, tried anew with the next event', async () => {
    const world = setUp(9);
    world.storage.createBucket('bbb');
    world.storage.failWith(new FaultError('s3.unavailable', '503'));
    expect(await world.lookup(event('bbb'))).toMatchObject([{ status: 'rejected', reason: { code: 's3.unavailable' } }]);
    world.storage.failWith(undefined);
    expect(await world.lookup(event('bbb'))).toEqual([found('bbb')]);
  });
});
