import { defined } from '../../src/base/defined.ts';
import { describe, expect, it } from 'vitest';
import type { Job } from '../../src/registry/contract/job.ts';
import { noCounts, type ReconcileCounts } from '../../src/records/comparison.ts';
import type { JobRecord } from '../../src/records/job.ts';
import type { StateStore } from '../../src/store/store.ts';
import { createReindexJobs } from '../../src/repair/job-requests.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { jobMadeAt } from '../support/fakes/gap-records.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { racingState } from '../support/fakes/racing-state.ts';
import { reindexRequest } from '../support/requests.ts';
import { createJobsWorld, type JobsWorld } from '../support/worlds/jobs.ts';
import { markId } from '../../src/records/dirty.ts';
import { transitionJob, noteCompared } from '../../src/repair/job-ends.ts';
import { createCloseGaps } from '../../src/repair/close-gaps.ts';
import { allGaps, markDirty } from '../../src/observing/gaps.ts';
import { BUCKET } from '../support/worlds/ingest.ts';
import { createGapWorld } from '../support/worlds/gaps.ts';

async function setUp(wrap: (state: StateStore) => StateStore = (state) => state) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  for (const bucket of ['photos', 'albums']) await updateRecord(state, refs.bucket(bucket), () => recordOf(bucket));
  return { state, clock, jobs: createReindexJobs({ state: wrap(state), clock, telemetry: createFakeTelemetry() }) };
}

async function change(state: StateStore, { id }: Pick<Job, 'id'>, to: Partial<JobRecord>): Promise<void> {
  await updateRecord(state, refs.job(id), (job) => job && { ...job, ...to });
}

const isSlot = (id: string) => id.startsWith('bucket:');

