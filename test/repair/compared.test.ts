/** What is kept of a job that has compared everything, or that ended early. */
import { describe, expect, it } from 'vitest';
import { noCounts, type ReconcileCounts } from '../../src/records/counts.ts';
import type { JobRecord } from '../../src/records/job.ts';
import { markId } from '../../src/records/dirty.ts';
import { transitionJob } from '../../src/repair/job-ends.ts';
import { noteCompared } from '../../src/repair/job-ends.ts';
import { readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { createGapWorld } from '../support/worlds/gaps.ts';

async function setUp() {
  const world = await createGapWorld();
  const { state, clock } = world;
  return {
    ...world,
    record: () => readRecord(state, refs.bucket('photos')),
    loss: () => world.gap(),
    async start(more: Partial<JobRecord>): Promise<JobRecord> {
      const own = {
        id: 'job-000000001-000000000001',
        bucket: 'photos',
        prefix: '',
        mode: 'apply',
        requestedBy: 'p',
        createdAtMs: 0,
      } as const;
      const job: JobRecord = { ...own, state: 'running', startedAtMs: 1, comparingAtMs: 1, ...more };
      await updateRecord(state, refs.job(job.id), () => job);
      return job;
    },
    counted: (more: Partial<ReconcileCounts>) => ({ atMs: clock.nowMs(), counts: { ...noCounts, ...more } }),
  };
}

describe('a report that ends early', () => {
  it.each(['cancel', 'fail'] as const)('keeps the differences that it found visible (%s)', async (kind) => {
    const world = await setUp();
    const { atMs, counts } = world.counted({ missing: 25, phantom: 31 });
    const { id } = await world.start({ mode: 'report', counts });
    await transitionJob(world.state, id, { kind, atMs, error: { code: 's3.unavailable', reason: 'r' } });
    expect(await world.loss()).toMatchObject({ differences: [{ jobId: id, missing: 25, stale: 0, phantom: 31 }] });
    // it did not compare all of the bucket
    expect(await world.record()).not.toHaveProperty('lastComparedAtMs');
  });

  it('forgets nothing if it found none so far', async () => {
    const world = await setUp();
    const whole = await world.start({ mode: 'report' });
    await noteCompared(world.state, whole, world.counted({ stale: 3 }));
    const { atMs, counts } = world.counted({});
    const { id } = await world.start({ id: 'job-000000002-000000000002', mode: 'report', counts });
    await transitionJob(world.state, id, { kind: 'cancel', atMs });
    expect(await world.loss()).toMatchObject({ differences: [{ jobId: whole.id, stale: 3 }] });
  });

  it('opens nothing that was closed since, if it had ended before', async () => {
    const world = await setUp();
    const { atMs, counts } = world.counted({ missing: 1 });
    const { id } = await world.start({ mode: 'report', state: 'done', counts });
    expect(await transitionJob(world.state, id, { kind: 'cancel', atMs })).toBe('refused');
    expect(await world.loss()).toBeUndefined();
  });
});

it('Fix: documents that S3 refused to enrich are known of the bucket, until a compare finds none', async () => {
  const world = await setUp();
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

describe('documents that the index refused', () => {
  it('in the job of a prefix are known of the bucket, until a job has compared all of it', async () => {
    const world = await setUp();
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
});

describe('the work of a repair of the whole bucket', () => {
  const repaired = async (more: Partial<JobRecord>, urgent?: { readonly order: number; readonly lastSeenMs: number }) => {
    const world = await setUp();
    await world.tell();
    await updateRecord(world.state, refs.gap(markId('photos')), (mark) => mark && { ...mark, urgent });
    const job = await world.start({ requestedBy: 'gap', ...more });
    await noteCompared(world.state, job, world.counted({ listed: 2_000_000, headRequests: 40_000, written: 1 }));
    return (await world.record())?.repaired?.comparingMs;
  };

  it('is kept, so that the next one keeps a distance', async () => {
    expect(await repaired({})).toBe(60_001);
  });

  it.each<[string, Partial<JobRecord>]>([
    ['of a part', { prefix: 'a/' }],
    ['that a person started', { requestedBy: 'http' }],
    ['that the calendar started', { requestedBy: 'schedule' }],
  ])('does not count %s', async (_, more) => {
    expect(await repaired(more)).toBeUndefined();
  });

  it('does not count of a first index, nor after a change by a person', async () => {
    expect(await repaired({}, { order: 0, lastSeenMs: 0 })).toBeUndefined();
  });
});
