/** Wrong clocks of S3, of the worker that begins a job and of the process that notices a loss: none closes a gap by a job that began before the loss was noticed. */
import { describe, expect, it } from 'vitest';
import { markId } from '../../../src/domain/gaps/dirty.ts';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import { coversBefore } from '../../../src/domain/reindex/covers.ts';
import { noteIndex } from '../../../src/pipeline/buckets/index-identity.ts';
import { noteProof, openChangeGap } from '../../../src/pipeline/gaps/connection-gaps.ts';
import { createGapReports, type GapReports } from '../../../src/pipeline/gaps/reports.ts';
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import { createCheckConnection } from '../../../src/pipeline/provision/watch.ts';
import { readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { noteCompared } from '../../../src/pipeline/reindex-jobs/compared.ts';
import { createGapWorld } from '../../support/worlds/gaps.ts';

const MINUTE_MS = 60_000;
const WRONG_MS = 15 * MINUTE_MS;
const LOSS = { bucket: 'photos', kind: 'loss' } as const;

type GapWorld = Awaited<ReturnType<typeof createGapWorld>>;

function clockOf({ clock }: GapWorld, wrongMs: number): Clock {
  return { ...clock, nowMs: () => clock.nowMs() + wrongMs };
}

/** The reports of a process with this clock. */
function reportsOf(world: GapWorld, wrongMs: number): Pick<GapReports, 'report'> {
  const { state, clock, telemetry } = world;
  const reports = createGapReports({ state, clock: clockOf(world, wrongMs), telemetry });
  return {
    async report(report, signal) {
      const stored = reports.report(report, signal);
      await clock.advance(1_000);
      await stored;
    },
  };
}

/** Begins the latest job, by the clocks of S3 and its worker. */
async function begin(world: GapWorld, { s3Ms, workerMs }: { readonly s3Ms: number; readonly workerMs: number }): Promise<void> {
  const nowMs = world.clock.nowMs();
  const covers = coversBefore({ observedAtMs: nowMs + s3Ms, sentMs: nowMs + workerMs });
  await world.setJob(await world.lastJob(), { state: 'running', startedAtMs: nowMs + workerMs, coversBeforeMs: covers });
}

/** Ends the latest job. A gap that it did not close is open, or has another job. */
async function end(world: GapWorld) {
  const job = await world.lastJob();
  await world.setJob(job, { state: 'done', finishedAtMs: world.clock.nowMs() });
  await world.round();
  return { isClosed: (await world.gap()) === undefined, jobId: job?.id };
}

const errors = [-WRONG_MS, 0, WRONG_MS];
const combinations = errors.flatMap((reporterMs) => errors.flatMap((workerMs) => errors.map((s3Ms) => ({ reporterMs, workerMs, s3Ms }))));

describe('with a reporter, a worker and an S3 whose clocks are wrong by a quarter of an hour', () => {
  it.each(combinations)(
    'a loss that is noticed after a job began is closed by a later one ($reporterMs, $workerMs, $s3Ms)',
    async (wrong) => {
      const world = await createGapWorld();
      const report = async () =>
        reportsOf(world, wrong.reporterMs).report({ ...LOSS, reason: 'r', seenAtMs: world.clock.nowMs() + wrong.reporterMs });
      await report();
      await world.after(2 * WRONG_MS);
      await begin(world, wrong);
      // the longest that a slow clock makes earlier than the beginning
      await world.clock.advance(MINUTE_MS);
      await report();
      const first = await end(world);
      expect(first.isClosed).toBe(false);
      // whoever is behind, the clocks come so far
      for (let minutes = 0; minutes < 120 && (await world.gap()) !== undefined; minutes += 15) {
        await world.after(WRONG_MS);
        if ((await world.lastJob())?.state !== 'queued') continue;
        await begin(world, wrong);
        await world.clock.advance(MINUTE_MS);
        await end(world);
      }
      expect(await world.gap()).toBeUndefined();
      expect((await world.closed()).at(-1)?.jobId).not.toBe(first.jobId);
    },
  );
});

/** Each process that reports with the time of its machine. */
const reporters: readonly (readonly [string, (world: GapWorld, wrongMs: number) => Promise<unknown>])[] = [
  ['events that were lost', (world, wrongMs) => reportsOf(world, wrongMs).report({ ...LOSS, reason: 'r', seenAtMs: 0 })],
  [
    'an index that was replaced',
    async (world, wrongMs) => {
      await updateRecord(world.state, refs.bucket('photos'), (record) => record && { ...record, indexId: 'old' });
      return noteIndex(
        {
          state: world.state,
          clock: clockOf(world, wrongMs),
          gaps: reportsOf(world, wrongMs),
          objects: { identities: async () => ['new'] },
        },
        'photos',
      );
    },
  ],
  [
    'a report that found differences',
    async (world, wrongMs) => {
      const atMs = world.clock.nowMs() + wrongMs;
      const report = {
        id: 'job-r',
        bucket: 'photos',
        prefix: '',
        mode: 'report',
        requestedBy: 'p',
        state: 'running',
        createdAtMs: atMs,
      } as const;
      await noteCompared(world.state, report, { atMs, counts: { ...noCounts, missing: 1 } });
    },
  ],
  [
    'a connection that is broken',
    async (world, wrongMs) => {
      const finding = {
        severity: 'broken',
        code: 'queue.missing',
        resource: 'q',
        what: 'it is missing',
        why: 'w',
        fix: 'x',
        blocks: true,
      } as const;
      const { state, telemetry } = world;
      const checkConnection = createCheckConnection({
        state,
        telemetry,
        clock: clockOf(world, wrongMs),
        gaps: reportsOf(world, wrongMs),
        provisioning: { diagnose: async () => [finding] },
      });
      const record = await readRecord(state, refs.bucket('photos'));
      // it was in order until now
      const check = { state: 'ok' as const, atMs: 0, sinceMs: 0, findings: [], wasInOrder: true };
      if (record !== undefined) await checkConnection({ ...record, connectionCheck: check });
    },
  ],
  [
    'a connection that was changed',
    (world, wrongMs) => openChangeGap({ state: world.state, clock: clockOf(world, wrongMs) }, { bucket: 'photos', source: 'notification' }),
  ],
  [
    'the proof of a bucket’s events',
    async (world, wrongMs) => {
      await updateRecord(world.state, refs.gap(markId('photos')), (mark) => mark && { ...mark, unproven: 'events' as const });
      const record = await readRecord(world.state, refs.bucket('photos'));
      if (record !== undefined) await noteProof({ state: world.state, clock: clockOf(world, wrongMs) }, record);
    },
  ],
  [
    'the proof of a bucket whose gap knows of none that is missing',
    async (world, wrongMs) => {
      const record = await readRecord(world.state, refs.bucket('photos'));
      if (record !== undefined) await noteProof({ state: world.state, clock: clockOf(world, wrongMs) }, record);
    },
  ],
];

describe('Fix: by a process whose clock is a quarter of an hour behind', () => {
  it.each(reporters)('%s is not closed by a job that had begun', async (_, report) => {
    const world = await createGapWorld();
    await world.tell({ kind: 'loss' });
    await world.after(2 * MINUTE_MS);
    await begin(world, { s3Ms: 0, workerMs: 0 });
    await world.clock.advance(MINUTE_MS);
    await report(world, -WRONG_MS);
    expect((await end(world)).isClosed).toBe(false);
    // nor by a later look at that job
    await world.round();
    expect(await world.gap()).toBeDefined();
  });
});
