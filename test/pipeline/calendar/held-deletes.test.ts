/** Deletions that wait for a person, in the whole machinery of jobs and gaps: nothing but that person's consent deletes them, and nothing hides them. */
import { describe, expect, it } from 'vitest';
import type { GapReport } from '../../../src/domain/gaps/gap.ts';
import { gapSchema } from '../../../src/domain/gaps/gap.ts';
import { heldGapId } from '../../../src/domain/gaps/held-deletes.ts';
import { closeGapsOf } from '../../support/worlds/gaps.ts';
import { openNeverCompared } from '../../../src/pipeline/gaps/connection-gaps.ts';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
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
    /** Every gap that is not closed, the number that it holds, and its prefix. */
    async open() {
      const gaps = await listAllRecords(state, 'gap', gapSchema);
      return gaps
        .filter((gap) => gap.state !== 'closed')
        .map(({ kind, heldDeletes, prefix }) => [kind, heldDeletes, ...(prefix === undefined ? [] : [prefix])]);
    },
    held: () => readRecord(state, refs.gap(heldGapId({ bucket: BUCKET, prefix: '' }))),
    lastJob: async () => (await world.allJobs()).at(-1),
    left: async () => (await world.found()).length - 5,
  };
}

/** A loss gap whose job has deleted a thousand and holds 205 back. */
async function createHeldWorld() {
  const world = await createWorld();
  await world.tell('loss');
  await world.calm(5 * MINUTE_MS);
  expect(await world.open()).toEqual([['held-deletes', 205]]);
  expect(await world.left()).toBe(205);
  return world;
}

