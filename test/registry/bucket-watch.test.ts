import { describe, expect, it } from 'vitest';
import { markId } from '../../src/records/dirty.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { createConnectBucket } from '../../src/connect/connect.ts';
import { removeRecord } from '../../src/store/stored.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { watchState } from '../../src/registry/bucket-watch.ts';
import type { MetricName } from '../../src/process/telemetry.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createBreakableStore, settled } from '../support/worlds/ingest.ts';

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
  watchState(
    {
      state,
      clock,
      telemetry,
      connect,
      processes: createProcesses({ state, clock }),
      compareIntervalMs: 0,
    },
    new AbortController().signal,
  );
  return {
    clock,
    telemetry,
    store,
    storage,
    gaps,
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
