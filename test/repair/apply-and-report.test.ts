import { describe, expect, it } from 'vitest';
import { createJobsWorld } from '../support/worlds/jobs.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';

describe('an apply job', () => {
  it('waits for late events behind its floor, and then makes the index say what the bucket says', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ bucket: 30, both: 10, index: 1 });
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
      counts: { listed: 40, equal: 10, missing: 30, phantom: 1, written: 30, tombstones: 1, head_requests: 1 },
      deletions: { limit: 1_000, reserved: 1 },
    });
    expect(done.comparingAtMs).toBeGreaterThanOrEqual((waiting?.coversBeforeMs ?? 0) + 60_000);
    expect(await world.found()).toEqual(world.inBucket());
    expect((await world.bucketRecord())?.lastComparedAtMs).toBe(done.finishedAtMs);
    // the floor is never lowered
    await updateRecord(world.state, refs.bucket('photos'), (bucket) => bucket && { ...bucket, floor: Number.MAX_SAFE_INTEGER });
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
    const clock = { ...world.clock, nowMs: () => world.clock.nowMs() + 3_600_000 };
    const late = world.startWorker({ name: 'ahead', clock });
    await world.run(20_000);
    expect(await world.job(id)).toMatchObject({ state: 'running', waitUntilMs: record?.waitUntilMs });
    // each time that one of the two looks
    expect(world.s3.pages.length - asked).toBeGreaterThan(1);
    expect(world.s3.pages.length - asked).toBeLessThan(2 * 20);
    await late.stop();
  });

  it('that was asked for now neither waits nor certifies, and a report beside it waits for no event', async () => {
    const world = await createJobsWorld();
    await world.hasMany({ bucket: 5 });
    world.startWorker();
    const done = await world.ended((await world.request({ now: true })).id);
    expect(done).toMatchObject({ state: 'done', counts: { written: 5 } });
    expect(done.coversBeforeMs).toBeUndefined();
    expect(await world.bucketRecord()).toMatchObject({ floor: 0 });
    expect((await world.bucketRecord())?.lastComparedAtMs).toBeUndefined();
    await world.request();
    const report = await world.ended((await world.request({ mode: 'report' })).id);
    expect([report.state, report.coversBeforeMs]).toEqual(['done', undefined]);
  });

  it.each([
    ['compared', true],
    ['waited for late events', false],
  ])('whose bucket was disconnected while it %s is cancelled', async (_, now) => {
    const world = await createJobsWorld();
    await world.hasMany({ bucket: 100 });
    world.slowPages(10_000);
    world.startWorker();
    const { id } = await world.request({ now });
    await world.run(10_000);
    const { id: recordId } = refs.bucket('photos');
    const entry = await world.state.get(recordId);
    await world.state.remove(recordId, entry?.version ?? '');
    expect(await world.ended(id)).toMatchObject({ state: 'cancelled' });
  });
});

it('a first index of one long turn shows what is listed and how fast from its first pages on, and in the end counts each key once', async () => {
  const world = await createJobsWorld();
  await world.hasMany({ bucket: 1_000 });
  // a hundred pages that take 20 seconds together; looks at single keys, which find where parts are cut, take no time
  world.s3.pageSize = 10;
  world.s3.onPage = ({ objects }) => (objects.length > 1 ? world.clock.sleep(200) : undefined);
  world.startWorker({ listings: 1 });
  const { id } = await world.request({ now: true });
  await world.run(5_000);
  const seen: number[] = [];
  for (let seconds = 0; seconds < 12; seconds += 6) {
    const view = await world.jobs.get(id);
    expect(view).toMatchObject({ state: 'running', phase: 'comparing' });
    expect(view.objects_per_s).toBeGreaterThan(0);
    // what is written of a page counts before the whole page does
    expect(view.counts?.written).toBeGreaterThanOrEqual(view.counts?.listed ?? 0);
    seen.push(view.counts?.listed ?? 0);
    await world.run(6_000);
  }
  expect(seen[0]).toBeGreaterThan(0);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(new Set(seen).size).toBe(seen.length);
  expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { listed: 1_000, missing: 1_000, written: 1_000 } });
});

it('pages of a listing without keys are passed however slow they are, while other parts end, and each counts as a request', async () => {
  const world = await createJobsWorld();
  await world.hasMany({ both: 60, bucket: 5, index: 5 });
  world.s3.pageSize = 10;
  // ninety of them, behind the first page, take longer than an answer of S3 may be used
  world.s3.emptyPages = (after) => (after === 'both-00009' ? 190 : 0);
  world.s3.onPage = ({ objects, isTruncated }) => (objects.length > 0 || !isTruncated ? undefined : world.clock.sleep(400));
  world.startWorker();
  const { id } = await world.request({ now: true });
  await world.run(45_000);
  expect(await world.parts(id)).toHaveLength(1);
  const done = await world.ended(id);
  expect(done).toMatchObject({ state: 'done', counts: { listed: 65, missing: 5, phantom: 5, written: 5, tombstones: 5 } });
  expect(done.counts?.list_requests).toBe(world.s3.pages.length);
  expect(await world.found()).toEqual(world.inBucket());
  // none twice: the others are ordinary pages and probes for a cut
  expect(world.s3.pages.filter(({ token }) => token === '190').length).toBeLessThan(3);
});

it('pages without keys at the beginning of a listing keep no job from its beginning, make no bucket look empty, and none that was emptied look like one that has keys', async () => {
  const world = await createJobsWorld();
  await world.hasMany({ both: 20, index: 5 });
  world.s3.emptyPages = (after) => (after === '' ? 450 : 0);
  world.startWorker();
  const done = await world.ended((await world.request({ now: true })).id);
  expect(done).toMatchObject({ state: 'done', counts: { listed: 20, tombstones: 5 } });
  expect(done.counts?.list_requests).toBe(world.s3.pages.length);
  // and behind a floor and its wait
  expect(await world.ended((await world.request()).id)).toMatchObject({ state: 'done', counts: { listed: 20 } });
  world.s3.objects.clear();
  const emptied = await world.ended((await world.request({ now: true })).id);
  expect(emptied).toMatchObject({ state: 'done', deletions: { limit: 0 }, counts: { held: 20 } });
  expect(await world.found()).toHaveLength(20);
});
