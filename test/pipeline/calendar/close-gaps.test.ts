import { describe, expect, it } from 'vitest';
import { bucketRecordSchema, type BucketSource } from '../../../src/domain/bucket.ts';
import { gapBudgetSchema } from '../../../src/domain/calendar/gap-budget.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { gapId, gapSchema, type GapRecord, type GapSighting } from '../../../src/domain/gap.ts';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import { jobSchema, type JobRecord } from '../../../src/domain/reindex/job.ts';
import { createCloseGaps, type StartJob } from '../../../src/pipeline/calendar/close-gaps.ts';
import { createReindexJobs } from '../../../src/pipeline/control/reindex-jobs.ts';
import { createGapReports } from '../../../src/pipeline/gap-records.ts';
import type { StateStore } from '../../../src/pipeline/ports.ts';
import { listAllRecords, readRecord, refs, removeRecord, updateRecord } from '../../../src/pipeline/state-records.ts';
import { createFakeClock, createFakeTelemetry } from '../../support/fakes.ts';
import { createMemoryStore } from '../../support/memory-store.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const never = new AbortController().signal;

interface Options {
  readonly requestsPerDay?: number;
  /** Live documents under a prefix. */
  readonly live?: Readonly<Record<string, number>>;
  readonly wrap?: (state: StateStore) => StateStore;
}

async function setUp({ requestsPerDay = 1_000, live = {}, wrap = (state) => state }: Options = {}) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const reports = createGapReports({ state, clock, telemetry });
  const wrapped = wrap(state);
  const jobs = createReindexJobs({ state: wrapped, clock, telemetry });
  let refusal: Error | undefined;
  const startJob: StartJob = (request, signal) => (refusal === undefined ? jobs.start(request, signal) : Promise.reject(refusal));
  const scan = { countLive: async (_: string, prefix: string) => (live[prefix] ?? 0) * 1_000 };
  const round = createCloseGaps({ state: wrapped, scan, startJob, clock, telemetry, requestsPerDay });
  const world = {
    state,
    clock,
    telemetry,
    jobs,
    async connect(bucket: string, source: BucketSource = 'routed') {
      const versioning = { status: 'never', observedAtMs: 0 };
      const fields = {
        bucket,
        region: 'r',
        source,
        versioning,
        enrich: 'none',
        floor: 0,
        createdAtMs: 0,
        createdBy: 'test',
        checkedAtMs: 0,
      };
      await updateRecord(state, refs.bucket(bucket), () => bucketRecordSchema.parse(fields));
    },
    /** Tells of a gap now. */
    async tell(more: Partial<GapSighting> = {}) {
      const sighting = { bucket: 'photos', kind: 'bulk-delete', reason: 'DeleteObjects', seenAtMs: clock.nowMs(), ...more } as const;
      const told = reports.report(sighting);
      await clock.advance(1_000);
      await told;
    },
    round: () => round(never),
    async after(waitMs: number) {
      await clock.advance(waitMs);
      await round(never);
    },
    gap: async (of: Pick<GapSighting, 'bucket' | 'kind' | 'prefix'> = { bucket: 'photos', kind: 'bulk-delete' }) =>
      readRecord(state, refs.gap(gapId(of))),
    allJobs: () => listAllRecords(state, 'job', jobSchema),
    async setJob(job: JobRecord | undefined, more: Partial<JobRecord>) {
      if (job === undefined) throw new Error('there is no such job');
      await updateRecord(state, refs.job(job.id), (current) => current && { ...current, ...more });
    },
    refuse: (error: Error | undefined) => {
      refusal = error;
    },
    /** The floor of the job is stored now, and it is done at once. */
    async finish(job: JobRecord | undefined, more: Partial<JobRecord> = {}) {
      await this.setJob(job, { state: 'done', coversBeforeMs: clock.nowMs(), finishedAtMs: clock.nowMs(), ...more });
    },
  };
  await world.connect('photos');
  return world;
}

type World = Awaited<ReturnType<typeof setUp>>;
const lastJob = async (world: World): Promise<JobRecord | undefined> => (await world.allJobs()).at(-1);

