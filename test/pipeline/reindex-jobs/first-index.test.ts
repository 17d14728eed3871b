/** The ranges of a bucket that the index does not know yet, and records that lists show late. */
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createJobsWorld, type JobsWorld } from '../../support/worlds/jobs.ts';

const OBJECTS = 600;
const LIMITS = { rangeDocumentsMin: OBJECTS * 2, splitKeysMin: 25 };

async function bucketOf(objects: number, options: Parameters<typeof createJobsWorld>[0] = {}): Promise<JobsWorld> {
  const world = await createJobsWorld({ limits: LIMITS, ...options });
  for (let number = 0; number < objects; number += 1) await world.has(`key-${String(number).padStart(5, '0')}`, 'bucket');
  world.s3.pageSize = 50;
  world.s3.onPage = ({ objects: listed }) => world.clock.sleep(listed.length > 1 ? 500 : 20);
  return world;
}

/** Runs until the condition holds, for a minute at most. */
async function runUntil(world: JobsWorld, holds: () => Promise<boolean>): Promise<void> {
  for (let step = 0; step < 600 && !(await holds()); step += 1) await world.run(100);
  expect(await holds()).toBe(true);
}

describe('the ranges of a first index', () => {
  it('are cut by the listing before the first turn, lose no key and double none', async () => {
    const world = await bucketOf(OBJECTS);
    world.startWorker();
    const { id } = await world.request({ now: true });
    await runUntil(world, async () => (await world.ranges()).length > 0);
    await world.run(100);
    const ranges = await world.ranges();
    expect(ranges).toHaveLength(4);
    expect(ranges.map(({ from }) => from)).toEqual(['', ...ranges.slice(0, -1).map(({ to }) => to)]);
    const done = await world.ended(id);
    expect(done).toMatchObject({ state: 'done', counts: { listed: OBJECTS, missing: OBJECTS, written: OBJECTS } });
    expect(done.counts?.listRequests).toBe(world.s3.pages.length);
    expect(await world.found()).toEqual(world.inBucket());
  });

  it('begin in the process that stored the job before any list shows it', async () => {
    const world = await bucketOf(20, { listLagMs: 60_000 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(2_000);
    expect(await world.job(id)).toMatchObject({ state: 'done', counts: { written: 20 } });
  });

  it('are one if a page shows all keys, without a request more', async () => {
    const world = await bucketOf(20);
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'done', rangesCut: 1, counts: { written: 20, listRequests: 2 } });
  });

  it('are one if the listing fails while they are searched, and all is written', async () => {
    const world = await bucketOf(OBJECTS);
    world.s3.onPage = () => {
      if (world.s3.pages.length >= 3 && world.s3.pages.length < 12) throw new FaultError('s3.throttled', 'SlowDown');
    };
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'done', counts: { written: OBJECTS } });
    expect(await world.found()).toEqual(world.inBucket());
  });

  it('are not cut by the listing if the index has as many documents as a page has keys', async () => {
    const world = await bucketOf(OBJECTS);
    for (let number = 0; number < 50; number += 1) await world.has(`key-${String(number).padStart(5, '0')}`, 'both');
    world.startWorker();
    await world.request({ now: true });
    await runUntil(world, async () => (await world.ranges()).length > 0);
    expect(await world.ranges()).toHaveLength(1);
  });
});

