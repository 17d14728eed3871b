import { expect, it } from 'vitest';
import { markId } from '../../src/records/dirty.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { createConnectBucket } from '../../src/connect/connect.ts';
import { removeRecord } from '../../src/store/stored.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { watchState } from '../../src/registry/bucket-watch.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { settled } from '../support/worlds/ingest.ts';

it('the watch of the records counts what gaps are open, and how old the oldest is, every 15 s', async () => {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const { state, objects } = createMemoryStore();
  const storage = createFakeStorage(clock);
  const gaps = createGapReports({ state, clock, telemetry });
  const connect = createConnectBucket({ state, objects, storage, gaps, clock, telemetry });
  for (const bucket of ['aaa', 'bbb']) {
    storage.createBucket(bucket);
    await connect.connect({ bucket }, 'test');
    // as after its first re-index
    await removeRecord(state, markId(bucket));
  }
  const parts = { state, clock, telemetry, connect, processes: createProcesses({ state, clock }), compareIntervalMs: 0 };
  watchState(parts, new AbortController().signal);
  const shown = () => (['tally_gaps_open', 'tally_gaps_oldest_age_seconds'] as const).map((name) => telemetry.values(name).at(-1));
  const report = { bucket: 'aaa', kind: 'bulk-delete', reason: 'r', seenAtMs: 1 } as const;
  await gaps.report(report);
  await gaps.report({ ...report, key: 'k' });
  await gaps.report({ ...report, bucket: 'bbb', seenAtMs: 5 });
  await clock.advance(15_000);
  await settled();
  expect(shown()).toEqual([3, (clock.nowMs() - 1) / 1_000]);
  for (const id of [markId('aaa'), markId('aaa', 'k')]) await removeRecord(state, id);
  await clock.advance(15_000);
  await settled();
  expect(shown()).toEqual([1, (clock.nowMs() - 5) / 1_000]);
  expect(telemetry.recorded('setCounts').findLast(([name]) => name === 'tally_jobs')?.[1]).toEqual([]);
});