describe('a gap', () => {
  it('closes itself: quiet, a job of the whole bucket, done', async () => {
    const world = await setUp();
    await world.tell();
    await world.after(MINUTE_MS - 2_000);
    expect(await world.allJobs()).toEqual([]);
    await world.after(2_000);
    const [job] = await world.allJobs();
    expect(job).toMatchObject({ bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'gap', gapIds: ['gap:photos:bulk-delete'] });
    expect(await world.gap()).toMatchObject({ state: 'closing', jobId: job?.id });
    await world.setJob(job, { state: 'running', phase: 'waiting', coversBeforeMs: world.clock.nowMs() });
    await world.after(MINUTE_MS);
    expect(await world.gap()).toMatchObject({ state: 'closing' });
    await world.setJob(job, { state: 'done' });
    await world.after(15_000);
    expect(await world.gap()).toMatchObject({ state: 'closed', jobId: job?.id, closedAtMs: world.clock.nowMs() });
    expect(world.telemetry.told('gapClosed')).toHaveLength(1);
    await world.after(DAY_MS);
    expect(await world.allJobs()).toHaveLength(1);
  });

  it('that is seen again after the job’s floor is open, and closed by another job', async () => {
    const world = await setUp();
    await world.tell();
    await world.after(MINUTE_MS);
    const first = await lastJob(world);
    await world.setJob(first, { state: 'running', coversBeforeMs: world.clock.nowMs() });
    await world.clock.advance(1_000);
    await world.tell();
    await world.after(15_000);
    expect(await world.gap()).toMatchObject({ state: 'open', jobId: first?.id });
    await world.setJob(first, { state: 'done' });
    await world.after(MINUTE_MS);
    const second = await lastJob(world);
    expect(second?.id).not.toBe(first?.id);
    expect(await world.gap()).toMatchObject({ state: 'closing', jobId: second?.id });
    await world.finish(second);
    await world.round();
    expect(await world.gap()).toMatchObject({ state: 'closed', jobId: second?.id });
  });

  it('that is told without end is reconciled every ten minutes or so', async () => {
    const world = await setUp();
    for (let minutes = 0; minutes < 60; minutes += 0.5) {
      await world.tell();
      await world.after(29_000);
      const job = await lastJob(world);
      if (job?.state === 'queued') await world.finish(job);
    }
    expect((await world.allJobs()).length).toBeGreaterThanOrEqual(5);
    expect((await world.allJobs()).length).toBeLessThanOrEqual(6);
    expect((await world.gap())?.state).not.toBe('closed');
  });

  it('whose keys are told one by one waits for a day', async () => {
    const world = await setUp();
    await world.tell({ keysToldMs: world.clock.nowMs() });
    await world.after(DAY_MS - MINUTE_MS);
    expect(await world.allJobs()).toEqual([]);
    await world.after(MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(1);
  });

  it('whose job fails is tried again later and later, and says why', async () => {
    const world = await setUp();
    await world.tell();
    await world.after(MINUTE_MS);
    const error = { code: 'object.denied', reason: 'no list permission' } as const;
    const begunAfterMinutes: number[] = [];
    for (let minutes = 0; minutes < 130; minutes += 1) {
      const job = await lastJob(world);
      if (job?.state === 'queued') {
        begunAfterMinutes.push(minutes);
        await world.setJob(job, { state: 'failed', error, finishedAtMs: world.clock.nowMs() });
        await world.round();
        expect(await world.gap()).toMatchObject({
          state: 'open',
          waits: { reason: `${job.id} failed: object.denied: no list permission` },
        });
      }
      await world.after(MINUTE_MS);
    }
    expect(begunAfterMinutes).toEqual([0, 1, 3, 7, 15, 31, 63, 127]);
    expect(world.telemetry.told('gapStays')).toHaveLength(8);
  });

  it('for which no job can be begun is tried again, and says why', async () => {
    const world = await setUp();
    await world.tell();
    world.refuse(new FaultError('index.blocked', 'disk full'));
    await world.after(MINUTE_MS);
    expect(await world.gap()).toMatchObject({ state: 'open', failures: 1, waits: { reason: 'no job could be begun: disk full' } });
    world.refuse(undefined);
    await world.after(MINUTE_MS);
    expect(await world.gap()).toMatchObject({ state: 'closing' });
  });

  it('is open while its job is paused, and closing again when that goes on', async () => {
    const world = await setUp();
    await world.tell();
    await world.after(MINUTE_MS);
    const job = await lastJob(world);
    await world.setJob(job, { state: 'paused', pausedBecause: 'brake', coversBeforeMs: world.clock.nowMs() });
    await world.after(HOUR_MS);
    expect(await world.gap()).toMatchObject({ state: 'open', jobId: job?.id });
    expect(await world.allJobs()).toHaveLength(1);
    await world.setJob(job, { state: 'running' });
    await world.after(15_000);
    expect(await world.gap()).toMatchObject({ state: 'closing' });
  });

  it('whose job was cancelled is open, and tried again', async () => {
    const world = await setUp();
    await world.tell();
    await world.after(MINUTE_MS);
    await world.jobs.cancel((await lastJob(world))?.id ?? '');
    await world.round();
    expect(await world.gap()).toMatchObject({ state: 'open', failures: 1 });
    await world.after(MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(2);
  });

  it('of a bucket that is disconnected goes away, with the bucket’s budget', async () => {
    const world = await setUp();
    await world.tell();
    await world.after(MINUTE_MS);
    expect(await listAllRecords(world.state, 'quota', gapBudgetSchema)).toHaveLength(1);
    await removeRecord(world.state, refs.bucket('photos').id);
    await world.round();
    expect(await world.gap()).toBeUndefined();
    expect(await listAllRecords(world.state, 'quota', gapBudgetSchema)).toEqual([]);
  });
});

describe('the gaps of one bucket', () => {
  it('are closed by one job', async () => {
    const world = await setUp();
    await world.tell();
    await world.tell({ kind: 'loss' });
    await world.tell({ kind: 'lifecycle', prefix: 'logs/' });
    await world.after(MINUTE_MS);
    const jobs = await world.allJobs();
    expect(jobs).toHaveLength(1);
    expect(jobs[0]?.gapIds).toHaveLength(3);
    await world.finish(jobs[0]);
    await world.round();
    const gaps = await listAllRecords(world.state, 'gap', gapSchema);
    expect(gaps.map(({ state }) => state)).toEqual(['closed', 'closed', 'closed']);
  });

  it('with a prefix are reconciled under it, and those of others follow', async () => {
    const world = await setUp({ live: { '': 900, 'a/': 3, 'b/': 4 } });
    await world.tell({ kind: 'lifecycle', prefix: 'a/' });
    await world.tell({ kind: 'lifecycle', prefix: 'b/' });
    await world.after(MINUTE_MS);
    expect((await world.allJobs()).map(({ prefix }) => prefix)).toEqual(['a/']);
    const waiting = await world.gap({ bucket: 'photos', kind: 'lifecycle', prefix: 'b/' });
    expect(waiting).toMatchObject({ state: 'open' });
    await world.finish(await lastJob(world));
    await world.after(15_000);
    expect((await world.allJobs()).map(({ prefix }) => prefix)).toEqual(['a/', 'b/']);
  });

  it('wait for a job that somebody else asked for, and are closed by it where it covers them', async () => {
    const world = await setUp();
    await world.tell();
    const { id } = await world.jobs.request({ bucket: 'photos' }, 'http');
    await world.after(MINUTE_MS);
    expect(await world.gap()).toMatchObject({ state: 'closing', jobId: id });
    await world.finish(await lastJob(world));
    await world.round();
    expect(await world.gap()).toMatchObject({ state: 'closed', jobId: id });
    expect(await listAllRecords(world.state, 'quota', gapBudgetSchema)).toEqual([]);
  });

  it('wait for a job that does not cover them, and then have their own', async () => {
    const world = await setUp();
    await world.tell();
    const { id } = await world.jobs.request({ bucket: 'photos', prefix: 'a/' }, 'http');
    await world.after(MINUTE_MS);
    expect(await world.gap()).toMatchObject({ state: 'open', waits: { reason: `${id} of this bucket runs first` } });
    await world.finish(await lastJob(world));
    await world.after(15_000);
    expect((await lastJob(world))?.requestedBy).toBe('gap');
    expect(await world.gap()).toMatchObject({ state: 'closing' });
  });

  it('are closed though those of another bucket cannot be', async () => {
    const world = await setUp({
      wrap: (state) => ({
        ...state,
        get: (id, signal) =>
          id === 'job-slot:broken' ? Promise.reject(new FaultError('index.state-missing', 'odd')) : state.get(id, signal),
      }),
    });
    await world.connect('broken');
    await world.tell({ bucket: 'broken' });
    await world.tell();
    await world.after(MINUTE_MS);
    expect(await world.gap()).toMatchObject({ state: 'closing' });
    expect(world.telemetry.told('requestFailed')).toEqual([['close the gaps of a bucket', 'index.state-missing', 'odd']]);
  });
});

describe('the budget', () => {
  it('of a bucket that is spent keeps its gaps open, which say until when', async () => {
    const world = await setUp({ requestsPerDay: 100, live: { '': 79 } });
    await world.tell();
    await world.after(MINUTE_MS);
    await world.finish(await lastJob(world), { counts: { ...noCounts, listRequests: 90 } });
    await world.round();
    expect(await world.gap()).toMatchObject({ state: 'closed' });
    await world.clock.advance(MINUTE_MS);
    await world.tell();
    await world.after(MINUTE_MS);
    const held = await world.gap();
    expect(held).toMatchObject({ state: 'open', waits: { reason: 'its list requests of the day are spent (90 of 100)' } });
    const untilMs = held?.waits?.untilMs ?? 0;
    expect(untilMs - world.clock.nowMs()).toBeGreaterThan(23 * HOUR_MS);
    await world.after(untilMs - world.clock.nowMs() - MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(1);
    await world.after(5 * MINUTE_MS + MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(2);
  });

  it('counts what jobs really used: one that was cheaper than expected leaves the more', async () => {
    const world = await setUp({ requestsPerDay: 100, live: { '': 79 } });
    await world.tell();
    await world.after(MINUTE_MS);
    await world.finish(await lastJob(world), { counts: { ...noCounts, listRequests: 20 } });
    await world.round();
    await world.clock.advance(MINUTE_MS);
    await world.tell();
    await world.after(MINUTE_MS);
    expect(await world.allJobs()).toHaveLength(2);
  });

  it('that does not reach for the whole bucket is spent on gaps with a prefix', async () => {
    const world = await setUp({ requestsPerDay: 100, live: { '': 79, 'a/': 5 } });
    await world.tell();
    await world.after(MINUTE_MS);
    await world.finish(await lastJob(world), { counts: { ...noCounts, listRequests: 80 } });
    await world.round();
    await world.clock.advance(MINUTE_MS);
    await world.tell();
    await world.tell({ kind: 'lifecycle', prefix: 'a/' });
    await world.after(MINUTE_MS);
    expect((await world.allJobs()).map(({ prefix }) => prefix)).toEqual(['', 'a/']);
    expect((await world.gap())?.state).toBe('open');
  });

  it('of 0 leaves gaps to people', async () => {
    const world = await setUp({ requestsPerDay: 0 });
    await world.tell();
    await world.after(DAY_MS);
    expect(await world.allJobs()).toEqual([]);
    expect((await world.gap())?.waits?.reason).toContain('TALLY_GAPS_LIST_REQUESTS_PER_DAY is 0');
    const { id } = await world.jobs.request({ bucket: 'photos' }, 'http');
    await world.finish(await lastJob(world));
    await world.after(DAY_MS);
    expect(await world.gap()).toMatchObject({ state: 'closed', jobId: id });
  });
});

describe('a worker that dies between any two of its writes', () => {
  async function runWithDeathAt(write: number) {
    let writes = 0;
    const world = await setUp({
      wrap: (state) => ({
        ...state,
        put: (entry, expected, signal) => {
          writes += 1;
          // what was sent may be stored: dead before it, or after it
          if (writes === write) return Promise.reject(new FaultError('index.unreachable', 'killed before the write'));
          if (writes === -write) return state.put(entry, expected, signal).then(() => Promise.reject(new Error('killed after the write')));
          return state.put(entry, expected, signal);
        },
      }),
    });
    await world.tell();
    await world.tell({ kind: 'loss' });
    for (let minutes = 0; minutes < 10; minutes += 1) {
      await world.after(MINUTE_MS).catch(() => undefined);
      // one that the slot does not name never runs
      const slot = await readRecord(world.state, refs.jobSlot('photos'));
      const running = (await world.allJobs()).filter(({ id, state }) => state === 'queued' && id === slot?.jobId);
      // a job runs for a minute or two
      if (minutes % 2 === 1) for (const job of running) await world.finish(job, { counts: { ...noCounts, listRequests: 7 } });
    }
    return { world, writes };
  }

  it('loses no gap, and counts what each job cost once', async () => {
    const { writes } = await runWithDeathAt(Infinity);
    expect(writes).toBeGreaterThan(5);
    for (let write = 1; write <= writes; write += 1) {
      for (const at of [write, -write]) {
        const { world } = await runWithDeathAt(at);
        const gaps: readonly GapRecord[] = await listAllRecords(world.state, 'gap', gapSchema);
        expect({ at, states: gaps.map(({ state }) => state) }).toEqual({ at, states: ['closed', 'closed'] });
        const [budget] = await listAllRecords(world.state, 'quota', gapBudgetSchema);
        expect({ at, running: budget?.running }).toEqual({ at, running: [] });
        expect(budget?.spent.reduce((sum, { requests }) => sum + requests, 0)).toBe(
          7 * (await world.allJobs()).filter(({ state }) => state === 'done').length,
        );
      }
    }
  });
});
