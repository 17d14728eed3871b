import { describe, expect, it } from 'vitest';
import { fill, slowPages } from '../support/worlds/jobs-fill.ts';
import { createJobsWorld, type JobsWorld } from '../support/worlds/jobs.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';

/** A worker on another machine, whose clock is an hour ahead. */
async function createLateWorker(world: JobsWorld) {
  const clock = { ...world.clock, nowMs: () => world.clock.nowMs() + 3_600_000 };
  return world.startWorker({ name: 'ahead', clock });
}

describe('an apply job', () => {
  it('waits for late events behind its floor, and then makes the index say what the bucket says', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 30, both: 10, index: 1 });
    world.startWorker();
    const requestedAtMs = world.clock.nowMs();
    const { id } = await world.request();
    await world.run(5_000);
    const waiting = await world.job(id);
    expect(waiting).toMatchObject({ state: 'running', startedAtMs: expect.any(Number) });
    // D, and W + 3 s beyond it, in microseconds
    expect(waiting?.coversBeforeMs).toBeGreaterThanOrEqual(requestedAtMs - 1_000);
    expect((await world.bucketRecord())?.floor).toBe(((waiting?.coversBeforeMs ?? 0) + 18_000) * 1_000);
    expect(await world.found()).toHaveLength(11);
    const done = await world.ended(id);
    expect(done).toMatchObject({
      state: 'done',
      counts: { listed: 40, equal: 10, missing: 30, phantom: 1, written: 30, tombstones: 1, headRequests: 1 },
      deletions: { limit: 1_000, reserved: 1 },
    });
    expect(done.comparingAtMs).toBeGreaterThanOrEqual((waiting?.coversBeforeMs ?? 0) + 60_000);
    expect(await world.found()).toEqual(world.inBucket());
    expect((await world.bucketRecord())?.lastComparedAtMs).toBe(done.finishedAtMs);
  });

  it('never lowers the floor', async () => {
    const world = await createJobsWorld();
    await updateRecord(world.state, refs.bucket('photos'), (bucket) => bucket && { ...bucket, floor: Number.MAX_SAFE_INTEGER });
    world.startWorker();
    await world.ended((await world.request()).id);
    expect((await world.bucketRecord())?.floor).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('ends its wait by S3’s clock, whatever this machine’s says', async () => {
    const world = await createJobsWorld();
    const { id } = await world.request();
    world.startWorker();
    await world.run(5_000);
    const record = await world.job(id);
    const asked = world.s3.pages.length;
    // for a worker whose clock is an hour ahead the job is due
    const late = await createLateWorker(world);
    await world.run(20_000);
    expect(await world.job(id)).toMatchObject({ state: 'running', waitUntilMs: record?.waitUntilMs });
    // each time that one of the two looks
    expect(world.s3.pages.length - asked).toBeGreaterThan(1);
    expect(world.s3.pages.length - asked).toBeLessThan(2 * 20);
    await late.stop();
  });

  it('that was asked for now neither waits nor certifies', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 5 });
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'done', counts: { written: 5 } });
    expect(done.coversBeforeMs).toBeUndefined();
    expect(await world.bucketRecord()).toMatchObject({ floor: 0 });
    expect((await world.bucketRecord())?.lastComparedAtMs).toBeUndefined();
  });

  it('of a prefix leaves everything else alone, and does not date the bucket', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 3, index: 3 }, 'a/');
    await fill(world, { bucket: 3, index: 3 }, 'b/');
    world.startWorker();
    const done = await world.ended((await world.request({ prefix: 'a/' })).id);
    expect(done).toMatchObject({ state: 'done', documentsAtStart: 3, counts: { listed: 3, tombstones: 3 } });
    expect((await world.found()).filter((key) => key.startsWith('b/'))).toEqual(['b/index-00000', 'b/index-00001', 'b/index-00002']);
    expect((await world.bucketRecord())?.lastComparedAtMs).toBeUndefined();
  });

  it('whose bucket was disconnected is cancelled', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 100 });
    slowPages(world, 10_000);
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(10_000);
    const { id: recordId } = refs.bucket('photos');
    const entry = await world.state.get(recordId);
    await world.state.remove(recordId, entry?.version ?? '');
    expect(await world.ended(id)).toMatchObject({ state: 'cancelled' });
  });
});

describe('a report', () => {
  it('counts, shows examples, estimates what it cost, and writes nothing', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 3, both: 4, index: 2 });
    const before = await world.found();
    world.startWorker();
    const { id } = await world.request({ mode: 'report' });
    await world.ended(id);
    const view = await world.jobs.get(id);
    expect(view).toMatchObject({
      state: 'done',
      counts: { missing: 3, phantom: 2, equal: 4, written: 0, tombstones: 0 },
      progress: 1,
    });
    expect(view.examples?.phantom).toEqual(['index-00000', 'index-00001'].map((key) => ({ key })));
    expect(view.cost_usd).toBeCloseTo((2 * 0.005 + 2 * 0.0004) / 1_000);
    expect(await world.found()).toEqual(before);
    expect(await world.bucketRecord()).toMatchObject({ floor: 0 });
  });

  it('runs beside an apply job of the same bucket', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 3 });
    await world.request();
    world.startWorker();
    expect(await world.ended((await world.request({ mode: 'report' })).id)).toMatchObject({ state: 'done' });
  });
});
