/** Work of the calendar that goes bucket by bucket: what hangs does not delay its neighbours. */
import { expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { watchState } from '../../src/registry/bucket-watch.ts';
import { closeGapsOf } from '../support/worlds/gaps.ts';
import { createSchedules } from '../../src/repair/schedules.ts';
import { createSweep } from '../../src/observing/sweep.ts';
import { createReindexJobs } from '../../src/repair/job-requests.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock, createFakeTelemetry, type FakeClock } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { settled } from '../support/worlds/ingest.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** After all others in the order of names. */
const HEALTHY = 'photos-healthy';

/** 300 buckets of a region that hangs, and one of another region, or of the same. */
async function setUp(healthyRegion: string, autoAdvance = false) {
  const { state, scan } = createMemoryStore();
  const clock = createFakeClock({ autoAdvance });
  const telemetry = createFakeTelemetry();
  const names = [...Array.from({ length: 300 }, (_, count) => `hangs-${count}`), HEALTHY];
  for (const bucket of names) {
    const region = bucket === HEALTHY ? healthyRegion : 'us-east-1';
    await updateRecord(state, refs.bucket(bucket), () => recordOf(bucket, { region, source: 'routed' }));
  }
  return { state, scan, clock, telemetry, names };
}

async function passed(clock: FakeClock, forMs: number, stepMs: number): Promise<void> {
  for (let doneMs = 0; doneMs < forMs; doneMs += stepMs) {
    await clock.advance(stepMs);
    await settled();
  }
}

it('Fix: the gap of a bucket gets its job in time while 300 buckets hang', async () => {
  const { state, clock, telemetry, names } = await setUp('us-east-1');
  const gaps = createGapReports({ state, clock, telemetry });
  const jobs = createReindexJobs({ state, clock, telemetry });
  const begunAtMs: number[] = [];
  const closeGaps = closeGapsOf(
    { state, clock, telemetry, jobs },
    {
      startJob: (request, signal) => {
        if (request.bucket === HEALTHY) begunAtMs.push(clock.nowMs());
        return jobs.start(request, signal);
      },
      askToRepair: async ({ bucket }, _prefix, signal) => {
        if (bucket === HEALTHY) return { atMs: clock.nowMs() };
        await clock.sleep(10 * SECOND_MS, signal);
        return { code: 's3.unavailable', reason: 'no answer within 10 s' };
      },
    },
  );
  const stop = new AbortController();
  const seenAtMs = clock.nowMs();
  const told = Promise.all(names.map((bucket) => gaps.report({ bucket, kind: 'loss', reason: 'x', seenAtMs })));
  await passed(clock, 10 * SECOND_MS, SECOND_MS / 2);
  await told;
  const dueAtMs = clock.nowMs() + MINUTE_MS;
  createSchedules({ state, clock, telemetry }).every(
    { name: 'close-gaps', intervalMs: 15 * SECOND_MS, runMaxMs: 2 * MINUTE_MS },
    closeGaps,
    stop.signal,
  );
  for (let count = 0; count < 15 * 60 && begunAtMs.length === 0; count += 1) await passed(clock, SECOND_MS, SECOND_MS);
  stop.abort(new Error('over'));
  expect((begunAtMs[0] ?? Infinity) - dueAtMs).toBeLessThan(10 * MINUTE_MS);
});

it('Fix: a sweep visits the buckets of a region that does not answer last, and each run asks that region again', async () => {
  const { state, clock, telemetry } = await setUp('eu-central-1', true);
  const visited: string[] = [];
  let hangs = true;
  const sweep = createSweep({ state, clock, telemetry, runMaxMs: 3 * MINUTE_MS, random: () => 0 }, 'unsettled', async ({ bucket }) => {
    visited.push(bucket);
    if (bucket === HEALTHY || !hangs) return 1;
    await clock.sleep(20 * SECOND_MS);
    throw new FaultError('s3.unavailable', 'no answer');
  });
  await sweep(new AbortController().signal);
  expect(visited.indexOf(HEALTHY)).toBe(3);
  hangs = false;
  for (let run = 0; run < 2; run += 1) await sweep(new AbortController().signal);
  expect(new Set(visited).size).toBe(301);
});

it('Fix: region and versioning of a bucket are read each day though 300 others hang', async () => {
  const { state, clock, telemetry } = await setUp('eu-central-1');
  const checked: string[] = [];
  const stop = new AbortController();
  const connect = {
    async refresh(bucket: string) {
      if (bucket !== HEALTHY) await clock.sleep(40 * SECOND_MS);
      checked.push(bucket);
      return undefined;
    },
  };
  watchState({ state, clock, telemetry, connect, processes: createProcesses({ state, clock }), compareIntervalMs: 0 }, stop.signal);
  await passed(clock, 25 * MINUTE_MS, 20 * SECOND_MS);
  stop.abort(new Error('over'));
  expect(checked).toContain(HEALTHY);
});
