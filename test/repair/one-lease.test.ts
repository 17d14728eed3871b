/** A job is one lease in one process: whoever believes to hold it and does not, writes nothing more. */
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { Clock } from '../../src/process/clock.ts';
import { createClaimJob } from '../../src/repair/job-lease.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { BUCKET } from '../support/worlds/ingest.ts';
import { createJobsWorld, type JobsWorld, type Tap } from '../support/worlds/jobs.ts';

/** A process that can be suspended: nothing of it goes on meanwhile, while the world's time does. */
function createSuspendable(world: JobsWorld) {
  let resumed: PromiseWithResolvers<void> | undefined;
  const waits = async (): Promise<void> => {
    await resumed?.promise;
  };
  const calls: string[] = [];
  const clock: Clock = {
    ...world.clock,
    async sleep(delayMs, signal) {
      await world.clock.sleep(delayMs, signal);
      await waits();
    },
  };
  const tap: Tap = async (call, moment) => {
    if (moment === 'before') calls.push(call);
    await waits();
  };
  return {
    calls,
    worker: world.startWorker({ name: 'suspended', clock, tap }),
    suspend: (): void => void (resumed = Promise.withResolvers()),
    resume: (): void => resumed?.resolve(),
  };
}

it.each(['apply', 'report'] as const)(
  'a process that is suspended while another one finishes its job writes nothing when it is resumed (%s)',
  async (mode) => {
    const world = await createJobsWorld();
    await world.hasMany({ both: 60, bucket: 60, index: 60 });
    world.slowPages(2_000, 10);
    const first = createSuspendable(world);
    const { id } = await world.request({ now: true, mode });
    await world.run(7_000);
    expect((await world.job(id))?.lease?.worker).toMatch(/^suspended\//);
    first.suspend();
    await world.run(1_000);
    world.startWorker({ name: 'heir' });
    const done = await world.ended(id);
    expect(done).toMatchObject({ state: 'done', counts: { listed: 120 } });
    const [before, bucket] = [await world.found(), await world.bucketRecord()];
    first.calls.length = 0;
    first.resume();
    await world.run(120_000);
    expect(first.calls.filter((call) => call === 'objects.write')).toEqual([]);
    expect(await world.job(id)).toEqual((await world.allJobs()).find((job) => job.id === id));
    expect(await world.job(id)).toMatchObject({ state: 'done', finishedAtMs: done.finishedAtMs, counts: { listed: 120 } });
    expect(await world.found()).toEqual(before);
    expect((await world.bucketRecord())?.lastComparedAtMs).toBe(bucket?.lastComparedAtMs);
  },
);

it('two processes that both believe they hold a job never come about while the first one lives, and are one then: a change of the other stores nothing, and tells it that the job is lost', async () => {
  const world = await createJobsWorld();
  const { id } = await world.request({ mode: 'report' });
  const { state, clock } = world;
  let isOut = false;
  const broken = {
    ...state,
    put: (...args: Parameters<typeof state.put>) =>
      isOut ? Promise.reject(new FaultError('index.unreachable', 'no answer')) : state.put(...args),
  };
  const first = await createClaimJob({ state: broken, clock, worker: 'a' })(id);
  if (first.kind !== 'taken') throw new Error(first.kind);
  const claim = createClaimJob({ state, clock, worker: 'b' });
  for (let seconds = 0; seconds < 300; seconds += 5) {
    await world.run(5_000);
    expect((await claim(id)).kind).not.toBe('taken');
  }
  isOut = true;
  await clock.advance(21_000);
  expect((await claim(id)).kind).toBe('leased');
  await clock.advance(61_000);
  const second = await claim(id);
  if (second.kind !== 'taken') throw new Error(second.kind);
  expect(second.held.job.fruitless).toBe(1);
  isOut = false;
  expect(first.held.lost.aborted).toBe(true);
  expect(await first.held.change((job) => ({ ...job, prefix: 'stolen/' }))).toBe(false);
  await first.held.release(0);
  expect(await world.job(id)).toMatchObject({ prefix: '', lease: { worker: expect.stringMatching(/^b\//) } });
  // a lease that is given up twice is given up once
  await second.held.release(5);
  const third = await claim(id);
  if (third.kind !== 'taken') throw new Error(third.kind);
  await second.held.release(7);
  expect(await world.job(id)).toMatchObject({ lease: third.held.job.lease });
  await third.held.release(9);
});

it('a job that runs although its bucket names another one is set aside with its next turn', async () => {
  const world = await createJobsWorld();
  await world.hasMany({ both: 1_000 });
  world.slowPages(1_000, 20);
  world.startWorker({ listings: 1 });
  const { id } = await world.request({ now: true });
  await world.run(5_000);
  const other = 'job-zzzzzzzzz-000000000000';
  const { dueAtMs: _, lease: __, ...record } = (await world.job(id))!;
  await updateRecord(world.state, refs.job(other), () => ({ ...record, id: other, state: 'queued' as const }));
  await updateRecord(world.state, refs.bucket(BUCKET), (bucket) => bucket && { ...bucket, applyJobId: other });
  expect(await world.ended(id)).toMatchObject({ state: 'paused' });
  expect((await world.job(id))?.counts?.listed).toBeLessThan(1_000);
});

describe('a lease without progress', () => {
  it('fails the job the third time, and names the key after which it stopped', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ both: 100 });
    world.s3.pageSize = 10;
    let deaths = 0;
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) world.startWorker({ name, listings: 1 });
    world.s3.onPage = async (_page, { after }) => {
      if (after < 'both-00039') return world.clock.sleep(3_000);
      deaths += 1;
      for (const job of await world.allJobs()) world.kill(job.lease?.worker.split('/')[0] ?? '');
      await new Promise(() => {});
    };
    const { id } = await world.request({ now: true });
    const failed = await world.ended(id);
    expect(failed).toMatchObject({
      state: 'failed',
      error: { code: 'internal.unexpected', after: expect.stringMatching(/^both-000[123]9$/) },
    });
    expect(deaths).toBe(3);
  });

  it('is none that was given back at the deadline of a stop, which breaks off what has not ended', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ both: 100 });
    world.slowPages(60_000, 10);
    const { id } = await world.request({ now: true });
    for (let stops = 0; stops < 5; stops += 1) {
      const worker = world.startWorker();
      await world.run(12_000);
      const stoppingAtMs = world.clock.nowMs();
      await worker.stop(AbortSignal.abort());
      expect(world.clock.nowMs() - stoppingAtMs).toBeLessThan(3_000);
      const given = await world.job(id);
      expect([given?.lease, given?.fruitless]).toEqual([undefined, 0]);
    }
    world.slowPages(10, 10);
    world.startWorker();
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 100 } });
  });
});
