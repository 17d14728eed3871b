import { describe, expect, it } from 'vitest';
import type { JobRecord } from '../../src/records/job.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { createJobsWorld, type JobsWorld } from '../support/worlds/jobs.ts';

const DAY_MS = 86_400_000;

function look(world: JobsWorld): Promise<void> {
  return world.tidy();
}

async function endedJob(world: JobsWorld, number: number, finishedAtMs: number): Promise<string> {
  const id = `job-000000000-${String(number).padStart(12, '0')}`;
  const job: JobRecord = {
    id,
    bucket: 'photos',
    prefix: '',
    mode: 'report',
    requestedBy: 'test',
    state: 'done',
    createdAtMs: 0,
    finishedAtMs,
  };
  await updateRecord(world.state, refs.job(id), () => job);
  return id;
}

describe('the tidying of jobs', () => {
  it('removes jobs that ended a month ago, and all but the last thousand', async () => {
    const world = await createJobsWorld();
    const nowMs = world.clock.nowMs();
    await endedJob(world, 0, nowMs - 31 * DAY_MS);
    const young = await endedJob(world, 1, nowMs - 29 * DAY_MS);
    await look(world);
    expect((await world.allJobs()).map(({ id }) => id)).toEqual([young]);
    for (let number = 2; number < 1_005; number += 1) await endedJob(world, number, nowMs - number);
    const { id } = await world.request({ mode: 'report' });
    await look(world);
    const left = (await world.allJobs()).map((job) => job.id);
    expect(left).toHaveLength(1_001);
    expect(left).toContain(id);
    expect(left).not.toContain(young);
  });

  it('Fix: keeps a job whose deletions wait for a person, who answers by its name', async () => {
    const world = await createJobsWorld();
    const jobId = await endedJob(world, 0, 0);
    const waiting = (count: number) => [{ prefix: '', count, jobId, order: 0, sinceMs: 0 }];
    const keeps = async (count: number): Promise<boolean> => {
      await updateRecord(world.state, refs.bucket('photos'), (bucket) => bucket && { ...bucket, waiting: waiting(count) });
      await look(world);
      return (await world.allJobs()).length > 0;
    };
    expect([await keeps(205), await keeps(0)]).toEqual([true, false]);
  });

  it('has a job whose requester died before it took the bucket take it, and sets it aside where another has it', async () => {
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
    const third: JobRecord = { ...job!, id: 'job-zzzzzzzzz-000000000001', state: 'queued' };
    const fourth = await world.request({ now: true });
    await world.jobs.get(fourth.id);
    await updateRecord(world.state, refs.job(third.id), () => ({ ...third, dueAtMs: world.clock.nowMs() }));
    await world.run(90_000);
    expect((await world.job(third.id))?.state).toMatch(/paused|done/);
  });
});
