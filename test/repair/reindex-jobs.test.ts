import { describe, expect, it } from 'vitest';
import type { Job } from '../../src/registry/contract/job.ts';
import { noCounts } from '../../src/records/counts.ts';
import type { JobRecord } from '../../src/records/job.ts';
import type { StateStore } from '../../src/store/store.ts';
import { createReindexJobs } from '../../src/repair/job-requests.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { racingState } from '../support/fakes/racing-state.ts';
import { reindexRequest } from '../support/requests.ts';

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

  it.each(['paused', 'done', 'failed', 'cancelled'] as const)('is taken when the earlier one is %s', async (jobState) => {
    const { jobs, state } = await setUp();
    await change(state, await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone'), { state: jobState });
    expect(await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone')).toMatchObject({ state: 'queued' });
  });

  it('is taken when the slot names a job that does not exist', async () => {
    const { jobs, state } = await setUp();
    const lost = await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    await removeRecord(state, refs.job(lost.id).id);
    expect(await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone')).toMatchObject({ state: 'queued' });
  });

  it('of a report neither takes the slot nor asks for it', async () => {
    const { jobs } = await setUp();
    await jobs.request(reindexRequest({ bucket: 'photos', mode: 'report' }), 'someone');
    await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    expect(await jobs.request(reindexRequest({ bucket: 'photos', mode: 'report' }), 'someone')).toMatchObject({ mode: 'report' });
  });

  it('has one winner of many at the same moment, and leaves nothing of the others', async () => {
    const { jobs } = await setUp();
    const answers = await Promise.allSettled(
      Array.from({ length: 6 }, () => jobs.request(reindexRequest({ bucket: 'photos' }), 'someone')),
    );
    const won = answers.filter((answer) => answer.status === 'fulfilled').map(({ value }) => value);
    expect(won).toHaveLength(1);
    for (const answer of answers) {
      if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'job.conflict', extra: { job_id: won[0]?.id } });
    }
    expect((await jobs.list({ limit: 100 })).items).toEqual(won);
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

  it('is repeated when the slot was taken and left between its look and its write', async () => {
    const interfere = async (state: StateStore) => {
      const others = createReindexJobs({ state, clock: createFakeClock(), telemetry: createFakeTelemetry() });
      await others.cancel((await others.request(reindexRequest({ bucket: 'photos' }), 'the first')).id);
    };
    const { jobs } = await setUp((state) => racingState(state, { times: 1, matches: isSlot, interfere }));
    expect(await jobs.request(reindexRequest({ bucket: 'photos' }), 'the second')).toMatchObject({
      requested_by: 'the second',
      state: 'queued',
    });
  });

  it.each<[string, { readonly bucket: string }]>([
    ['bucket.not-connected', { bucket: 'elsewhere' }],
    ['bucket.not-connected', { bucket: 'x'.repeat(9_999) }],
  ])('answers %s where it must', async (code, request) => {
    const { jobs } = await setUp();
    await expect(jobs.request(reindexRequest(request), 'someone')).rejects.toMatchObject({ code });
    expect((await jobs.list({ limit: 100 })).items).toEqual([]);
  });
});

describe('jobs', () => {
  it('are listed with those that have not ended first, each the newest first, in pages, and by bucket', async () => {
    const { jobs, clock, state } = await setUp();
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      ids.push((await jobs.request(reindexRequest({ bucket: 'photos', mode: 'report' }), 'someone')).id);
      await clock.advance(1);
    }
    const [open = '', ...ended] = ids;
    for (const id of ended) await change(state, await jobs.get(id), { state: 'done' });
    const first = await jobs.list({ limit: 3 });
    const second = await jobs.list({ limit: 3, cursor: first.next ?? '' });
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual([open, ...ended.toReversed()]);
    expect(second).not.toHaveProperty('next');
    expect(await jobs.list({ bucket: 'photos', limit: 5 })).toEqual({ items: [...first.items, ...second.items] });
    expect(await jobs.list({ bucket: 'videos', limit: 5 })).toEqual({ items: [] });
  });

  it('are listed without their examples, which make a page large', async () => {
    const { jobs, state } = await setUp();
    const job = await jobs.request(reindexRequest({ bucket: 'photos', mode: 'report' }), 'someone');
    const examples = { missing: [{ key: 'a' }] };
    await change(state, job, { state: 'done', examples });
    expect(await jobs.get(job.id)).toMatchObject({ examples });
    expect((await jobs.list({ limit: 100 })).items).toEqual([expect.not.objectContaining({ examples })]);
  });

  it('that are queued, running or paused can be cancelled, which frees the bucket, and others cannot', async () => {
    for (const jobState of ['queued', 'running', 'paused'] as const) {
      const { jobs, state, clock } = await setUp();
      const job = await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
      await change(state, job, { state: jobState });
      await clock.advance(7);
      expect(await jobs.cancel(job.id)).toEqual({ ...job, state: 'cancelled', finished_at: new Date(clock.nowMs()).toISOString() });
      expect(await jobs.request(reindexRequest({ bucket: 'photos' }), 'someone')).toMatchObject({ state: 'queued' });
      for (const ended of ['done', 'failed', 'cancelled'] as const) {
        await change(state, job, { state: ended });
        await expect(jobs.cancel(job.id)).rejects.toMatchObject({ code: 'job.not-cancellable' });
        expect(await jobs.get(job.id)).toMatchObject({ state: ended });
      }
    }
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
