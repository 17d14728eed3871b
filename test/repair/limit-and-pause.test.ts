import { markSeenAt } from '../support/fakes/gap-records.ts';
import { describe, expect, it } from 'vitest';
import { fill, slowPages } from '../support/worlds/jobs-fill.ts';
import { BUCKET } from '../support/worlds/ingest.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';
import { createReindexJobs } from '../../src/repair/job-requests.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';

describe('the deletion limit', () => {
  it('is not exceeded, and keeps nothing else from being done; a person declines the rest, or allows it to a new job', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 5, index: 2_205, bucket: 300 });
    world.startWorker();
    const { id } = await world.request();
    const done = await world.ended(id);
    expect(done).toMatchObject({
      state: 'done',
      deletions: { limit: 1_000, reserved: 1_000 },
      counts: { listed: 305, missing: 300, written: 300, phantom: 2_205, tombstones: 1_000, held: 1_205 },
    });
    expect(await world.found()).toHaveLength(305 + 1_205);
    // beyond the limit, HEADs are sent only for the few slices that are settled when it is met
    expect(world.s3.heads.length).toBeLessThan(2_000);
    // the index does not equal the bucket
    expect((await world.bucketRecord())?.lastComparedAtMs).toBeUndefined();
    await world.jobs.decline(id);
    expect((await world.bucketRecord())?.waiting).toMatchObject([{ count: 1_205, jobId: id, declinedAtMs: world.clock.nowMs() }]);
    const allowed = await world.jobs.allow(id, 'alice');
    expect(await world.ended(allowed.id)).toMatchObject({
      state: 'done',
      requestedBy: 'alice',
      deletions: { limit: 1_205, reserved: 1_205 },
      counts: { tombstones: 1_205, held: 0 },
    });
    expect(await world.found()).toEqual(world.inBucket());
    expect((await world.bucketRecord())?.waiting).toBeUndefined();
    for (const act of [() => world.jobs.allow(id, 'alice'), () => world.jobs.decline(id)])
      await expect(act()).rejects.toMatchObject({ code: 'job.nothing-waits' });
  });

  it('of an emptied bucket holds all deletions back, and sends HEADs for a few of them', async () => {
    const world = await createJobsWorld();
    await fill(world, { index: 2_500 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    expect(await world.ended(id)).toMatchObject({ state: 'done', deletions: { limit: 0, reserved: 0 }, counts: { held: 2_500 } });
    expect(world.s3.heads.length).toBeLessThan(1_250);
    const allowed = await world.jobs.allow(id, 'alice');
    expect(await world.ended(allowed.id)).toMatchObject({ state: 'done', counts: { phantom: 2_500, tombstones: 2_500, held: 0 } });
    expect(await world.found()).toEqual([]);
  });

  it('of many parts holds for all of them together, and each key is counted once', async () => {
    const world = await createJobsWorld({ limits: { partDocumentsMin: 300, cutKeysMin: 100 } });
    for (let number = 0; number < 3_000; number += 1) {
      await world.has(`k/${String(number).padStart(5, '0')}`, number % 2 === 0 ? 'index' : number % 3 === 0 ? 'bucket' : 'both');
    }
    world.startWorker();
    const { id } = await world.request({ now: true });
    expect(await world.ended(id)).toMatchObject({
      state: 'done',
      counts: { listed: 1_500, equal: 1_000, missing: 500, written: 500, phantom: 1_500, tombstones: 1_000, held: 500 },
    });
    expect(await world.found()).toHaveLength(2_000);
  });

  it('gets back what a worker had reserved when its time to stop is over in the middle of a slice', async () => {
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

  describe('when a person declines after all what was allowed', () => {
    async function allowed() {
      const world = await createJobsWorld();
      await fill(world, { index: 50 });
      world.startWorker();
      const { id } = await world.request({ now: true });
      await world.ended(id);
      return { world, id, job: await world.jobs.allow(id, 'alice') };
    }

    it.each(['at once', 'while it sends HEADs', 'while it is paused'])('cancels the job %s, and all documents stay', async (when) => {
      const { world, id, job } = await allowed();
      const decline = () => world.jobs.decline(id);
      let answer: ReturnType<typeof decline> | undefined;
      if (when === 'while it sends HEADs') world.s3.onHead = async () => void (await (answer ??= decline()));
      else {
        if (when === 'while it is paused') await world.jobs.pause(job.id);
        answer = decline();
        await answer;
        await expect(world.jobs.resume(job.id)).rejects.toMatchObject({ code: 'job.not-resumable' });
      }
      expect(await world.ended(job.id)).toMatchObject({ state: 'cancelled' });
      expect(await answer).toMatchObject({ id, waiting: { deletions: 50, declined_at: expect.any(String) } });
      await world.run(120_000);
      expect(await world.found()).toHaveLength(50);
      expect((await world.bucketRecord())?.waiting).toMatchObject([{ count: 50, jobId: id, declinedAtMs: expect.any(Number) }]);
    });

    it('cancels what was allowed to jobs of keys around and within these, and no other job', async () => {
      const { world, id, job } = await allowed();
      await world.jobs.pause(job.id);
      await fill(world, { index: 2 }, 'a/');
      const inner = await world.request({ prefix: 'a/', now: true });
      await world.ended(inner.id);
      const ordinary = await world.request();
      await world.jobs.pause(ordinary.id);
      await world.jobs.decline(inner.id);
      expect([await world.job(job.id), await world.job(ordinary.id)]).toMatchObject([{ state: 'cancelled' }, { state: 'paused' }]);
      const within = await world.jobs.allow(inner.id, 'alice');
      await world.jobs.decline(id);
      expect(await world.ended(within.id)).toMatchObject({ state: 'cancelled' });
    });

    it('says so if the job has made them', async () => {
      const { world, id, job } = await allowed();
      const { state } = world;
      let isRead = false;
      const late: typeof state = {
        ...state,
        async list(...args) {
          const found = await state.list(...args);
          if (!isRead) await world.ended(job.id);
          isRead = true;
          return found;
        },
      };
      const jobs = createReindexJobs({ state: late, clock: world.clock, telemetry: createFakeTelemetry() });
      await expect(jobs.decline(id)).rejects.toMatchObject({ code: 'job.nothing-waits' });
      expect(await world.found()).toEqual([]);
    });
  });

  it.each([
    ['knows no limit for a job that closes a gap of deletes', 1, 1],
    ['knows one for it where the bucket is empty', 0, 1_100],
  ])('%s', async (_, left, found) => {
    const world = await createJobsWorld();
    await fill(world, { both: left, index: 1_100 });
    const mark = markSeenAt(0, { deletes: 'announced' });
    await updateRecord(world.state, refs.gap(mark.id), () => mark);
    world.startWorker();
    const own = { bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'gap' } as const;
    expect(await world.ended((await world.jobs.start(own)).id)).toMatchObject({ state: 'done' });
    expect(await world.found()).toHaveLength(found);
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
    expect(await world.jobs.pause(id)).toMatchObject({ state: 'paused' });
    await world.run(5_000);
    const paused = await world.job(id);
    expect(paused?.lease).toBeUndefined();
    expect(paused?.counts?.listed).toBeGreaterThan(0);
    const pages = world.s3.pages.length;
    await world.run(300_000);
    expect(world.s3.pages).toHaveLength(pages);
    expect(await world.jobs.get(id)).toMatchObject({ counts: { listed: paused?.counts?.listed } });
    await world.jobs.resume(id);
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 400, equal: 400 } });
  });

  it('frees the bucket while it lasts: the paused job waits for the other one then', async () => {
    const world = await createJobsWorld();
    const first = await world.request();
    await world.jobs.pause(first.id);
    const second = await world.request();
    await expect(world.jobs.resume(first.id)).rejects.toMatchObject({ code: 'job.conflict', extra: { job_id: second.id } });
    expect(await world.jobs.get(first.id)).toMatchObject({ state: 'paused' });
    await world.jobs.cancel(second.id);
    expect(await world.jobs.resume(first.id)).toMatchObject({ state: 'queued' });
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
    const answers = await Promise.allSettled(paused.map((id) => world.jobs.resume(id)));
    const states = (await world.allJobs()).map(({ state }) => state).sort();
    // each may have found another one there, but never two
    expect(answers.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(1);
    expect(states.filter((state) => state !== 'paused').length).toBeLessThanOrEqual(1);
  });

  it('that another job keeps from going on keeps count of what it deleted meanwhile', async () => {
    const world = await createJobsWorld();
    const { id } = await world.request({ now: true });
    await world.jobs.pause(id);
    const deletions = { limit: 1_000, reserved: 1_000 };
    await updateRecord(world.state, refs.job(id), (job) => job && { ...job, startedAtMs: 1, comparingAtMs: 1, deletions });
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
          return current && { ...current, deletions: { ...deletions, reserved: 1_100 } };
        });
        await updateRecord(world.state, refs.job(other.id), (current) => current && { ...current, state: 'queued' as const });
        await names(other.id);
        return found;
      },
    };
    const jobs = createReindexJobs({ state, clock: world.clock, telemetry: createFakeTelemetry() });
    await expect(jobs.resume(id)).rejects.toMatchObject({ code: 'job.conflict' });
    expect(await world.job(id)).toMatchObject({ state: 'paused', deletions: { limit: 1_000, reserved: 1_100 } });
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
    await world.jobs.resume(id);
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 100 } });
  });

  it('is refused where there is nothing to pause or to resume', async () => {
    const world = await createJobsWorld();
    const { id } = await world.request();
    await expect(world.jobs.resume(id)).rejects.toMatchObject({ code: 'job.not-resumable' });
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
