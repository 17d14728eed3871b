import { describe, expect, it } from 'vitest';
import { createObservingWorld } from '../support/worlds/observing.ts';
import { type ObjectDocument, clockOfMs } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { ObserveRequest } from '../../src/observing/observer.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const bucketOf = (bucket: string) => recordOf(bucket, { source: 'routed' });

/** Two buckets whose documents are an hour old. One HEAD runs at a time, so that the bounds are met exactly. */
async function setUp() {
  const world = await createObservingWorld({ buckets: ['photos', 'other'], headConcurrency: 1 });
  const { clock, storage, observe } = world;
  const firstKeys: string[] = [];
  const firstKey = storage.firstKey.bind(storage);
  storage.firstKey = async (...asked) => {
    firstKeys.push(asked[0].bucket);
    return firstKey(...asked);
  };
  const keysOf = (count: number): string[] => Array.from({ length: count }, (_, at) => `k${String(at).padStart(4, '0')}`);
  return {
    ...world,
    firstKeys,
    keysOf,
    /** Documents of objects that are in the bucket too, unless `isGone`. */
    async add(
      keys: readonly string[],
      { bucket = 'photos', isGone = false, ...more }: Partial<ObjectDocument> & { isGone?: boolean } = {},
    ) {
      const documents = keys.map((key) => world.document(key, HOUR_MS, { bucket, ...more }));
      await world.store(documents);
      if (!isGone) for (const key of keys) storage.put(bucket, key);
      return documents;
    },
    observeAgain: (documents: readonly ObjectDocument[], bucket = 'photos') =>
      world.observeAgain(bucketOf(bucket), documents).then(
        () => 'ended',
        (error: unknown) => (error instanceof FaultError ? error.code : error),
      ),
    observe: (key: string, more: Partial<ObserveRequest> = {}) => {
      const hint = { kind: 'observe', clock: clockOfMs(clock.nowMs() - MINUTE_MS), settleFromMs: clock.nowMs() - MINUTE_MS } as const;
      return observe({ bucket: bucketOf('photos'), key, hint, cause: {}, source: 'routed', ...more });
    },
    tombstones: async (bucket = 'photos') => {
      const stored = await world.objects.getMany(bucket, keysOf(1_000));
      return stored.filter((document) => document?.deleted === true).length;
    },
  };
}

describe('absence that no event reported', () => {
  it('is believed 100 times a minute of many observations, and then not until the bucket shows an object', async () => {
    const world = await setUp();
    const others = Array.from({ length: 400 }, (_, at) => `present${at}`);
    await world.add(others);
    const present = await world.add(Array.from({ length: 200 }, (_, at) => `there${at}`));
    expect(await world.observeAgain(present)).toBe('ended');
    const gone = await world.add(world.keysOf(150), { isGone: true });
    // the store loses its disk
    for (const key of [...others, ...present.map((document) => document.key)]) world.storage.delete('photos', key);
    expect([await world.observeAgain(gone), await world.tombstones()]).toEqual(['bucket.unproven', 100]);
  });

  it('is believed without a bound while the bucket shows an object, at two HEADs and a LIST in five seconds', async () => {
    const world = await setUp();
    await world.add(['z']);
    const gone = await world.add(world.keysOf(500), { isGone: true });
    expect([await world.observeAgain(gone), await world.tombstones()]).toEqual(['ended', 500]);
    // one HEAD of the next document, which is gone too, and one more of the key that was observed before the LIST
    expect(world.storage.observed).toHaveLength(502);
    expect(world.firstKeys).toHaveLength(1);
  });

  it('is observed again after the bucket has shown an object: a disk that came back loses nothing more', async () => {
    const world = await setUp();
    const keys = world.keysOf(200);
    const documents = await world.add(keys, { isGone: true });
    // the tenth HEAD is the last one without the disk
    const readState = world.storage.readState.bind(world.storage);
    world.storage.readState = async (...asked) => {
      const seen = await readState(...asked);
      if (world.storage.observed.length === 10) for (const key of keys) world.storage.put('photos', key);
      return seen;
    };
    expect(await world.observeAgain(documents)).toBe('ended');
    expect(await world.tombstones()).toBe(9);
  });

  it('waits for one bucket alone, which is reported, and opens no circuit', async () => {
    const world = await setUp();
    const gone = await world.add(world.keysOf(150), { isGone: true });
    const others = await world.add(world.keysOf(5), { bucket: 'other', isGone: true });
    expect(await world.observeAgain(gone)).toBe('bucket.unproven');
    // nine, where they are more than half of the observations
    expect(await world.tombstones()).toBe(9);
    expect(await world.observeAgain(others, 'other')).toBe('ended');
    expect(await world.tombstones('other')).toBe(5);
    const reason = 'many objects of photos are gone that no event reported as deleted, and the bucket shows no other object';
    const reported = world.telemetry.recorded('requestFailed');
    expect(reported).toEqual([['delete documents whose objects are gone', 'bucket.unproven', reason]]);
    expect(world.circuits.all()).toEqual([]);
  });

  it('waits until the bucket shows an object again, which is asked once in five seconds, and is not believed a few times a minute until then', async () => {
    const world = await setUp();
    const gone = await world.add(world.keysOf(150), { isGone: true });
    for (let times = 0; times < 2; times += 1) await world.observeAgain(gone);
    expect(world.firstKeys).toHaveLength(1);
    for (let minutes = 0; minutes < 10; minutes += 1) {
      await world.clock.sleep(MINUTE_MS);
      expect(await world.observeAgain(gone)).toBe('bucket.unproven');
    }
    expect(await world.tombstones()).toBe(9);
    await world.clock.sleep(5_001);
    world.storage.put('photos', 'back');
    expect([await world.observeAgain(gone), await world.tombstones()]).toEqual(['ended', 150]);
  });

  it('costs nothing where the index has no document that could be lost', async () => {
    const world = await setUp();
    for (const key of world.keysOf(300)) expect(await world.observe(key)).toMatchObject({ kind: 'written' });
    expect(world.firstKeys).toEqual([]);
    const gone = await world.add(world.keysOf(300), { isGone: true, deleted: true, deleted_at: '2026-01-01T00:00:00.000Z' });
    expect(await world.observeAgain(gone)).toBe('ended');
    expect(world.firstKeys).toEqual([]);
  });
});

describe('absence that an event reported', () => {
  it('is never limited, also while the other waits', async () => {
    const world = await setUp();
    const gone = await world.add(world.keysOf(400), { isGone: true });
    expect(await world.observeAgain(gone.slice(0, 100))).toBe('bucket.unproven');
    for (const { key } of gone.slice(100)) expect(await world.observe(key, { reportsDeletion: true })).toMatchObject({ kind: 'written' });
    expect(await world.tombstones()).toBe(309);
    expect(await world.observe('k0050')).toMatchObject({ kind: 'fault', fault: { code: 'bucket.unproven' } });
  });

  it('is not limited where one of several hints of the key reported it', async () => {
    const world = await setUp();
    const gone = await world.add(world.keysOf(150), { isGone: true });
    await world.observeAgain(gone.slice(0, 100));
    const [created, deleted] = await Promise.all([world.observe('k0149'), world.observe('k0149', { reportsDeletion: true })]);
    expect([created, deleted]).toMatchObject([{ kind: 'written' }, { kind: 'written' }]);
  });
});
