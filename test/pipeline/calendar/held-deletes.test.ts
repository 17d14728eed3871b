/** Deletions that wait for a person, in the whole machinery of jobs and gaps: nothing but that person's consent deletes them, and nothing hides them. */
import { describe, expect, it } from 'vitest';
import { markSchema, type GapReport } from '../../../src/domain/gaps/dirty.ts';
import { closeGapsOf } from '../../support/worlds/gaps.ts';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { listAllRecords, readRecord, refs } from '../../../src/pipeline/records/stored.ts';
import { BUCKET } from '../../support/worlds/ingest.ts';
import { fill, slowPages } from '../../support/worlds/jobs-fill.ts';
import { createJobsWorld } from '../../support/worlds/jobs.ts';

const MINUTE_MS = 60_000;
const never = new AbortController().signal;

/** A bucket of five objects and `index` documents without one, of which the deletion limit of a job deletes a thousand. */
async function createWorld(index = 1_205) {
  const world = await createJobsWorld();
  const { state, clock, telemetry } = world;
  await fill(world, { both: 5, index });
  const reports = createGapReports({ state, clock, telemetry });
  const closeGaps = closeGapsOf(world);
  world.startWorker();

  /** Lets the calendar work for this long. */
  async function calm(forMs: number): Promise<void> {
    for (let doneMs = 0; doneMs < forMs; doneMs += 15_000) {
      await world.during(closeGaps(never));
      await world.run(15_000);
    }
    await world.during(closeGaps(never));
  }

  return {
    ...world,
    calm,
    async tell(kind: GapReport['kind'], more: Partial<GapReport> = {}) {
      await world.during(reports.report({ bucket: BUCKET, kind, reason: 'test', seenAtMs: clock.nowMs(), ...more }));
    },
    gaps: () => listAllRecords(state, 'gap', markSchema),
    /** How many deletions wait for a person, by prefix. */
    waiting: async () => ((await readRecord(state, refs.bucket(BUCKET)))?.waiting ?? []).map(({ prefix, count }) => [prefix, count]),
    lastJob: async () => (await world.allJobs()).at(-1),
    left: async () => (await world.found()).length - 5,
  };
}

/** A loss gap whose job has deleted a thousand and holds 205 back. */
async function createHeldWorld() {
  const world = await createWorld();
  await world.tell('loss');
  await world.calm(5 * MINUTE_MS);
  expect(await world.gaps()).toEqual([]);
  expect(await world.waiting()).toEqual([['', 205]]);
  expect(await world.left()).toBe(205);
  return world;
}

