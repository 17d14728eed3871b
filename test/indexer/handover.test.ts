import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { markId, markSchema } from '../../src/records/dirty.ts';
import { createHandover, createHandoverPermission, type HandedOverRecord } from '../../src/indexer/handover.ts';
import type { StateEntry, StateStore } from '../../src/store/store.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { guarded } from '../support/fakes/guarded.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const permitted = { isPermitted: true };

async function setUp(wrap: (state: StateStore) => StateStore = (state) => state) {
  const { state } = createMemoryStore();
  const puts: string[] = [];
  const noting = guarded(state, (_, [entry]) => puts.push((entry as StateEntry).id), ['put']);
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  for (const bucket of ['photos', 'videos']) await updateRecord(state, refs.bucket(bucket), () => ({ ...bucketRecord, bucket }));
  const handover = createHandover({ state: wrap(noting), clock, telemetry, permission: permitted });
  const record = (more: Partial<HandedOverRecord> = {}): HandedOverRecord => {
    const nowMs = clock.nowMs();
    return { bucket: 'photos', change: 'other', sentAtMs: nowMs, eventTimeMs: nowMs, reason: 's3.unavailable', ...more };
  };
  const gap = (key?: string) => readRecord(state, refs.gap(markId('photos', key)));
  return { state, clock, telemetry, handover, puts, record, gap, gaps: () => listAllRecords(state, 'gap', markSchema) };
}

describe('a record that is handed over', () => {
  it('has an open gap that was last seen after its change', async () => {
    const { handover, record, gap, clock } = await setUp();
    await handover.handOver(record());
    expect(await gap()).toMatchObject({
      reasons: [{ kind: 'handed-over', example: 'could not be served: s3.unavailable', count: 1 }],
      sinceMs: clock.nowMs(),
      lastSeenMs: clock.nowMs() + 10_000,
    });
    expect(await gap()).not.toHaveProperty('readTags');
  });

  it('costs no write if its change was before what is stored', async () => {
    const world = await setUp();
    await world.handover.handOver(world.record());
    for (let count = 0; count < 10_000; count += 1) await world.handover.handOver(world.record());
    expect(world.puts).toEqual([markId('photos')]);
    await world.clock.advance(9_500);
    await world.handover.handOver(world.record());
    expect(world.puts).toHaveLength(2);
    expect(await world.gap()).toMatchObject({ reasons: [{ count: 2 }], lastSeenMs: world.clock.nowMs() + 10_000 });
  });

  it('stands for no other change than its own: a delete for no write, and a write for no change of tags', async () => {
    const { handover, record, gap, clock } = await setUp();
    await handover.handOver(record({ change: 'delete' }));
    expect(await gap()).toMatchObject({ deletes: 'announced' });
    await handover.handOver(record());
    expect(await gap()).toMatchObject({ deletes: 'limited' });
    const tags = handover.handOver(record({ change: 'tags' }));
    await clock.advance(5_000);
    await tags;
    expect(await gap()).toMatchObject({ readTags: true });
  });

  it('with an event time that is not plausible does not keep its gap open until then', async () => {
    const { handover, record, gap, clock } = await setUp();
    await handover.handOver(record({ eventTimeMs: clock.nowMs() + 86_400_000 }));
    expect(await gap()).toMatchObject({ lastSeenMs: clock.nowMs() + 70_000 });
  });

  it('needs only that its bucket has a record, not that this version can read it', async () => {
    const world = await setUp();
    const entry = await world.state.get('bucket:photos');
    await world.state.put({ id: 'bucket:photos', kind: 'bucket', record: { source: 'of a newer version' } }, entry?.version ?? null);
    await world.handover.handOver(world.record());
    expect(await world.gap()).toBeDefined();
  });

  it('is not handed over if the store refuses the gap, while those of another bucket are', async () => {
    const fault = new FaultError('index.unreachable', 'gone');
    const world = await setUp((state) => ({
      ...state,
      put: (entry, expected, signal) => (entry.id === markId('photos') ? Promise.reject(fault) : state.put(entry, expected, signal)),
    }));
    const refused = world.handover.handOver(world.record());
    await world.handover.handOver(world.record({ bucket: 'videos' }));
    await expect(refused).rejects.toBe(fault);
    const again = world.handover.handOver(world.record());
    const answer = Promise.allSettled([again]);
    await world.clock.advance(5_000);
    expect(await answer).toMatchObject([{ status: 'rejected' }]);
  });
});

describe('an object that fails alone', () => {
  it('shares the gap of the whole bucket once a hundred others have one, and has its own again once those are closed', async () => {
    const { handover, record, gaps, gap, clock, state } = await setUp();
    for (let number = 0; number < 100; number += 1) await handover.handOver(record({ key: `key-${number}` }));
    await handover.handOver(record({ key: 'one-too-many' }));
    await handover.handOver(record({ key: 'key-7' }));
    const all = await gaps();
    expect(all).toHaveLength(101);
    expect(all.filter(({ prefix }) => prefix === undefined)).toMatchObject([{ reasons: [{ count: 1 }] }]);
    for (const { id } of all) await removeRecord(state, id);
    await clock.advance(60_000);
    await handover.handOver(record({ key: 'later' }));
    expect(await gap('later')).toBeDefined();
  });
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const never = new AbortController().signal;

function permissionWorld({ wrap = (state: StateStore) => state } = {}) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const permission = createHandoverPermission({ state: wrap(state), clock, telemetry });
  const ref = refs.schedule('close-gaps');
  /** A re-index worker begins a round; its clock is this far ahead. */
  const round = (aheadMs = 0) =>
    updateRecord(state, ref, (current) => ({
      ...current,
      name: 'close-gaps',
      dueAtMs: clock.nowMs() + aheadMs + 15_000,
      lastStartedAtMs: clock.nowMs() + aheadMs,
    }));
  return { permission, clock, telemetry, round };
}

describe('handover is permitted', () => {
  it('while a re-index worker was there within an hour', async () => {
    const { permission, clock, round } = permissionWorld();
    expect(permission.isPermitted).toBe(false);
    await round();
    await permission.watch(never);
    expect(permission.isPermitted).toBe(true);
    await clock.advance(HOUR_MS - 60_000);
    expect(permission.isPermitted).toBe(true);
    await clock.advance(60_000);
    expect(permission.isPermitted).toBe(false);
    await round();
    await clock.advance(60_000);
    expect(permission.isPermitted).toBe(true);
  });

  it.each([-DAY_MS, DAY_MS])('by a worker whose clock is %d ms off, once it was seen to do something', async (aheadMs) => {
    const { permission, clock, round } = permissionWorld();
    await round(aheadMs);
    await permission.watch(never);
    expect(permission.isPermitted).toBe(false);
    await round(aheadMs);
    await clock.advance(60_000);
    expect(permission.isPermitted).toBe(true);
  });

  it('as last known while the store does not answer, for an hour at most', async () => {
    let isDown = false;
    const fault = new FaultError('index.unreachable', 'gone');
    const wrap = (state: StateStore): StateStore => ({ ...state, get: (...args) => (isDown ? Promise.reject(fault) : state.get(...args)) });
    const { permission, clock, telemetry, round } = permissionWorld({ wrap });
    await round();
    await permission.watch(never);
    isDown = true;
    await clock.advance(HOUR_MS - 1);
    expect(permission.isPermitted).toBe(true);
    expect(telemetry.recorded('requestFailed').length).toBeGreaterThan(0);
    await clock.advance(1);
    expect(permission.isPermitted).toBe(false);
  });
});
