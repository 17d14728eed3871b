import { markSeenAt } from '../../support/fakes/gap-records.ts';
import { describe, expect, it } from 'vitest';
import { fill, slowPages } from '../../support/worlds/jobs-fill.ts';
import { BUCKET } from '../../support/worlds/ingest.ts';
import { createJobsWorld } from '../../support/worlds/jobs.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createReindexJobs } from '../../../src/pipeline/control/reindex-jobs.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';

describe('the deletion limit', () => {
  it('pauses the job once all is compared, says how many deletes wait in all, and lets through the total that it is told', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 5, index: 2_205, bucket: 300 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    const held = await world.ended(id);
    expect(held).toMatchObject({
      state: 'paused',
      pausedBecause: 'deletion-limit',
      deletions: { limit: 1_000, reserved: 1_000, waiting: 1_205 },
    });
    // everything else is done
    expect(await world.found()).toHaveLength(305 + 1_205);
    expect(await world.jobs.get(id)).toMatchObject({
      counts: { listed: 305, missing: 300, phantom: 2_205, tombstones: 1_000, held: 1_205 },
    });
    // beyond the limit, HEADs are sent only for the few slices that are settled when it is met
    expect(world.s3.heads.length).toBeLessThan(2_000);
    for (const request of [{}, { allow_deletes: 1_000 }]) {
      const refusal = { code: 'job.not-resumable', extra: { waiting: 1_205 }, message: expect.stringContaining('--allow-deletes 2205') };
      await expect(world.jobs.resume(id, request)).rejects.toMatchObject(refusal);
    }
    await world.jobs.resume(id, { allow_deletes: 1_100 });
    const again = await world.ended(id);
    expect(again).toMatchObject({ state: 'paused', pausedBecause: 'deletion-limit', deletions: { reserved: 1_100, waiting: 1_105 } });
    expect(await world.found()).toHaveLength(305 + 1_105);
    await world.jobs.resume(id, { allow_deletes: 2_205 });
    const done = await world.ended(id);
    const counts = { listed: 305, scanned: 2_210, equal: 5, missing: 300, phantom: 2_205, tombstones: 2_205, held: 0, written: 300 };
    expect(done).toMatchObject({ state: 'done', counts });
    expect(await world.found()).toEqual(world.inBucket());
  });

  it('of an emptied bucket names all deletions, and sends HEADs for a few of them', async () => {
    const world = await createJobsWorld();
    await fill(world, { index: 2_500 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    expect(await world.ended(id)).toMatchObject({ state: 'paused', deletions: { limit: 0, reserved: 0, waiting: 2_500 } });
    expect(world.s3.heads.length).toBeLessThan(1_250);
    await world.jobs.resume(id, { allow_deletes: 2_500 });
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { phantom: 2_500, tombstones: 2_500, scanned: 2_500, held: 0 } });
    expect(await world.found()).toEqual([]);
  });

  it('of many parts counts each key once, however often it is released', async () => {
    const world = await createJobsWorld({ limits: { partDocumentsMin: 300, cutKeysMin: 100 } });
    for (let number = 0; number < 3_000; number += 1) {
      await world.has(`k/${String(number).padStart(5, '0')}`, number % 2 === 0 ? 'index' : number % 3 === 0 ? 'bucket' : 'both');
    }
    world.startWorker();
    world.startWorker();
    const { id } = await world.request({ now: true });
    for (const allowed of [1_100, 1_101, 1_499]) {
      const paused = await world.ended(id);
      expect(paused).toMatchObject({ state: 'paused', pausedBecause: 'deletion-limit' });
      expect((paused.deletions?.reserved ?? 0) + (paused.deletions?.waiting ?? 0)).toBe(1_500);
      await world.jobs.resume(id, { allow_deletes: allowed });
    }
    expect(await world.ended(id)).toMatchObject({ deletions: { waiting: 1 } });
    await world.jobs.resume(id, { allow_deletes: 1_500 });
    const { state, counts } = await world.ended(id);
    expect({ state, counts }).toMatchObject({
      state: 'done',
      counts: { listed: 1_500, equal: 1_000, missing: 500, written: 500, phantom: 1_500, tombstones: 1_500, held: 0 },
    });
    expect(await world.found()).toEqual(world.inBucket());
  });

  it('gets back what a worker reserved ahead of need when its time to stop is over in the middle of a slice', async () => {
    const world = await createJobsWorld({ limits: { partDocumentsMin: 10_000, cutKeysMin: 10_000 } });
    for (let part = 10; part < 40; part += 1) await fill(world, { both: 20, index: 5 }, `${part}/`);
    slowPages(world);
    const worker = world.startWorker({ listings: 1 });
    const { id } = await world.request({ now: true });
    await world.run(12_000);
    const reserved = async () => (await world.jobs.get(id))?.deletions?.reserved ?? 0;
    expect(await reserved()).toBeGreaterThan(0);
    await worker.stop(AbortSignal.abort());
    const job = await world.job(id);
    expect([job?.lease, await reserved()]).toEqual([undefined, job?.counts?.tombstones]);
    expect(job?.counts?.tombstones).toBeGreaterThan(0);
  });

  it.each([
    ['knows no limit for a job that closes a gap of deletes', 1, 'done', 1],
    ['knows one for it where the bucket is empty', 0, 'paused', 1_100],
  ] as const)('%s', async (_, left, state, found) => {
    const world = await createJobsWorld();
    await fill(world, { both: left, index: 1_100 });
    const mark = markSeenAt(0, { deletes: 'announced' });
    await updateRecord(world.state, refs.gap(mark.id), () => mark);
    world.startWorker();
    const own = { bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'gap' } as const;
    expect(await world.ended((await world.jobs.start(own)).id)).toMatchObject({ state });
    expect(await world.found()).toHaveLength(found);
  });
});

