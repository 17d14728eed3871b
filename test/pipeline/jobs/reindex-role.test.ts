import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/domain/fault.ts';
import { refs, updateRecord } from '../../../src/pipeline/state-records.ts';
import { createJobsWorld, WORK_QUEUE, type JobsWorld } from '../../support/jobs-world.ts';

async function fill(world: JobsWorld, counts: { readonly bucket?: number; readonly both?: number; readonly index?: number }, prefix = '') {
  for (const [where, count] of Object.entries(counts) as ['bucket' | 'both' | 'index', number][]) {
    for (let number = 0; number < count; number += 1) await world.has(`${prefix}${where}-${String(number).padStart(5, '0')}`, where);
  }
}

/** Pages that take so long that a job is seen on its way. */
function slowPages(world: JobsWorld, pageMs = 1_000, pageSize = 20): void {
  world.s3.pageSize = pageSize;
  world.s3.onPage = () => world.clock.sleep(pageMs);
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
    expect(waiting).toMatchObject({ state: 'running', phase: 'waiting' });
    // D, and W + 3 s beyond it, in microseconds
    expect(waiting?.coversBeforeMs).toBeGreaterThanOrEqual(requestedAtMs - 1_000);
    expect((await world.bucketRecord())?.floor).toBe(((waiting?.coversBeforeMs ?? 0) + 18_000) * 1_000);
    expect(await world.found()).toHaveLength(11);
    const done = await world.ended(id);
    expect(done).toMatchObject({
      state: 'done',
      counts: { listed: 40, equal: 10, missing: 30, phantom: 1, written: 30, tombstones: 1, headRequests: 1 },
      brake: { limit: 1_000, reserved: 1, waiting: 0 },
      rangesDone: 1,
    });
    expect(done.comparingAtMs).toBeGreaterThanOrEqual((waiting?.coversBeforeMs ?? 0) + 60_000);
    expect(await world.found()).toEqual(world.inBucket());
    expect(await world.ranges()).toEqual([]);
    expect((await world.bucketRecord())?.lastReindexAtMs).toBe(done.finishedAtMs);
    expect(world.messages()).toEqual([]);
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
    // a worker whose clock is an hour ahead receives the task
    await world.queues.send(WORK_QUEUE, { body: JSON.stringify({ job: id }), attributes: {} });
    const late = await createLateWorker(world);
    await world.run(5_000);
    expect(await world.job(id)).toEqual(record);
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
    expect((await world.bucketRecord())?.lastReindexAtMs).toBeUndefined();
  });

  it('of a prefix leaves everything else alone, and does not date the bucket', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 3, index: 3 }, 'a/');
    await fill(world, { bucket: 3, index: 3 }, 'b/');
    world.startWorker();
    const done = await world.ended((await world.request({ prefix: 'a/' })).id);
    expect(done).toMatchObject({ state: 'done', documentsAtStart: 3, counts: { listed: 3, tombstones: 3 } });
    expect((await world.found()).filter((key) => key.startsWith('b/'))).toEqual(['b/index-00000', 'b/index-00001', 'b/index-00002']);
    expect((await world.bucketRecord())?.lastReindexAtMs).toBeUndefined();
  });

  it('whose bucket was disconnected is cancelled', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 100 });
    slowPages(world);
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(3_000);
    const { id: recordId } = refs.bucket('photos');
    const entry = await world.state.get(recordId);
    await world.state.remove(recordId, entry?.version ?? '');
    expect(await world.ended(id)).toMatchObject({ state: 'cancelled' });
    expect(await world.ranges()).toEqual([]);
  });
});

/** A worker on another machine, whose clock is an hour ahead. */
async function createLateWorker(world: JobsWorld) {
  const clock = { ...world.clock, nowMs: () => world.clock.nowMs() + 3_600_000 };
  return world.startWorker({ name: 'ahead', clock });
}

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
      ranges: { cut: 1, done: 1, leased: 0 },
      progress: 1,
    });
    expect(view.examples?.phantom?.map(({ key }) => key)).toEqual(['index-00000', 'index-00001']);
    expect(view.costUsd).toBeCloseTo((2 * 0.005 + 2 * 0.0004) / 1_000);
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

