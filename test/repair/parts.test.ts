/** The parts of a job: how its keys are cut, first and while they are compared. */
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';

const OBJECTS = 600;

async function bucketOf(objects: number, where: 'bucket' | 'both' = 'bucket') {
  const world = await createJobsWorld({ cutKeysMin: 25 });
  await world.hasMany({ [where]: objects });
  world.s3.pageSize = 50;
  world.s3.onPage = ({ objects: listed }) => world.clock.sleep(listed.length > 1 ? 500 : 20);
  return world;
}

describe('the parts of a first index', () => {
  it('are one if a page shows all keys, without a request more', async () => {
    const world = await bucketOf(20);
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'done', counts: { written: 20, list_requests: 2 } });
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
});

describe('the parts of a job', () => {
  const ALL = { listed: OBJECTS, equal: OBJECTS, scanned: OBJECTS };

  it.each(['bucket', 'both'] as const)('are cut while a slot is free, lose no key and double none (objects in %s)', async (where) => {
    const world = await bucketOf(OBJECTS, where);
    world.s3.pageSize = 10;
    world.startWorker({ listings: 5 });
    const { id } = await world.request({ now: true });
    const { comparingAtMs = 0, finishedAtMs = Infinity, ...done } = await world.ended(id);
    expect(done).toMatchObject({ state: 'done', counts: where === 'both' ? ALL : { listed: OBJECTS, missing: OBJECTS, written: OBJECTS } });
    // half a minute of listing by one alone
    expect(finishedAtMs - comparingAtMs).toBeLessThan(15_000);
    expect(done.counts?.list_requests).toBe(world.s3.pages.length);
    expect(await world.found()).toEqual(world.inBucket());
  });

  it('cost no more for each object when there are ten times as many', async () => {
    const costs: { readonly pages: number; readonly puts: number }[] = [];
    for (const objects of [OBJECTS, 10 * OBJECTS]) {
      const world = await bucketOf(objects);
      let puts = 0;
      world.startWorker({ tap: (call, moment) => void (moment === 'after' && call.startsWith('put') && (puts += 1)) });
      const done = await world.ended((await world.request({ now: true })).id);
      expect(done).toMatchObject({ state: 'done', counts: { listed: objects, written: objects } });
      costs.push({ pages: world.s3.pages.length / objects, puts: puts / objects });
    }
    const [small, large] = costs;
    expect(large?.pages).toBeLessThanOrEqual(1.2 * (small?.pages ?? 0));
    expect(large?.puts).toBeLessThanOrEqual(1.2 * (small?.puts ?? 0));
  });

  it('are two at the same time while the index is slow, and other jobs begin all the same', async () => {
    const world = await bucketOf(OBJECTS);
    let [turning, most] = [0, 0];
    world.s3.onPage = async ({ objects }) => {
      if (objects.length < 2) return;
      turning += 1;
      most = Math.max(most, turning);
      await world.clock.sleep(5_000);
      turning -= 1;
    };
    world.startWorker({ indexIsSlow: () => true });
    const { id } = await world.request({ now: true });
    await world.run(10_000);
    // each turn asks for one page ahead
    expect(most).toBeLessThanOrEqual(4);
    const report = await world.request({ mode: 'report' });
    while (((await world.job(report.id))?.counts?.listed ?? 0) === 0) await world.run(100);
    expect((await world.job(id))?.state).toBe('running');
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { written: OBJECTS } });
  });
});

describe('a stop', () => {
  it('ends the turns at their next page and gives the job back, so that the next process goes on at once', async () => {
    const world = await bucketOf(OBJECTS, 'both');
    world.s3.pageSize = 10;
    const first = world.startWorker({ name: 'first' });
    const { id } = await world.request({ now: true });
    await world.run(5_000);
    const stoppingAtMs = world.clock.nowMs();
    await first.stop();
    expect(world.clock.nowMs() - stoppingAtMs).toBeLessThan(3_000);
    const given = await world.job(id);
    expect([given?.lease, given?.fruitless]).toEqual([undefined, 0]);
    expect(given?.counts?.listed).toBeGreaterThan(0);
    world.startWorker({ name: 'second' });
    await world.run(1_000);
    expect((await world.job(id))?.lease?.worker).toMatch(/^second\//);
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: OBJECTS, equal: OBJECTS, scanned: OBJECTS } });
  });

  it('Fix: that came while a job was claimed keeps it from being worked on', async () => {
    const world = await createJobsWorld();
    const calls: string[] = [];
    let isStopped = false;
    const worker = world.startWorker({
      tap: async (call, moment) => {
        if (isStopped) calls.push(call);
        if (moment === 'before') await world.clock.sleep(1_000);
      },
    });
    await world.run(1_000);
    await world.request({ mode: 'report' });
    await worker.stop();
    isStopped = true;
    await world.run(60_000);
    expect(calls).toEqual([]);
  });
});

it('the beginning of a job that hangs is given up after a while', async () => {
  const world = await bucketOf(OBJECTS, 'both');
  let isFirst = true;
  world.s3.onPage = async () => {
    if (isFirst)
      await new Promise(() => {
        isFirst = false;
      });
  };
  world.startWorker();
  const { id } = await world.request({ now: true });
  await world.run(30_000);
  expect(isFirst).toBe(false);
  expect(await world.job(id)).toMatchObject({ state: 'queued', lease: {} });
  expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: OBJECTS } });
});