describe('requesting a re-index', () => {
  it('stores a queued job', async () => {
    const { jobs, clock, state } = await setUp();
    const job = await jobs.request(reindexRequest({ bucket: 'photos', prefix: 'a/' }), 'someone');
    expect(await readRecord(state, refs.job(job.id))).toEqual({
      id: expect.stringMatching(/^job-[0-9a-z]{9}-[0-9a-f]{12}$/),
      bucket: 'photos',
      prefix: 'a/',
      mode: 'apply',
      requestedBy: 'someone',
      state: 'queued',
      createdAtMs: clock.nowMs(),
      dueAtMs: clock.nowMs(),
    });
    expect(await jobs.get(job.id)).toEqual(job);
  });

  it('is refused while one is queued or running, naming it', async () => {
    const { jobs, state } = await setUp();
    const first = await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    const refused = { code: 'job.conflict', extra: { job_id: first.id } };
    await expect(jobs.request(reindexRequest({ bucket: 'photos', prefix: 'b/' }), 'someone')).rejects.toMatchObject(refused);
    await change(state, first, { state: 'running' });
    await expect(jobs.request(reindexRequest({ bucket: 'photos' }), 'someone')).rejects.toMatchObject(refused);
    expect((await jobs.list({ limit: 100 })).items).toHaveLength(1);
    expect(await jobs.request(reindexRequest({ bucket: 'albums' }), 'someone')).toMatchObject({ state: 'queued' });
  });

  it('is taken when the slot names a job that does not exist, and of a report neither takes the slot nor asks for it', async () => {
    const { jobs, state } = await setUp();
    const report = () => jobs.request(reindexRequest({ bucket: 'photos', mode: 'report' }), 'someone');
    await report();
    const lost = await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    expect(await report()).toMatchObject({ mode: 'report' });
    await removeRecord(state, refs.job(lost.id).id);
    expect(await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone')).toMatchObject({ state: 'queued' });
  });

  it('loses to one that took the slot between its look and its write', async () => {
    let winner: Job | undefined;
    const interfere = async (state: StateStore) => {
      winner = await createReindexJobs({ state, clock: createFakeClock(), telemetry: createFakeTelemetry() }).request(
        reindexRequest({ bucket: 'photos' }),
        'the first',
      );
    };
    const { jobs } = await setUp((state) => racingState(state, { times: 1, matches: isSlot, interfere }));
    await expect(jobs.request(reindexRequest({ bucket: 'photos' }), 'the second')).rejects.toMatchObject({ code: 'job.conflict' });
    expect((await jobs.list({ limit: 100 })).items).toEqual([winner]);
  });

  it.each(['elsewhere', 'x'.repeat(9_999)])('answers bucket.not-connected for %s', async (bucket) => {
    const { jobs } = await setUp();
    await expect(jobs.request(reindexRequest({ bucket }), 'someone')).rejects.toMatchObject({ code: 'bucket.not-connected' });
    expect((await jobs.list({ limit: 100 })).items).toEqual([]);
  });
});

describe('jobs', () => {
  it('are listed with those that have not ended first, each the newest first, in pages, by bucket, and without their examples', async () => {
    const { jobs, clock, state } = await setUp();
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      ids.push((await jobs.request(reindexRequest({ bucket: 'photos', mode: 'report' }), 'someone')).id);
      await clock.advance(1);
    }
    const [open = '', ...ended] = ids;
    const examples = { missing: [{ key: 'a' }] };
    for (const id of ended) await change(state, { id }, { state: 'done', examples });
    expect(await jobs.get(ended[0]!)).toMatchObject({ examples });
    const first = await jobs.list({ limit: 3 });
    const second = await jobs.list({ limit: 3, cursor: first.next ?? '' });
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([open, ...ended.toReversed()]);
    expect(second).not.toHaveProperty('next');
    expect([...first.items, ...second.items].flatMap((job) => job.examples ?? [])).toEqual([]);
    expect(await jobs.list({ bucket: 'photos', limit: 5 })).toEqual({ items: [...first.items, ...second.items] });
    expect(await jobs.list({ bucket: 'videos', limit: 5 })).toEqual({ items: [] });
  });

  it('Fix: that end while they are cancelled leave no deletions waiting that they did not hold back', async () => {
    let id = '';
    const interfere = async (state: StateStore) => change(state, { id }, { state: 'done', beginOrder: 9, counts: noCounts });
    const { jobs, state } = await setUp((each) => racingState(each, { times: 1, matches: (put) => id !== '' && isSlot(put), interfere }));
    const job = await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    await change(state, job, { state: 'running', beginOrder: 9 });
    ({ id } = job);
    await expect(jobs.cancel(id)).rejects.toMatchObject({ code: 'job.not-cancellable' });
    expect((await readRecord(state, refs.bucket('photos')))?.waiting ?? []).toEqual([]);
  });

  it.each(['job-000000000-000000000000', 'nonsense', '', 'x'.repeat(9_999)])('answer job.not-found for %s', async (id) => {
    const { jobs } = await setUp();
    await expect(jobs.get(id)).rejects.toMatchObject({ code: 'job.not-found' });
    await expect(jobs.cancel(id)).rejects.toMatchObject({ code: 'job.not-found' });
  });
});

const DAY_MS = 86_400_000;

async function endedJob(world: JobsWorld, number: number, finishedAtMs: number): Promise<string> {
  const id = `job-000000000-${String(number).padStart(12, '0')}`;
  const job = jobMadeAt(0, { id, mode: 'report', state: 'done', finishedAtMs });
  await updateRecord(world.state, refs.job(id), () => job);
  return id;
}