describe('the brake', () => {
  it('pauses the job, says how many deletes wait, and lets so many through as it is told to', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 5, index: 1_205 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    const held = await world.ended(id);
    expect(held).toMatchObject({ state: 'paused', pausedBecause: 'brake', brake: { limit: 1_000, reserved: 1_000 } });
    expect(held.brake?.waiting).toBeGreaterThan(0);
    expect(await world.found()).toHaveLength(210);
    await expect(world.jobs.resume(id, {})).rejects.toMatchObject({ code: 'job.not-resumable', extra: { waiting: held.brake?.waiting } });
    await world.jobs.resume(id, { allowDeletes: 100 });
    expect(await world.ended(id)).toMatchObject({ state: 'paused', pausedBecause: 'brake', brake: { reserved: 1_100 } });
    expect(await world.found()).toHaveLength(110);
    await world.jobs.resume(id, { allowDeletes: 105 });
    const done = await world.ended(id);
    expect(done).toMatchObject({ state: 'done', counts: { tombstones: 1_205, phantom: 1_205 } });
    expect(await world.found()).toEqual(world.inBucket());
  });

  it('holds every delete of a bucket that is empty, however few there are', async () => {
    const world = await createJobsWorld();
    await fill(world, { index: 3 });
    world.startWorker();
    const { id } = await world.request({ now: true });
    expect(await world.ended(id)).toMatchObject({ state: 'paused', pausedBecause: 'brake', brake: { limit: 0, waiting: 3 } });
    expect(await world.found()).toHaveLength(3);
    const allowed = await world.request({ now: true, allowDeletes: 3 });
    expect(await world.ended(allowed.id)).toMatchObject({ state: 'done' });
    expect(await world.found()).toEqual([]);
  });

  it('knows no limit for a job that closes a gap of deletes, but for an empty bucket', async () => {
    for (const [left, state] of [
      [1, 'done'],
      [0, 'paused'],
    ] as const) {
      const world = await createJobsWorld();
      await fill(world, { both: left, index: 1_100 });
      const gap = { id: 'gap:photos:bulk-delete', bucket: 'photos', kind: 'bulk-delete', reason: 'r', count: 1, state: 'open' } as const;
      await updateRecord(world.state, refs.gap(gap.id), () => ({ ...gap, firstSeenMs: 0, lastSeenMs: 0 }));
      world.startWorker();
      const own = { bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'gap', gapIds: [gap.id] } as const;
      expect(await world.ended((await world.jobs.start(own)).id)).toMatchObject({ state, gapIds: [gap.id] });
      expect(await world.found()).toHaveLength(left === 1 ? 1 : 1_100);
    }
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
    const [range] = await world.ranges();
    expect(range?.lease).toBeUndefined();
    expect(range?.counts.listed).toBeGreaterThan(0);
    const pages = world.s3.pages.length;
    await world.run(300_000);
    expect(world.s3.pages).toHaveLength(pages);
    expect(await world.jobs.get(id)).toMatchObject({ counts: { listed: range?.counts.listed } });
    await world.jobs.resume(id, {});
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 400, equal: 400 } });
  });

  it('frees the bucket while it lasts: the paused job waits for the other one then', async () => {
    const world = await createJobsWorld();
    const first = await world.request();
    await world.jobs.pause(first.id);
    const second = await world.request();
    await expect(world.jobs.resume(first.id, {})).rejects.toMatchObject({ code: 'job.conflict', extra: { jobId: second.id } });
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

  it('leaves a job whose bucket another one has taken alone until that has ended', async () => {
    const world = await createJobsWorld();
    await fill(world, { both: 100 });
    slowPages(world);
    const worker = world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(3_000);
    await worker.stop();
    // as whoever resumed it would leave it, and died before the slot was asked for
    await world.jobs.pause(id);
    const other = await world.request();
    await updateRecord(world.state, refs.job(id), (job) => job && { ...job, state: 'running' as const });
    const pages = world.s3.pages.length;
    world.startWorker();
    await world.run(30_000);
    // one look at what the other begins with
    expect(world.s3.pages.length - pages).toBeLessThanOrEqual(1);
    await world.run(200_000);
    const ended = await world.ended(other.id);
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 100 } });
    expect((await world.job(id))?.finishedAtMs).toBeGreaterThan(ended.finishedAtMs ?? Infinity);
  });

  it('is refused where there is nothing to pause or to resume', async () => {
    const world = await createJobsWorld();
    const { id } = await world.request();
    await expect(world.jobs.resume(id, {})).rejects.toMatchObject({ code: 'job.not-resumable' });
    await world.jobs.cancel(id);
    await expect(world.jobs.pause(id)).rejects.toMatchObject({ code: 'job.not-pausable' });
    await expect(world.jobs.pause('job-nowhere')).rejects.toMatchObject({ code: 'job.not-found' });
  });

  it('and cancelling ends a job with what it has counted, and clears its ranges away', async () => {
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
    expect(await world.ranges()).toEqual([]);
    expect(await world.jobs.get(id)).toEqual(before);
    expect(world.messages()).toEqual([]);
  });
});

