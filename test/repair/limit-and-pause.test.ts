import { describe, expect, it } from 'vitest';
import { createJobsWorld } from '../support/worlds/jobs.ts';
import { jobMadeAt } from '../support/fakes/gap-records.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { refs, updateRecord, readRecord } from '../../src/store/stored.ts';
import type { JobRecord } from '../../src/records/job.ts';
import { createGapWorld } from '../support/worlds/gaps.ts';
import * as fc from 'fast-check';
import { FaultError } from '../../src/base/fault.ts';
import { createDeletionLimit } from '../../src/repair/compare-job.ts';
import { createClaimJob, type HeldJob } from '../../src/repair/job-lease.ts';
import type { StateStore } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

describe('the deletion limit', () => {
  it('is not exceeded, and keeps nothing else from being done; a person declines the rest, or allows it to a new job', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ both: 5, index: 2_205, bucket: 300 });
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

  it.each([
    ['is listed', 0],
    ['may not be listed', 3],
  ] as const)('of a prefix without objects, whose bucket %s, holds %i of its deletions back', async (may, held) => {
    const world = await createJobsWorld();
    for (const key of ['p/a', 'p/b', 'p/c']) await world.has(key, 'index');
    await world.has('q', 'both');
    const page = world.s3.page.bind(world.s3);
    const deny: typeof page = async (location, asked, signal) => {
      if (may === 'may not be listed' && asked.prefix === '') throw new FaultError('object.denied', '403');
      return page(location, asked, signal);
    };
    Object.assign(world.s3, { page: deny });
    world.startWorker();
    const { id } = await world.request({ prefix: 'p/', now: true });
    expect(await world.ended(id)).toMatchObject({ state: 'done', documentsAtStart: 3, counts: { tombstones: 3 - held, held } });
  });

  it('gets back what a worker had reserved when its time to stop is over in the middle of a slice', async () => {
    const world = await createJobsWorld({ cutKeysMin: 10_000 });
    for (let part = 10; part < 40; part += 1) await world.hasMany({ both: 20, index: 5 }, `${part}/`);
    world.slowPages();
    const worker = world.startWorker({ listings: 1 });
    const { id } = await world.request({ now: true });
    await world.run(12_000);
    const reserved = async () => (await world.job(id))?.deletions?.reserved ?? 0;
    expect(await reserved()).toBeGreaterThan(0);
    await worker.stop(AbortSignal.abort());
    const job = await world.job(id);
    expect([job?.lease, await reserved()]).toEqual([undefined, job?.counts?.tombstones]);
    expect(job?.counts?.tombstones).toBeGreaterThan(0);
  });

  describe('when a person declines after all what was allowed', () => {
    async function allowed() {
      const world = await createJobsWorld();
      await world.hasMany({ index: 50 });
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
      await world.hasMany({ index: 2 }, 'a/');
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
  });
});

