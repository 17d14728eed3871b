/** Wrong clocks of S3, of the worker that begins a job and of the process that notices a loss: none closes a gap by a job that began before the loss was noticed. */
import { describe, expect, it } from 'vitest';
import { coversBefore } from '../../src/records/job.ts';
import { createGapReports, type GapReports } from '../../src/observing/gaps.ts';
import type { Clock } from '../../src/process/clock.ts';
import { createGapWorld } from '../support/worlds/gaps.ts';

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