describe('the tidying of jobs', () => {
  it('removes jobs that ended a month ago, and all but the last thousand', async () => {
    const world = await createJobsWorld();
    const nowMs = world.clock.nowMs();
    await endedJob(world, 0, nowMs - 31 * DAY_MS);
    const young = await endedJob(world, 1, nowMs - 29 * DAY_MS);
    await world.tidy();
    expect((await world.allJobs()).map(({ id }) => id)).toEqual([young]);
    for (let number = 2; number < 1_005; number += 1) await endedJob(world, number, nowMs - number);
    const { id } = await world.request({ mode: 'report' });
    await world.tidy();
    const left = (await world.allJobs()).map((job) => job.id);
    expect(left).toHaveLength(1_001);
    expect(left).toContain(id);
    expect(left).not.toContain(young);
  });

  it('Fix: keeps a job whose deletions wait for a person, who answers by its name', async () => {
    const world = await createJobsWorld();
    const jobId = await endedJob(world, 0, 0);
    const waiting = (count: number | undefined) => [{ prefix: '', ...defined({ count }), jobId, order: 0, sinceMs: 0 }];
    const keeps = async (count: number | undefined): Promise<boolean> => {
      await updateRecord(world.state, refs.bucket('photos'), (bucket) => bucket && { ...bucket, waiting: waiting(count) });
      await world.tidy();
      return (await world.allJobs()).length > 0;
    };
    expect([await keeps(205), await keeps(undefined)]).toEqual([true, false]);
  });

  it('has a job whose requester died before it took the bucket take it, once no other has it', async () => {
    const world = await createJobsWorld();
    const { id } = await world.request();
    const named = async () => (await world.bucketRecord())?.applyJobId;
    await updateRecord(world.state, refs.bucket('photos'), (bucket) => bucket && { ...bucket, applyJobId: undefined });
    const job = await world.job(id);
    world.startWorker();
    await world.run(1_000);
    expect(await named()).toBe(id);
    await world.ended(id);
    const second: JobRecord = { ...job!, id: 'job-zzzzzzzzz-000000000000', state: 'queued' };
    await updateRecord(world.state, refs.job(second.id), () => ({ ...second, dueAtMs: world.clock.nowMs() }));
    await world.run(90_000);
    expect(await world.job(second.id)).toMatchObject({ state: 'done' });
  });
});

// What is kept of a job that has compared everything, or that ended early.

async function compared() {
  const world = await createGapWorld();
  const { state, clock } = world;
  return {
    ...world,
    record: () => readRecord(state, refs.bucket('photos')),
    async start(more: Partial<JobRecord>): Promise<JobRecord> {
      const own = { id: 'job-000000001-000000000001', requestedBy: 'http', startedAtMs: 1, comparingAtMs: 1 };
      const job = jobMadeAt(0, { ...own, ...more });
      await updateRecord(state, refs.job(job.id), () => job);
      return job;
    },
    counted: (more: Partial<ReconcileCounts>) => ({ atMs: clock.nowMs(), counts: { ...noCounts, ...more } }),
  };
}

describe('a report that ends early', () => {
  it.each(['cancel', 'fail'] as const)('keeps the differences that it found visible (%s)', async (kind) => {
    const world = await compared();
    const { atMs, counts } = world.counted({ missing: 25, phantom: 31 });
    const { id } = await world.start({ mode: 'report', counts });
    await transitionJob(world.state, id, { kind, atMs, error: { code: 's3.unavailable', reason: 'r' } });
    expect(await world.gap()).toMatchObject({ differences: [{ jobId: id, missing: 25, stale: 0, phantom: 31 }] });
    // it did not compare all of the bucket
    expect(await world.record()).not.toHaveProperty('lastComparedAtMs');
  });

  it('opens nothing that was closed since, if it had ended before', async () => {
    const world = await compared();
    const { atMs, counts } = world.counted({ missing: 1 });
    const { id } = await world.start({ mode: 'report', state: 'done', counts });
    expect(await transitionJob(world.state, id, { kind: 'cancel', atMs })).toBe('refused');
    expect(await world.gap()).toBeUndefined();
  });
});

it('Fix: documents that S3 refused to enrich are known of the bucket, until a compare finds none', async () => {
  const world = await compared();
  const job = await world.start({});
  // what was never to be filled in is no refusal
  await noteCompared(world.state, job, world.counted({ unenriched: 5 }));
  expect(await world.record()).not.toHaveProperty('unenriched');
  await noteCompared(world.state, { ...job, fill: true }, world.counted({ unenriched: 4 }));
  await noteCompared(world.state, { ...job, id: 'job-2' }, world.counted({ unenriched: 3 }));
  expect(await world.record()).toMatchObject({ unenriched: { jobId: job.id, count: 4 } });
  // one that does not wait for late events knows it too
  await noteCompared(world.state, { ...job, id: 'job-3', now: true }, world.counted({}));
  expect(await world.record()).not.toHaveProperty('unenriched');
});

