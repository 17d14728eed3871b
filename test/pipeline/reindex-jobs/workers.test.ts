import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import { ensureRange, freshRange, RANGES_MAX } from '../../../src/pipeline/reindex-jobs/range-records.ts';
import { refs, removeRecord, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createJobsWorld, type JobsWorld } from '../../support/worlds/jobs.ts';

const OBJECTS = 600;

async function filledWorld(limits: { rangeDocumentsMin: number; splitKeysMin: number }): Promise<JobsWorld> {
  const world = await createJobsWorld({ limits });
  for (let number = 0; number < OBJECTS; number += 1) await world.has(`key-${String(number).padStart(5, '0')}`, 'both');
  world.s3.pageSize = 10;
  world.s3.onPage = ({ objects }) => world.clock.sleep(objects.length > 1 ? 500 : 20);
  return world;
}

const UNCUT = { rangeDocumentsMin: OBJECTS * 2, splitKeysMin: 25 };
const ALL = { listed: OBJECTS, equal: OBJECTS, scanned: OBJECTS };

describe('the ranges of a job', () => {
  it('are cut in advance by what the index knows, and lose no key and double none', async () => {
    const world = await filledWorld({ rangeDocumentsMin: 60, splitKeysMin: 1_000 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(1_000);
    const ranges = await world.ranges();
    expect(ranges.length).toBeGreaterThan(4);
    expect(ranges.map(({ from }) => from)).toEqual(['', ...ranges.slice(0, -1).map(({ to }) => to)]);
    expect(ranges.at(-1)?.to).toBeUndefined();
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: ALL });
  });

  it('are split while any worker has a free place', async () => {
    const world = await filledWorld(UNCUT);
    world.s3.onPage = ({ objects }) => world.clock.sleep(objects.length > 1 ? 1_000 : 20);
    for (const name of ['a', 'b', 'c', 'd']) world.startWorker({ name, listings: 1 });
    const { id } = await world.request({ now: true });
    const workers = new Set<string>();
    for (let second = 0; second < 25; second += 1) {
      await world.run(1_000);
      for (const { lease } of await world.ranges()) if (lease !== undefined) workers.add(lease.worker.split('/')[0] ?? '');
    }
    const done = await world.ended(id);
    expect(done).toMatchObject({ state: 'done', counts: ALL });
    expect(done.rangesCut).toBeGreaterThan(3);
    expect(workers.size).toBeGreaterThan(1);
    // a minute of listing by one alone; the others look every ten seconds until they see that a job runs
    expect((done.finishedAtMs ?? 0) - (done.comparingAtMs ?? 0)).toBeLessThan(50_000);
  });

  it('are as many as there are places once the first has turned for a while', async () => {
    const world = await filledWorld(UNCUT);
    world.startWorker({ listings: 5 });
    const { id } = await world.request({ now: true });
    let ranges = await world.ranges();
    for (let step = 0; step < 100 && ranges.length < 2; step += 1) {
      await world.run(100);
      ranges = await world.ranges();
    }
    await world.run(100);
    // all at once: not two first, and four after that
    expect((await world.ranges()).length).toBe(5);
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: ALL });
  });

  it('are never more than a job may have', async () => {
    const world = await filledWorld(UNCUT);
    const { id } = await world.request({ now: true });
    const numbers: number[] = [];
    world.startWorker({
      listings: 5,
      tap: async (call, moment) => {
        if (moment === 'before' && call.startsWith('put range:')) {
          numbers.push(Number(call.split(':').at(-1)));
          await updateRecord(world.state, refs.job(id), (job) =>
            job?.rangesCut === 1 ? { ...job, rangesCut: RANGES_MAX - 2 } : undefined,
          );
        }
      },
    });
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: ALL, rangesCut: 3, rangesDone: 3 });
    expect(Math.max(...numbers)).toBe(RANGES_MAX - 1);
  });

  it('go on after an index that could not be reached, each from where it was', async () => {
    const world = await filledWorld(UNCUT);
    let isDown = false;
    const down = async (): Promise<void> => {
      if (isDown) throw new FaultError('index.unreachable', 'no answer');
    };
    world.startWorker({ listings: 2, tap: (_call, moment) => (moment === 'before' ? down() : undefined) });
    const { id } = await world.request({ now: true });
    for (let outage = 0; outage < 3; outage += 1) {
      // longer than a turn: each outage costs one of the three attempts without progress
      await world.run(45_000);
      isDown = true;
      await world.run(100_000);
      isDown = false;
    }
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: ALL });
  });
});