describe('deletions that wait for a person', () => {
  it('wait in the job of a bulk delete that names no keys, which closes its own gap and adds to what waits', async () => {
    const world = await createHeldWorld();
    // the keys of the bulk delete
    await fill(world, { index: 1_100 }, 'bulk/');
    expect(await world.left()).toBe(1_305);
    await world.tell('bulk-delete');
    await world.calm(5 * MINUTE_MS);
    expect(await world.lastJob()).toMatchObject({ state: 'done', counts: { tombstones: 0, held: 1_305 } });
    expect(await world.gaps()).toEqual([]);
    expect(await world.waiting()).toEqual([['', 1_305]]);
    expect(await world.left()).toBe(1_305);
  });

  it('wait in the jobs of every kind of gap, also of a key', async () => {
    const world = await createHeldWorld();
    for (const [kind, more] of [
      ['loss', {}],
      ['lifecycle', {}],
      ['handed-over', { tags: true }],
      ['handed-over-deletes', { key: 'index' }],
    ] as const) {
      await world.tell(kind, more);
      await world.calm(5 * MINUTE_MS);
      expect(await world.gaps()).toEqual([]);
      expect(await world.left()).toBe(205);
    }
    expect(await world.waiting()).toContainEqual(['', 205]);
  });

  it('wait in a scheduled sweep, and in a re-index by a person without the flag, with and without the wait', async () => {
    const world = await createHeldWorld();
    // as the weekly sweep starts it
    const sweep = await world.jobs.start({ bucket: BUCKET, prefix: '', mode: 'apply', requestedBy: 'schedule' });
    expect(await world.ended(sweep.id)).toMatchObject({
      state: 'paused',
      pausedBecause: 'deletion-limit',
      deletions: { limit: 0, waiting: 205 },
    });
    for (const now of [true, false]) {
      const { id } = await world.request({ now });
      expect(await world.ended(id)).toMatchObject({
        state: 'paused',
        pausedBecause: 'deletion-limit',
        deletions: { limit: 0, waiting: 205 },
      });
      expect(await world.left()).toBe(205);
    }
  });

  it('wait in a job that was paused before they were held back, and is resumed', async () => {
    for (const isAnnounced of [false, true]) {
      const world = await createWorld();
      if (isAnnounced) await world.tell('bulk-delete');
      const own = { bucket: BUCKET, prefix: '', mode: 'apply', requestedBy: 'gap' } as const;
      const { id } = await world.jobs.start(own);
      slowPages(world, 20_000);
      while ((await world.job(id))?.phase !== 'comparing') await world.run(100);
      await world.jobs.pause(id);
      world.s3.onPage = async () => {};
      expect(await world.left()).toBe(1_205);
      const other = await world.request({ now: true });
      expect(await world.ended(other.id)).toMatchObject({ state: 'paused', deletions: { waiting: 205 } });
      await world.jobs.cancel(other.id);
      await world.jobs.resume(id, {});
      expect(await world.ended(id)).toMatchObject({ state: 'paused', pausedBecause: 'deletion-limit' });
      expect(await world.left()).toBe(205);
    }
  });

  it('are deleted when a person allows it, no more than that', async () => {
    const world = await createHeldWorld();
    const first = await world.request({ allow_deletes: 100 });
    expect(await world.ended(first.id)).toMatchObject({ state: 'paused', deletions: { limit: 100, waiting: 105 } });
    await world.calm(MINUTE_MS);
    expect(await world.waiting()).toEqual([['', 105]]);
    expect(await world.left()).toBe(105);
    await world.jobs.resume(first.id, { allow_deletes: 205 });
    expect(await world.ended(first.id)).toMatchObject({ state: 'done', counts: { held: 0 } });
    await world.calm(MINUTE_MS);
    expect(await world.gaps()).toEqual([]);
    expect(await world.waiting()).toEqual([]);
    expect(await world.left()).toBe(0);
  });

  it('are forgotten when their objects are back', async () => {
    const world = await createHeldWorld();
    for (const key of await world.found()) await world.has(key, 'both');
    await world.tell('loss');
    await world.calm(5 * MINUTE_MS);
    expect(await world.waiting()).toEqual([]);
    expect(await world.left()).toBe(205);
  });
});

describe('a person’s job that its deletion limit stops', () => {
  it('leaves their number on the record of the bucket, before it is paused and after it is cancelled', async () => {
    const world = await createWorld();
    const { id } = await world.request({ now: true });
    expect(await world.ended(id)).toMatchObject({ state: 'paused', deletions: { reserved: 1_000, waiting: 205 } });
    expect(await world.waiting()).toEqual([['', 205]]);
    await world.jobs.cancel(id);
    await world.calm(10 * MINUTE_MS);
    expect(await world.waiting()).toEqual([['', 205]]);
    expect(await world.left()).toBe(205);
  });

  it('leaves the same when it is cancelled or fails before all is compared, but never less than was known', async () => {
    const world = await createWorld(2_205);
    await world.tell('loss');
    await world.calm(5 * MINUTE_MS);
    expect(await world.waiting()).toEqual([['', 1_205]]);
    const { id } = await world.request({ now: true });
    while (((await world.jobs.get(id)).counts?.held ?? 0) === 0) await world.run(100);
    await world.jobs.cancel(id);
    expect(await world.waiting()).toEqual([['', 1_205]]);
  });
});

describe('an honest bulk delete of thousands', () => {
  it('is repaired without a person where nothing waits', async () => {
    const world = await createWorld(5_000);
    await world.tell('bulk-delete');
    await world.calm(5 * MINUTE_MS);
    expect(await world.gaps()).toEqual([]);
    expect(await world.waiting()).toEqual([]);
    expect(await world.left()).toBe(0);
  });
});