it('documents that the index refused in the job of a prefix are known of the bucket, until a job has compared all of it', async () => {
  const world = await compared();
  const part = await world.start({ prefix: 'a/' });
  await noteCompared(world.state, part, world.counted({ refused: 2 }));
  expect(await world.record()).toMatchObject({ refused: { jobId: part.id, count: 2 } });
  // fewer in another part say nothing of these
  await noteCompared(world.state, { ...part, id: 'job-b', prefix: 'b/' }, world.counted({ refused: 1 }));
  await noteCompared(world.state, { ...part, id: 'job-c', prefix: 'b/' }, world.counted({}));
  expect(await world.record()).toMatchObject({ refused: { jobId: part.id, count: 2 } });
  await noteCompared(world.state, { ...part, id: 'job-d', prefix: 'b/' }, world.counted({ refused: 5 }));
  expect(await world.record()).toMatchObject({ refused: { jobId: 'job-d', count: 5 } });
  expect(await world.record()).not.toHaveProperty('lastComparedAtMs');
  await noteCompared(world.state, { ...part, id: 'job-e', prefix: '' }, world.counted({}));
  expect(await world.record()).not.toHaveProperty('refused');
  expect(await world.record()).toHaveProperty('lastComparedAtMs');
});

it.each<[string, number | undefined, Partial<JobRecord>, { readonly order: number; readonly lastSeenMs: number }?]>([
  ['of the whole bucket is kept, so that the next one keeps a distance', 60_001, {}],
  ['of a part is not', undefined, { prefix: 'a/' }],
  ['that a person started is not', undefined, { requestedBy: 'http' }],
  ['that the calendar started is not', undefined, { requestedBy: 'schedule' }],
  ['that is a first index, or follows a change by a person, is not', undefined, {}, { order: 0, lastSeenMs: 0 }],
])('the work of a repair %s', async (_, comparingMs, more, urgent) => {
  const world = await compared();
  await world.tell();
  await updateRecord(world.state, refs.gap(markId('photos')), (mark) => mark && { ...mark, urgent });
  const job = await world.start({ requestedBy: 'gap', ...more });
  await noteCompared(world.state, job, world.counted({ listed: 2_000_000, head_requests: 40_000, written: 1 }));
  expect((await world.record())?.repaired?.comparingMs).toBe(comparingMs);
});

it('Bug: names its gap as soon as it begins, and closes it as soon as it ends, not in the next round of all gaps', async () => {
  const world = await createJobsWorld();
  const { state, clock, telemetry, jobs } = world;
  const never = () => Promise.reject(new Error('nothing is due'));
  const closeGaps = createCloseGaps({ state, clock, telemetry, startJob: never, askToRepair: never });
  const report = { kind: 'loss', reason: 'lost', seenAtMs: clock.nowMs() - 5_000 } as const;
  await updateRecord(state, refs.bucket('other'), () => recordOf('other'));
  for (const bucket of [BUCKET, 'other']) await markDirty({ state, clock }, { bucket, ...report });
  const worker = world.startWorker({ lookAtGaps: (bucket, signal) => closeGaps(signal, bucket) });
  const { id } = await jobs.request(reindexRequest({ bucket: BUCKET }), 'someone');
  await world.run(5_000);
  expect(await readRecord(state, refs.gap(markId(BUCKET)))).toMatchObject({ jobId: id });
  await world.run(90_000);
  expect((await jobs.get(id)).state).toBe('done');
  expect((await allGaps(state)).map(({ bucket }) => bucket)).toEqual(['other']);
  await worker.stop();
});
