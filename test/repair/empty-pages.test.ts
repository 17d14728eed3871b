import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { fill } from '../support/worlds/jobs-fill.ts';
import { createJobsWorld, type JobsWorld } from '../support/worlds/jobs.ts';

const PAGE = 10;
/** The end of the first page, behind which pages without keys come. */
const BEFORE = 'both-00009';

/** A bucket in two parts. Behind the first page of the first one come so many pages without keys, each of which takes so long. */
async function worldWith(count: number, pageMs = 0): Promise<JobsWorld> {
  const world = await createJobsWorld({ limits: { partDocumentsMin: 25 } });
  await fill(world, { both: 60, bucket: 5, index: 5 });
  world.s3.pageSize = PAGE;
  world.s3.emptyPages = (after) => (after === BEFORE ? count : 0);
  world.s3.onPage = ({ objects, isTruncated }) =>
    objects.length > 0 || !isTruncated || pageMs === 0 ? undefined : world.clock.sleep(pageMs);
  return world;
}

const whole = { state: 'done', counts: { listed: 65, missing: 5, phantom: 5, written: 5, tombstones: 5 } } as const;

describe('pages of a listing without keys', () => {
  it('are passed however slow they are, while other parts end, and each counts as a request', async () => {
    // ninety of them take longer than an answer of S3 may be used
    const world = await worldWith(190, 400);
    world.startWorker();
    const { id } = await world.request({ now: true });
    await world.run(45_000);
    expect(await world.parts(id)).toHaveLength(1);
    const done = await world.ended(id);
    expect(done).toMatchObject(whole);
    expect(done.counts?.listRequests).toBe(world.s3.pages.length);
    expect(await world.found()).toEqual(world.inBucket());
    // none twice: the others are ordinary pages and probes for a cut
    expect(world.s3.pages.filter(({ token }) => token === '190').length).toBeLessThan(3);
  });

  it('fail the job after three attempts if S3 refuses a token each time, and the other part is compared', async () => {
    const world = await worldWith(500);
    world.s3.onPage = (_page, { token }) => {
      if (token === '250') throw new FaultError('object.failed', 'ListObjectsV2: 400 InvalidArgument');
    };
    world.startWorker();
    const failed = await world.ended((await world.request({ now: true })).id);
    const error = { code: 'object.failed', reason: 'ListObjectsV2: 400 InvalidArgument', after: BEFORE };
    expect(failed).toMatchObject({ state: 'failed', error });
    expect(await world.found()).not.toContain('index-00004');
  });
});

describe('pages without keys at the beginning of a listing', () => {
  async function worldBefore(count: number, fills: Parameters<typeof fill>[1]): Promise<JobsWorld> {
    const world = await createJobsWorld();
    await fill(world, fills);
    world.s3.emptyPages = (after) => (after === '' ? count : 0);
    return world;
  }

  it('keep no job from its beginning, and a bucket whose keys come behind them is not empty', async () => {
    const world = await worldBefore(450, { both: 20, index: 5 });
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'done', counts: { listed: 20, tombstones: 5 } });
    expect(done.counts?.listRequests).toBe(world.s3.pages.length);
    // and behind a floor and its wait
    expect(await world.ended((await world.request()).id)).toMatchObject({ state: 'done', counts: { listed: 20 } });
  });

  it('do not make an emptied bucket look like one that has keys', async () => {
    const world = await worldBefore(450, { index: 5 });
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'done', deletions: { limit: 0 }, counts: { held: 5 } });
    expect(await world.found()).toHaveLength(5);
  });

  it('fail a job whose first pages are refused each time', async () => {
    const world = await worldBefore(450, { both: 20 });
    world.s3.onPage = (_page, { token }) => {
      if (token === '120') throw new FaultError('object.failed', 'ListObjectsV2: 400 InvalidArgument');
    };
    world.startWorker();
    expect(await world.ended((await world.request()).id)).toMatchObject({ state: 'failed', error: { code: 'object.failed' } });
  });
});