describe('a job that holds deletions back', () => {
  const own = { bucket: BUCKET, prefix: '', mode: 'apply', requestedBy: 'gap', holds: true } as const;

  it('repairs all the rest, deletes what its deletion limit allows, and is done', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 5, index: 1_205, bucket: 300 });
    world.startWorker();
    const done = await world.ended((await world.jobs.start(own)).id);
    expect(done).toMatchObject({ state: 'done', counts: { missing: 300, written: 300, phantom: 1_205, tombstones: 1_000, held: 205 } });
    expect(await world.found()).toHaveLength(305 + 205);
    // the index does not equal the bucket
    expect((await world.bucketRecord())?.lastComparedAtMs).toBeUndefined();
  });
});

describe('pausing and resuming', () => {
  it('ends the turns at their next page, keeps what was done, and goes on from there', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 400 });
    slowPages(world);
    world.startWorker({ listings: 1 });
    const { id } = await world.request({ now: true });
    await world.run(8_000);
    expect(await world.jobs.pause(id)).toMatchObject({ state: 'paused', pausedBecause: 'requested' });
    await world.run(5_000);
    const paused = await world.job(id);
    expect(paused?.lease).toBeUndefined();
    expect(paused?.counts?.listed).toBeGreaterThan(0);
    const pages = world.s3.pages.length;
    await world.run(300_000);
    expect(world.s3.pages).toHaveLength(pages);
    expect(await world.jobs.get(id)).toMatchObject({ counts: { listed: paused?.counts?.listed } });
    await world.jobs.resume(id, {});
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 400, equal: 400 } });
  });

  it('frees the bucket while it lasts: the paused job waits for the other one then', async () => {
    const world = await createJobsWorld();
    const first = await world.request();
    await world.jobs.pause(first.id);
    const second = await world.request();
    await expect(world.jobs.resume(first.id, {})).rejects.toMatchObject({ code: 'job.conflict', extra: { job_id: second.id } });
    expect(await world.jobs.get(first.id)).toMatchObject({ state: 'paused', pausedBecause: 'requested' });
    await world.jobs.cancel(second.id);
    expect(await world.jobs.resume(first.id, {})).toMatchObject({ state: 'queued' });
    world.startWorker();
    expect(await world.ended(first.id)).toMatchObject({ state: 'done' });
  });

  it('of two that are resumed in one moment lets one run', async () => {
    const world = await createJobsWorld();
    const paused: string[] = [];
    for (let count = 0; count < 4; count += 1) {
      const { id } = await world.request();
      await world.jobs.pause(id);
      paused.push(id);
    }
    const answers = await Promise.allSettled(paused.map((id) => world.jobs.resume(id, {})));
    const states = (await world.allJobs()).map(({ state }) => state).sort();
    // each may have found another one there, but never two
    expect(answers.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(1);
    expect(states.filter((state) => state !== 'paused').length).toBeLessThanOrEqual(1);
  });

  it('that another job keeps from going on keeps count of what it deleted meanwhile', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 5, index: 1_205 });
    const worker = world.startWorker();
    const { id } = await world.request({ now: true });
    await world.ended(id);
    await worker.stop();
    expect((await world.job(id))?.deletions).toMatchObject({ limit: 1_000, reserved: 1_000 });
    const names = (applyJobId: string) => updateRecord(world.state, refs.bucket(BUCKET), (bucket) => bucket && { ...bucket, applyJobId });
    const other = await world.jobs.start({ bucket: BUCKET, prefix: 'none/', mode: 'apply', requestedBy: 'gap' });
    await world.jobs.pause(other.id);
    // the bucket's record still names the first job: as one that another job takes at this moment
    await names(id);
    let isTaken = false;
    const state = {
      ...world.state,
      async get(...args: Parameters<typeof world.state.get>) {
        const found = await world.state.get(...args);
        const job = await world.job(id);
        if (isTaken || job?.state !== 'running' || args[0] !== refs.bucket(BUCKET).id) return found;
        isTaken = true;
        await updateRecord(world.state, refs.job(id), (current) => {
          const deletions = current?.deletions;
          return current && deletions && { ...current, deletions: { ...deletions, reserved: deletions.reserved + 100 } };
        });
        await updateRecord(world.state, refs.job(other.id), (current) => current && { ...current, state: 'queued' as const });
        await names(other.id);
        return found;
      },
    };
    const jobs = createReindexJobs({ state, clock: world.clock, telemetry: createFakeTelemetry() });
    await expect(jobs.resume(id, { allow_deletes: 1_100 })).rejects.toMatchObject({ code: 'job.conflict' });
    expect(await world.job(id)).toMatchObject({
      state: 'paused',
      pausedBecause: 'deletion-limit',
      deletions: { limit: 1_000, reserved: 1_100 },
    });
  });

  it('sets a job aside whose bucket another one has taken', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 100 });
    slowPages(world);
    const worker = world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(3_000);
    await worker.stop();
    // as whoever resumed it would leave it, and died before it occupied the bucket
    await world.jobs.pause(id);
    const other = await world.request();
    await updateRecord(world.state, refs.job(id), (job) => job && { ...job, state: 'running' as const, dueAtMs: world.clock.nowMs() });
    const pages = world.s3.pages.length;
    world.startWorker();
    await world.run(30_000);
    // one look at what the other begins with
    expect(world.s3.pages.length - pages).toBeLessThanOrEqual(1);
    await world.run(200_000);
    await world.ended(other.id);
    expect(await world.job(id)).toMatchObject({ state: 'paused' });
    await world.jobs.resume(id, {});
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 100 } });
  });

  it('is refused where there is nothing to pause or to resume', async () => {
    const world = await createJobsWorld();
    const { id } = await world.request();
    await expect(world.jobs.resume(id, {})).rejects.toMatchObject({ code: 'job.not-resumable' });
    await world.jobs.cancel(id);
    await expect(world.jobs.pause(id)).rejects.toMatchObject({ code: 'job.not-pausable' });
    await expect(world.jobs.pause('job-nowhere')).rejects.toMatchObject({ code: 'job.not-found' });
  });

  it('and cancelling ends a job with what it has counted', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 400 });
    slowPages(world, 4_000);
    world.startWorker({ listings: 1 });
    const { id } = await world.request({ now: true });
    await world.run(60_000);
    const cancelled = await world.jobs.cancel(id);
    expect(cancelled).toMatchObject({ state: 'cancelled' });
    expect(cancelled.counts?.listed).toBeGreaterThan(0);
    const before = await world.jobs.get(id);
    await world.run(180_000);
    expect(await world.job(id)).not.toHaveProperty('parts');
    expect(await world.jobs.get(id)).toEqual(before);
  });
});