describe('a worker whose index is slow', () => {
  const heldBy = (ranges: readonly { readonly lease?: unknown }[]): number => ranges.filter(({ lease }) => lease !== undefined).length;

  it('compares two ranges at the same time, and all of them in the end', async () => {
    const world = await bucketOf(OBJECTS);
    world.startWorker({ indexIsSlow: () => true });
    const { id } = await world.request({ now: true });
    let most = 0;
    await runUntil(world, async () => {
      const ranges = await world.ranges();
      most = Math.max(most, heldBy(ranges));
      return ranges.some(({ done }) => done);
    });
    expect(most).toBe(2);
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { written: OBJECTS } });
  });

  it('Fix: takes the next ranges once its turns have ended, before its next look is due', async () => {
    const world = await bucketOf(OBJECTS, { limits: { ...LIMITS, rangeDocumentsMin: 8 } });
    for (let number = 0; number < OBJECTS; number += 1) await world.has(`key-${String(number).padStart(5, '0')}`, 'both');
    world.startWorker({ indexIsSlow: () => true });
    await world.request({ now: true });
    const doneOnes = async () => (await world.ranges()).filter(({ done }) => done).length;
    await runUntil(world, async () => (await doneOnes()) > 2);
    // less than the time between two looks
    const before = await doneOnes();
    await world.run(1_500);
    expect((await doneOnes()) - before).toBeGreaterThan(2);
  });

  it('begins other jobs all the same, each with its first range', async () => {
    const world = await bucketOf(OBJECTS);
    world.startWorker({ indexIsSlow: () => true });
    await world.request({ now: true });
    await runUntil(world, async () => heldBy(await world.ranges()) === 2);
    const { id } = await world.request({ mode: 'report' });
    await runUntil(world, async () => (await world.job(id))?.comparingAtMs !== undefined);
    await runUntil(world, async () => heldBy(await world.rangesById(id)) === 1);
  });
});

describe('a job whose ranges are listed late', () => {
  it('is compared before they are listed by the worker that begins it', async () => {
    const world = await bucketOf(OBJECTS, { listLagMs: 30_000 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    await runUntil(world, async () => (await world.rangesById(id)).some(({ counts, done }) => done && counts.listed > 0));
    expect(await world.ranges()).toHaveLength(0);
  });

  it('ends with its last range, and counts all of them', async () => {
    const world = await bucketOf(OBJECTS, { listLagMs: 3_000, limits: { rangeDocumentsMin: 8, splitKeysMin: 4 } });
    for (let number = 0; number < OBJECTS; number += 2) await world.has(`key-${String(number).padStart(5, '0')}`, 'both');
    world.s3.pageSize = 1_000;
    // the lists show the ranges when their turns end, all within a moment, but not yet that they are done
    world.s3.onPage = () => world.clock.sleep(5_000);
    world.startWorker({ listings: 40 });
    const { id } = await world.request({ now: true });
    // before the job itself is due again, which looks at its ranges
    await world.run(40_000);
    const counts = { listed: OBJECTS, missing: OBJECTS / 2, differed: OBJECTS / 2, written: OBJECTS / 2 };
    const done = await world.job(id);
    expect(done).toMatchObject({ state: 'done', counts });
    expect(done?.rangesCut).toBeGreaterThan(20);
    expect(await world.found()).toEqual(world.inBucket());
  });

  it('keeps the counts of its ranges if it is cancelled', async () => {
    const world = await bucketOf(OBJECTS, { listLagMs: 10_000 });
    world.startWorker({ listings: 1 });
    const { id } = await world.request({ now: true });
    const doneRanges = async () => (await world.rangesById(id)).filter(({ done }) => done);
    await runUntil(world, async () => (await doneRanges()).length >= 2);
    const listed = (await doneRanges()).reduce((sum, { counts }) => sum + counts.listed, 0);
    expect(listed).toBeGreaterThan(0);
    expect((await world.jobs.cancel(id)).counts?.listed).toBe(listed);
  });

  it('is compared while its request waits until lists show it', async () => {
    const memory = createMemoryStore();
    const shown = Promise.withResolvers<void>();
    const put: StateStore['put'] = async (entry, ...rest) => {
      if (entry.kind === 'job-slot' && entry.listed !== 'soon') await shown.promise;
      return memory.state.put(entry, ...rest);
    };
    const world = await bucketOf(OBJECTS, { store: { ...memory, state: { ...memory.state, put } } });
    world.startWorker();
    const requested = world.request({ now: true });
    await runUntil(world, async () => (await world.ranges()).length > 0);
    shown.resolve();
    const { id } = await requested;
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { written: OBJECTS } });
  });
});
