/** What the calendar reads of the state store while nothing is due, for few and for many buckets. */
import { expect, it } from 'vitest';
import { markId } from '../../src/records/dirty.ts';
import { createCloseGaps } from '../../src/repair/close-gaps.ts';
import { visitFull } from '../../src/repair/sweeps.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { createSweep } from '../../src/observing/sweep.ts';
import { createConnectionsDue, createVisitConnection } from '../../src/connect/watch.ts';
import { refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { guarded } from '../support/fakes/guarded.ts';
import { createGapWorld } from '../support/worlds/gaps.ts';

const HOUR_MS = 3_600_000;
const never = new AbortController().signal;

/** Buckets with an open gap each, which a job that has ended did not close and for which none is begun yet. */
async function startIdle(buckets: number) {
  const reads = { get: 0, list: 0 };
  const world = await createGapWorld();
  const { clock, telemetry, jobs } = world;
  const state = guarded(world.state, (method) => (reads[method as keyof typeof reads] += 1), ['get', 'list']);
  const checked: string[] = [];
  for (let at = 0; at < buckets; at += 1) {
    const bucket = `bucket-${String(at).padStart(4, '0')}`;
    await world.connect(bucket);
    const check = { state: 'ok' as const, atMs: clock.nowMs(), sinceMs: 0, findings: [] };
    await updateRecord(world.state, refs.bucket(bucket), (record) => record && { ...record, connectionCheck: check });
    await world.tell({ bucket, kind: 'loss' });
    const job = await jobs.start({ bucket, prefix: '', mode: 'apply', requestedBy: 'schedule' }, never);
    await world.finish(job, { coversBeforeMs: 0 });
    // as after jobs that failed
    const waits = { fromMs: clock.nowMs(), untilMs: clock.nowMs() + HOUR_MS, why: 'w' };
    await updateRecord(world.state, refs.gap(markId(bucket)), (mark) => mark && { ...mark, waits });
    const sweep = { jobId: job.id, atMs: clock.nowMs() };
    await updateRecord(world.state, refs.bucket(bucket), (record) => record && { ...record, sweep });
  }
  await removeRecord(world.state, 'bucket:photos');
  const startJob = () => Promise.reject(new Error('nothing is due'));
  const closeGaps = createCloseGaps({
    state,
    startJob,
    askToRepair: () => Promise.resolve({ atMs: clock.nowMs() }),
    clock,
    telemetry,
  });
  const checkConnection = (record: { readonly bucket: string }) => {
    checked.push(record.bucket);
    return Promise.resolve([]);
  };
  const processes = createProcesses({ state, clock });
  const sweepParts = { state, clock, telemetry, runMaxMs: HOUR_MS };
  const connections = createSweep(
    sweepParts,
    'connections',
    createVisitConnection({
      state,
      clock,
      telemetry,
      processes,
      connections: { removeEarlier: async () => undefined, probe: async () => undefined },
      checkConnection,
    }),
    createConnectionsDue({ clock, processes }),
  );
  const intervalMs = 604_800_000;
  const full = createSweep(sweepParts, 'full', (bucket, each) => visitFull({ state, startJob, clock, intervalMs }, bucket, each));
  async function round(): Promise<typeof reads> {
    const before = { ...reads };
    await closeGaps(never);
    await connections(never);
    await full(never);
    return { get: reads.get - before.get, list: reads.list - before.list };
  }
  return { ...world, round, checked };
}

it('at idle the calendar reads as often for 60 buckets with an open gap each as for 20', async () => {
  const [few, many] = [await startIdle(20), await startIdle(60)];
  // the first round checks what is new to this process
  for (const { round } of [few, many]) await round();
  const [ofFew, ofMany] = [await few.round(), await many.round()];
  expect(ofMany).toEqual(ofFew);
  expect(ofFew.get + ofFew.list).toBe(5);
  // a bucket that is due is read by its id, and only that one
  many.checked.length = 0;
  await updateRecord(many.state, refs.bucket('bucket-0007'), (record) => record && { ...record, connectionCheck: undefined });
  const due = await many.round();
  expect(many.checked).toEqual(['bucket-0007']);
  expect(due.get - ofMany.get).toBeLessThan(6);
});