describe('deletions that wait for a person', () => {
  it('wait in the job of a bulk delete that names no keys, which closes its own gap and adds to what waits', async () => {
    const world = await createHeldWorld();
    // the keys of the bulk delete
    await fill(world, { index: 1_100 }, 'bulk/');
    expect(await world.left()).toBe(1_305);
    await world.tell('bulk-delete', { calls: [{ isReported: false }] });
    await world.calm(5 * MINUTE_MS);
    expect(await world.lastJob()).toMatchObject({ state: 'done', counts: { tombstones: 0, held: 1_305 } });
    expect(await world.open()).toEqual([['held-deletes', 1_305]]);
    expect(await world.left()).toBe(1_305);
  });

  it('wait in the jobs of every kind of gap, also of a prefix, and in their own', async () => {
    const world = await createHeldWorld();
    for (const [kind, more] of [
      ['loss', {}],
      ['lifecycle', {}],
      ['loss', { tags: true, folded: true }],
      ['lifecycle', { prefix: 'index' }],
    ] as const) {
      await world.tell(kind, more);
      await world.calm(5 * MINUTE_MS);
      expect(await world.left()).toBe(205);
    }
    const jobs = (await world.allJobs()).length;
    // its own look, as six hours later
    await updateRecord(world.state, refs.gap(heldGapId({ bucket: BUCKET, prefix: '' })), (gap) => gap && { ...gap, notBeforeMs: 0 });
    await world.calm(5 * MINUTE_MS);
    expect((await world.allJobs()).length).toBeGreaterThan(jobs);
    expect(await world.left()).toBe(205);
    expect(await world.open()).toContainEqual(['held-deletes', 205]);
  });

  it('wait in a scheduled sweep, and in a re-index by a person without the flag, with and without the wait', async () => {
    const world = await createHeldWorld();
    // as the weekly sweep starts it
    const sweep = await world.jobs.start({ bucket: BUCKET, prefix: '', mode: 'apply', requestedBy: 'schedule', gapIds: [] });
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
    for (const gap of [[], ['gap:photos:bulk-delete']]) {
      const world = await createWorld();
      if (gap.length > 0) await world.tell('bulk-delete');
      const own = { bucket: BUCKET, prefix: '', mode: 'apply', requestedBy: 'gap', gapIds: gap } as const;
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

  it('are deleted when a person allows it, no more than that, and their gap is closed', async () => {
    const world = await createHeldWorld();
    const first = await world.request({ allow_deletes: 100 });
    expect(await world.ended(first.id)).toMatchObject({ state: 'paused', deletions: { limit: 100, waiting: 105 } });
    await world.calm(MINUTE_MS);
    expect(await world.held()).toMatchObject({ state: 'open', heldDeletes: 105 });
    expect(await world.left()).toBe(105);
    await world.jobs.resume(first.id, { allow_deletes: 205 });
    expect(await world.ended(first.id)).toMatchObject({ state: 'done', counts: { held: 0 } });
    await world.calm(MINUTE_MS);
    expect(await world.open()).toEqual([]);
    expect(await world.left()).toBe(0);
  });

  it('are forgotten when their objects are back', async () => {
    const world = await createHeldWorld();
    for (const key of await world.found()) await world.has(key, 'both');
    await world.tell('loss');
    await world.calm(5 * MINUTE_MS);
    expect(await world.open()).toEqual([]);
    expect(await world.left()).toBe(205);
  });

  it('wait although their bucket is connected again, if its documents stayed', async () => {
    const world = await createHeldWorld();
    const first = { bucket: BUCKET, seenAtMs: world.clock.nowMs(), afterBeginOrder: 0, isHeld: false, enrich: 'none' } as const;
    await openNeverCompared(world, first, 'before');
    await world.calm(30 * MINUTE_MS);
    expect(await world.left()).toBe(205);
    expect((await world.open()).map(([kind]) => kind)).toContain('held-deletes');
  });
});

describe('a person’s job that its deletion limit stops', () => {
  it('has an open gap that names the number and what to run, before it is paused and after it is cancelled', async () => {
    const world = await createWorld();
    const { id } = await world.request({ now: true });
    expect(await world.ended(id)).toMatchObject({ state: 'paused', deletions: { reserved: 1_000, waiting: 205 } });
    const reason = expect.stringMatching(
      new RegExp(`^${id} (?:deleted 1000 documents and )?held back 205 deletions, more than its deletion limit allows$`),
    );
    const held = { state: 'open', heldDeletes: 205, reason };
    expect(await world.held()).toMatchObject({
      ...held,
      waits: { reason: expect.stringContaining(`\`tally jobs resume ${id} --allow-deletes 1205\``) },
    });
    await world.jobs.cancel(id);
    expect(await world.held()).toMatchObject({
      ...held,
      waits: { reason: expect.stringContaining('`tally reindex photos --allow-deletes 205`') },
    });
    await world.calm(10 * MINUTE_MS);
    expect(await world.open()).toEqual([['held-deletes', 205]]);
    expect(await world.left()).toBe(205);
  });

  it('leaves the same when it is cancelled or fails before all is compared, but never less than was known', async () => {
    const world = await createWorld(2_205);
    await world.tell('loss');
    await world.calm(5 * MINUTE_MS);
    expect(await world.held()).toMatchObject({ heldDeletes: 1_205 });
    const { id } = await world.request({ now: true });
    while (((await world.jobs.get(id)).counts?.held ?? 0) === 0) await world.run(100);
    await world.jobs.cancel(id);
    expect(await world.held()).toMatchObject({ state: 'open', heldDeletes: 1_205 });
  });

  it('of an empty bucket leaves a gap that says so', async () => {
    const world = await createJobsWorld();
    await fill(world, { index: 3 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.ended(id);
    await world.jobs.cancel(id);
    const held = await readRecord(world.state, refs.gap(heldGapId({ bucket: BUCKET, prefix: '' })));
    expect(held).toMatchObject({ state: 'open', heldDeletes: 3, reason: `${id} held back 3 deletions, because the bucket is empty` });
  });
});

describe('an honest bulk delete of thousands', () => {
  it('is repaired without a person where nothing waits', async () => {
    const world = await createWorld(5_000);
    await world.tell('bulk-delete', { calls: [{ isReported: false }] });
    await world.calm(5 * MINUTE_MS);
    expect(await world.open()).toEqual([]);
    expect(await world.left()).toBe(0);
  });

  it('is repaired beside deletions of another prefix that wait', async () => {
    const world = await createWorld(40);
    for (let number = 0; number < 1_205; number += 1) await world.has(`zoo/${String(number).padStart(4, '0')}`, 'index');
    const { id } = await world.request({ prefix: 'zoo/' });
    await world.ended(id);
    await world.jobs.cancel(id);
    expect(await world.open()).toEqual([['held-deletes', 205, 'zoo/']]);
    await world.tell('bulk-delete', { prefix: 'index' });
    await world.calm(5 * MINUTE_MS);
    expect(await world.open()).toEqual([['held-deletes', 205, 'zoo/']]);
    expect(await world.left()).toBe(205);
  });
});