describe('pausing and resuming', () => {
  it('ends the turns at their next page, keeps what was done, and goes on from there', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ both: 400 });
    world.slowPages();
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
    // each may have found another one there, but never two
    expect(answers.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(1);
    world.startWorker();
    await world.run(10_000);
    const states = (await world.allJobs()).map(({ state }) => state);
    expect(states.filter((state) => state !== 'paused').length).toBeLessThanOrEqual(1);
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
    await world.hasMany({ both: 400 });
    world.slowPages(4_000);
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

// The consent that a job has when it is resumed; test/records/dirty.test.ts says for which jobs deletions are announced.

const MINUTE_MS = 60_000;

it.each([
  ['what was announced when it is resumed', undefined, { reserved: 0 }],
  ['nothing when it is resumed after a loss was reported', 'loss', { limit: 0, reserved: 0 }],
] as const)('Fix: the job of a bulk delete that waits for a person deletes %s', async (_, kind, deletions) => {
  const world = await createGapWorld();
  await world.tell();
  await world.after(MINUTE_MS);
  const job = await world.lastJob();
  // it compares, without a limit
  const comparing = { state: 'running', startedAtMs: 1, comparingAtMs: 1, coversBeforeMs: world.clock.nowMs() } as const;
  await world.setJob(job, { ...comparing, deletions: { reserved: 0 } });
  await world.jobs.pause(job!.id);
  await world.after(15_000);
  if (kind !== undefined) await world.tell({ kind });
  await world.jobs.resume(job!.id);
  expect((await world.lastJob())?.deletions).toEqual(deletions);
});

const ID = 'job-000000001-000000000001';

/** A held job with this limit, whose writes can fail. */
async function heldWith(limit: number) {
  const { state } = createMemoryStore();
  const job = jobMadeAt(0, { id: ID, startedAtMs: 0, comparingAtMs: 0, dueAtMs: 0, deletions: { limit, reserved: 0 } });
  await updateRecord(state, refs.job(ID), () => job);
  const calls = { fault: undefined as FaultError | undefined, loses: false };
  const put: StateStore['put'] = async (...args) => {
    if (calls.fault !== undefined && !calls.loses) throw calls.fault;
    const stored = await state.put(...args);
    if (calls.fault !== undefined) throw calls.fault;
    return stored;
  };
  const claim = await createClaimJob({ state: { ...state, put }, clock: createFakeClock(), worker: 'w' })(ID);
  if (claim.kind !== 'taken') throw new Error(claim.kind);
  const { held }: { readonly held: HeldJob } = claim;
  const change = (more: Partial<JobRecord>) => updateRecord(state, refs.job(ID), (current) => current && { ...current, ...more });
  const reserved = async () => (await readRecord(state, refs.job(ID)))?.deletions?.reserved;
  return { held, calls, change, reserved, limit: createDeletionLimit(held) };
}

describe('the deletion limit of a held job', () => {
  it('is used up by its limit alone, not by a fault', async () => {
    const { limit, calls } = await heldWith(5);
    expect([await limit.reserve(3), limit.isUsedUp()]).toEqual([3, false]);
    calls.fault = new FaultError('index.unreachable', 'gone');
    await expect(limit.reserve(4)).rejects.toMatchObject({ code: 'index.unreachable' });
    expect(limit.isUsedUp()).toBe(false);
    calls.fault = undefined;
    expect([await limit.reserve(4), limit.isUsedUp()]).toEqual([2, true]);
    limit.giveBack(1);
    expect(limit.isUsedUp()).toBe(false);
    expect([await limit.reserve(2), limit.isUsedUp()]).toEqual([1, true]);
  });

  it.each<[string, Partial<JobRecord>]>([
    ['once the job is paused', { state: 'paused' }],
    ['to a process that has lost its job', { lease: { worker: 'another' } }],
  ])('grants nothing %s', async (_, more) => {
    const { limit, change } = await heldWith(5);
    await change(more);
    await expect(limit.reserve(7)).rejects.toThrow('does not compare now');
    expect(limit.isUsedUp()).toBe(false);
  });

  it('counts a reservation whose answer was lost', async () => {
    const { limit, calls, reserved } = await heldWith(1_000);
    Object.assign(calls, { fault: new FaultError('index.unreachable', 'no answer'), loses: true });
    await expect(limit.reserve(100)).rejects.toThrow('no answer');
    calls.fault = undefined;
    expect(await limit.reserve(100)).toBe(100);
    expect(await reserved()).toBeGreaterThanOrEqual(200);
  });

  it('grants no more than the limit, and all of it before one is held', async () => {
    const asks = fc.array(fc.integer({ min: 1, max: 120 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 3_000 }), asks, async (most, all) => {
        const { limit, held, reserved } = await heldWith(most);
        const granted = await Promise.all(all.map((count) => limit.reserve(count)));
        const used = granted.reduce((sum, count) => sum + count, 0);
        expect(await reserved()).toBe(used);
        expect(used).toBe(
          Math.min(
            all.reduce((sum, count) => sum + count, 0),
            most,
          ),
        );
        await held.release(0);
      }),
    );
  });
});
