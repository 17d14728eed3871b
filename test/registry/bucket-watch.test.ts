import { describe, expect, it } from 'vitest';
import { markId } from '../../src/records/dirty.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { createConnectBucket } from '../../src/connect/connect.ts';
import { readRecord, refs, removeRecord } from '../../src/store/stored.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { watchState } from '../../src/registry/bucket-watch.ts';
import { createUnclaimedJobs } from '../../src/observing/readiness.ts';
import { createSchedules } from '../../src/repair/schedules.ts';
import { CLOSE_GAPS_NAME } from '../../src/records/schedule.ts';
import type { MetricName } from '../../src/process/telemetry.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createBreakableStore, settled } from '../support/worlds/ingest.ts';
import { listBuckets } from '../../src/observing/known-buckets.ts';

async function setUp() {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const store = createBreakableStore();
  const { state, objects } = store;
  const storage = createFakeStorage(clock);
  const gaps = createGapReports({ state, clock, telemetry });
  const connect = createConnectBucket({ state, objects, storage, gaps, clock, telemetry });
  for (const bucket of ['aaa', 'bbb']) {
    storage.createBucket(bucket);
    await connect.connect({ bucket }, 'test');
    // as after its first re-index
    await removeRecord(state, markId(bucket));
  }
  const unclaimed = createUnclaimedJobs(clock);
  const stopping = new AbortController();
  watchState(
    {
      state,
      allBuckets: () => listBuckets(state),
      clock,
      telemetry,
      connect,
      processes: createProcesses({ state, clock }),
      compareIntervalMs: 0,
      unclaimed,
    },
    stopping.signal,
  );
  return {
    clock,
    telemetry,
    store,
    storage,
    gaps,
    check: unclaimed.check,
    stopping,
    record: (bucket: string) => readRecord(store.plainState, refs.bucket(bucket)),
    run: async (forMs: number) => {
      await clock.advance(forMs);
      await settled();
    },
  };
}

type World = Awaited<ReturnType<typeof setUp>>;

/** How many of what the gauge counted last have these labels; undefined if it counted nothing yet. */
function countOf({ telemetry }: World, metric: MetricName, labels: Readonly<Record<string, string>>): number | undefined {
  const counted = telemetry.recorded('setCounts').findLast(([name]) => name === metric)?.[1];
  const has = (each: object): boolean => Object.entries(labels).every(([label, value]) => Reflect.get(each, label) === value);
  return counted?.filter(has).length;
}

describe('the watch of the records', () => {
  it('notices that no worker has the role reindex though no job waits, and that one has', async () => {
    const world = await setUp();
    await world.run(180_000);
    expect(world.check()).toEqual({ status: 'ok' });
    await world.run(30_000);
    expect(world.check()).toMatchObject({ status: 'warning', code: 'no-worker' });
    const schedules = createSchedules({ state: world.store.state, clock: world.clock, telemetry: world.telemetry });
    schedules.every({ name: CLOSE_GAPS_NAME, intervalMs: 15_000, runMaxMs: 120_000 }, async () => undefined, world.stopping.signal);
    for (let minute = 0; minute < 10; minute += 1) {
      await world.run(60_000);
      expect(world.check()).toEqual({ status: 'ok' });
    }
    world.stopping.abort();
  });

  it('counts what gaps are open, and how old the oldest is, every 15 s', async () => {
    const world = await setUp();
    const shown = () => [world.telemetry.values('tally_gaps_open').at(-1), world.telemetry.values('tally_gaps_oldest_age_seconds').at(-1)];
    const report = { bucket: 'aaa', kind: 'bulk-delete', reason: 'r', seenAtMs: 1 } as const;
    await world.gaps.report(report);
    await world.gaps.report({ ...report, key: 'k' });
    await world.gaps.report({ ...report, bucket: 'bbb', seenAtMs: 5 });
    await world.run(15_000);
    expect(shown()).toEqual([3, (world.clock.nowMs() - 1) / 1_000]);
    for (const id of [markId('aaa'), markId('aaa', 'k')]) await removeRecord(world.store.plainState, id);
    await world.run(15_000);
    expect(shown()).toEqual([1, (world.clock.nowMs() - 5) / 1_000]);
    expect(countOf(world, 'tally_jobs', {})).toBe(0);
  });
});
