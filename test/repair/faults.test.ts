import { describe, expect, it } from 'vitest';
import { createJobsWorld } from '../support/worlds/jobs.ts';
import { FaultError } from '../../src/base/fault.ts';
import { gapsOf } from '../../src/observing/gaps.ts';
import { BUCKET } from '../support/worlds/ingest.ts';

describe('what goes wrong', () => {
  it('what a bucket refuses makes a running job wait, however long it lasts, which deletes nothing and keeps its place', async () => {
    const code = 'bucket.missing';
    const world = await createJobsWorld();
    await world.hasMany({ both: 60, index: 60 });
    world.s3.pageSize = 20;
    let isBroken = true;
    world.s3.onPage = (_page, { after }) => {
      if (isBroken && after !== '') throw new FaultError(code, 'said S3');
    };
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(30_000);
    const compared = (await world.parts(id)).map(({ cursor }) => cursor);
    const pages = world.s3.pages.length;
    await world.run(600_000);
    // two pages each time: soon at first, then once a minute
    expect(world.s3.pages.length - pages).toBeLessThan(2 * 14);
    expect(await world.jobs.get(id)).toMatchObject({ state: 'running', last_fault: { code, reason: 'said S3' } });
    expect((await world.parts(id)).map(({ cursor }) => cursor)).toEqual(compared);
    expect((await world.found()).filter((key) => key.startsWith('index'))).toHaveLength(60);
    isBroken = false;
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 60, tombstones: 60 } });
  });

  it('a job that a gap requested waits where it cannot begin, shows why, and begins when it can', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ bucket: 5 });
    let isBroken = true;
    world.s3.onPage = () => {
      if (isBroken) throw new FaultError('bucket.missing', 'said S3');
    };
    world.startWorker();
    const { id } = await world.jobs.start({ bucket: BUCKET, prefix: '', mode: 'apply', requestedBy: 'gap' });
    await world.run(600_000);
    expect(await world.jobs.get(id)).toMatchObject({ state: 'queued', last_fault: { code: 'bucket.missing', reason: 'said S3' } });
    expect(world.s3.pages.length).toBeLessThan(15);
    isBroken = false;
    const done = await world.ended(id);
    expect(done).toMatchObject({ state: 'done', counts: { missing: 5 } });
    expect(done).not.toHaveProperty('waits');
  });

  it('Fix: a key that S3 refused fails the job even if another process ends it, in a report and beside the gaps of eight keys', async () => {
    for (const mode of ['report', 'apply'] as const) {
      const world = await createJobsWorld();
      for (let number = 0; number < 9; number += 1) {
        await world.hasMany({ both: 20 }, `a/${number}/`);
        await world.has(`a/${number}/refused`, 'index');
      }
      await world.hasMany({ both: 300 }, 'z/');
      world.slowPages();
      world.s3.onHead = (key) => {
        if (key.endsWith('refused')) throw new FaultError('object.denied', 'the bucket policy');
      };
      const worker = world.startWorker({ listings: 1 });
      const { id } = await world.request({ mode, ...(mode === 'apply' && { now: true }) });
      while (((await world.parts(id))[0]?.cursor ?? '') < 'z') await world.run(1_000);
      await world.during(worker.stop());
      world.startWorker();
      const reason = `could not compare a/${mode === 'report' ? 0 : 8}/refused: the bucket policy`;
      const error = { code: 'object.denied', reason };
      expect(await world.ended(id)).toMatchObject({ state: 'failed', error, counts: { phantom: 9, tombstones: 0 } });
      expect(await gapsOf(world.state, BUCKET)).toHaveLength(mode === 'apply' ? 8 : 1);
    }
  });

  it('answers of S3 that always come too late are waited out and not repeated in a loop', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ bucket: 5 });
    let isSlow = true;
    world.s3.onPage = async () => {
      if (isSlow) await world.clock.sleep(31_000);
    };
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(1_800_000);
    expect(await world.jobs.get(id)).toMatchObject({ state: 'running', last_fault: { code: 'index.overloaded' } });
    // one page in each turn that takes 31 s and in each pass that follows it, and then a wait of a minute
    expect(world.s3.pages.length).toBeLessThan(60);
    isSlow = false;
    expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 5, written: 5 } });
  });

  it('a listing that is out of order fails the job after three tries, naming the key, and deletes nothing', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ index: 60, both: 60 });
    world.s3.pageSize = 20;
    world.s3.onPage = (_page, { after }) => {
      if (after > 'both-00030') throw new FaultError('listing.disorder', 'b before a');
    };
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'failed', error: { code: 'listing.disorder', after: 'both-00039' } });
    expect((await world.found()).filter((key) => key.startsWith('index'))).toHaveLength(60);
    expect(world.telemetry.logged('job ended')).toHaveLength(1);
  });

  it('a turn that never ends is ended, and fails its job after three', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ bucket: 5 });
    world.startWorker({
      turn: (_request, _controls, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    });
    expect(await world.ended((await world.request({ now: true })).id)).toMatchObject({
      state: 'failed',
      error: { code: 'internal.unexpected' },
    });
  });

  it.each([
    ['what a bucket refuses to a person fails it at once', 'object.denied', 1],
    ['what the job itself is to blame for is tried three times, some seconds apart', 'listing.disorder', 3],
  ] as const)('before a job begins, %s', async (_, code, tries) => {
    const world = await createJobsWorld();
    world.s3.onPage = () => {
      throw new FaultError(code, 'said S3');
    };
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(15_000);
    expect(world.s3.pages).toHaveLength(Math.min(tries, 2));
    expect(await world.ended(id)).toMatchObject({ state: 'failed', error: { code } });
    expect(world.s3.pages).toHaveLength(tries);
  });
});