describe('what goes wrong', () => {
  it.each(['bucket.missing', 'object.denied'] as const)('%s fails the job at once, and deletes nothing', async (code) => {
    const world = await createJobsWorld();
    await fill(world, { both: 60, index: 60 });
    world.s3.pageSize = 20;
    world.s3.onPage = (_page, { after }) => {
      if (after !== '') throw new FaultError(code, 'said S3');
    };
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({
      state: 'failed',
      error: { code, reason: 'said S3', range: expect.stringContaining('0 (from the beginning') },
    });
    expect(await world.ranges()).toEqual([]);
    const lost = (await world.found()).filter((key) => key.startsWith('index')).length;
    expect(lost).toBe(60);
  });

  it.each(['bucket.missing', 'object.denied'] as const)('%s fails it before it begins, too', async (code) => {
    const world = await createJobsWorld();
    world.s3.onPage = () => {
      throw new FaultError(code, 'said S3');
    };
    world.startWorker();
    expect(await world.ended((await world.request()).id)).toMatchObject({ state: 'failed', error: { code } });
  });

  it.each(['s3.unavailable', 's3.throttled'] as const)('%s is waited out, however long it lasts', async (code) => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 60 });
    world.s3.pageSize = 20;
    let isBroken = true;
    world.s3.onPage = (_page, { after }) => {
      if (isBroken && after !== '') throw new FaultError(code, 'said S3');
    };
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(1_800_000);
    const view = await world.jobs.get(id);
    expect(view).toMatchObject({ state: 'running', lastFault: { code } });
    // once in fifteen seconds, not in a loop
    expect(world.s3.pages.length).toBeLessThan(300);
    isBroken = false;
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 60 } });
  });

  it('a listing that is out of order fails the job after three tries, naming the range, and deletes nothing', async () => {
    const world = await createJobsWorld();
    await fill(world, { index: 60, both: 60 });
    world.s3.pageSize = 20;
    world.s3.onPage = (_page, { after }) => {
      if (after > 'both-00030') throw new FaultError('listing.disorder', 'b before a');
    };
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'failed', error: { code: 'listing.disorder', range: expect.any(String) } });
    expect((await world.found()).filter((key) => key.startsWith('index'))).toHaveLength(60);
    expect(world.telemetry.told('jobEnded')).toHaveLength(1);
  });

  it('a range at which worker after worker dies fails its job after three of them', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 5 });
    const { id } = await world.request({ now: true });
    let deaths = 0;
    for (let count = 0; count < 5; count += 1) {
      const doomed = world.startWorker({
        name: `doomed-${count}`,
        turn: () => {
          deaths += 1;
          doomed.kill();
          return new Promise(() => {});
        },
      });
    }
    const failed = await world.ended(id);
    expect(failed).toMatchObject({ state: 'failed', error: { code: 'internal.unexpected', range: expect.stringContaining('0 (from') } });
    expect(deaths).toBe(3);
  });

  it('a turn that never ends is ended, and fails its job after three', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 5 });
    world.startWorker({
      turn: (_request, _controls, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    });
    expect(await world.ended((await world.request({ now: true })).id)).toMatchObject({
      state: 'failed',
      error: { code: 'internal.unexpected' },
    });
  });

  it('what is no task is counted and deleted', async () => {
    const world = await createJobsWorld();
    for (const body of ['', '{', '[]', '{"job":"photos"}', '{"job":"job-0mjwaid1k-5f3c4c82425c","range":-1}', '{"Records":[]}']) {
      await world.queues.send(WORK_QUEUE, { body, attributes: {} });
    }
    await world.queues.send(WORK_QUEUE, { body: '{"job":"job-0mjwaid1k-5f3c4c82425c","range":1}', attributes: {} });
    world.startWorker();
    await world.run(5_000);
    expect(world.messages()).toEqual([]);
    expect(world.telemetry.told('reindexTask').filter(([result]) => result === 'invalid')).toHaveLength(6);
  });
});