describe('the end of a job', () => {
  it('does not come before a range that was cut and never made', async () => {
    const world = await filledWorld({ rangeDocumentsMin: 60, splitKeysMin: 1_000 });
    let isLost = false;
    world.startWorker({
      tap: async (call, moment) => {
        if (isLost || moment !== 'after' || !call.startsWith('put range:') || !call.endsWith(':000001')) return;
        isLost = true;
        await removeRecord(world.state, call.replace('put ', ''));
      },
    });
    const { id } = await world.request({ now: true });
    const { rangesCut, ...done } = await world.ended(id);
    expect(isLost).toBe(true);
    expect(done).toMatchObject({ state: 'done', counts: ALL, rangesDone: rangesCut });
  });

  it('does not come before a range that was split off in the very moment', async () => {
    const world = await filledWorld(UNCUT);
    const { id } = await world.request({ now: true });
    let isSplit = false;
    world.startWorker({
      tap: async (call, moment) => {
        if (isSplit || moment !== 'before' || !call.startsWith('put job:') || !(await world.ranges()).every(({ done }) => done)) return;
        if ((await world.ranges()).length === 0) return;
        isSplit = true;
        const number = (await world.job(id))?.rangesCut ?? 0;
        await updateRecord(world.state, refs.job(id), (job) => job && { ...job, rangesCut: number + 1 });
        await ensureRange(world.state, freshRange(id, number, { from: 'zzz', nowMs: world.clock.nowMs() }));
      },
    });
    const { rangesCut, rangesDone } = await world.ended(id);
    expect(isSplit).toBe(true);
    expect(rangesDone).toBe(rangesCut);
  });
});

describe('a stop', () => {
  it('ends the turns at their next page and gives the ranges back, so that the next worker goes on at once', async () => {
    const world = await filledWorld({ rangeDocumentsMin: 200, splitKeysMin: 1_000 });
    const first = world.startWorker({ name: 'first' });
    const { id } = await world.request({ now: true });
    await world.run(5_000);
    const listed = async (): Promise<number> => (await world.jobs.get(id)).counts?.listed ?? 0;
    const stoppingAtMs = world.clock.nowMs();
    await first.stop();
    expect(world.clock.nowMs() - stoppingAtMs).toBeLessThan(3_000);
    expect((await world.ranges()).every(({ lease, fruitless }) => lease === undefined && fruitless === 0)).toBe(true);
    expect(await listed()).toBeGreaterThan(0);
    world.startWorker({ name: 'second' });
    await world.run(1_000);
    expect((await world.ranges()).filter(({ lease }) => lease !== undefined).length).toBeGreaterThan(1);
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: ALL });
  });

  it('breaks off at its deadline what does not end, and gives its range back all the same', async () => {
    const world = await filledWorld(UNCUT);
    const first = world.startWorker({
      name: 'first',
      turn: (_request, _controls, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })),
    });
    const { id } = await world.request({ now: true });
    await world.run(2_000);
    expect((await world.ranges())[0]?.lease?.worker).toMatch(/^first\//);
    await first.stop(AbortSignal.abort());
    expect((await world.ranges())[0]).toMatchObject({ fruitless: 0 });
    expect((await world.ranges())[0]?.lease).toBeUndefined();
    expect((await world.ranges())[0]?.dueAtMs).toBeLessThanOrEqual(world.clock.nowMs());
    world.startWorker({ name: 'second' });
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: ALL });
  });
});

describe('jobs that are stored at once in the process of a worker', () => {
  it('Fix: take its free slots, and no more', async () => {
    const world = await createJobsWorld();
    let [turning, most] = [0, 0];
    world.startWorker({
      listings: 2,
      turn: async (_request, _controls, signal) => {
        turning += 1;
        most = Math.max(most, turning);
        await world.clock.sleep(5_000, signal).finally(() => (turning -= 1));
        throw new FaultError('index.unreachable', 'is done again later');
      },
    });
    await world.run(1_000);
    await Promise.all(Array.from({ length: 10 }, (_, at) => world.request({ mode: 'report', prefix: `folder-${at}/` })));
    await world.run(4_000);
    expect(most).toBe(2);
  });

  it('Fix: are not worked on after a stop that came while one was claimed', async () => {
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

describe('many small jobs and a huge one', () => {
  it('share: none of the small ones waits for the huge one', async () => {
    const world = await createJobsWorld({ limits: { rangeDocumentsMin: 100, splitKeysMin: 25 } });
    for (let number = 0; number < 800; number += 1) await world.has(`huge/${String(number).padStart(5, '0')}`, 'both');
    for (let small = 0; small < 6; small += 1) for (const key of ['x', 'y', 'z']) await world.has(`small-${small}/${key}`, 'both');
    world.s3.pageSize = 5;
    world.s3.onPage = () => world.clock.sleep(2_000);
    world.startWorker({ listings: 2 });
    const huge = await world.request({ mode: 'report', prefix: 'huge/' });
    await world.run(10_000);
    const small = await Promise.all([0, 1, 2, 3, 4, 5].map((number) => world.request({ mode: 'report', prefix: `small-${number}/` })));
    for (const { id } of small) expect(await world.ended(id)).toMatchObject({ state: 'done' });
    expect(await world.job(huge.id)).toMatchObject({ state: 'running' });
    expect(await world.ended(huge.id)).toMatchObject({ state: 'done', counts: { listed: 800 } });
    const tookMs = async (id: string): Promise<number> => ((await world.job(id))?.finishedAtMs ?? 0) - huge.createdAtMs;
    const lastMs = Math.max(...(await Promise.all(small.map(({ id }) => tookMs(id)))));
    // three turns of 16 s in one of the two slots; the huge one takes 200 s
    expect(lastMs).toBeLessThan((await tookMs(huge.id)) / 3);
  });
});

describe('a step of a job', () => {
  it('that hangs is taken by another slot after a while', async () => {
    const world = await filledWorld(UNCUT);
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
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: ALL });
  });
});
