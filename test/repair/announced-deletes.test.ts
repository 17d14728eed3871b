/** The consent that a job has when it is resumed; test/records/dirty.test.ts says for which jobs deletions are announced. */
import { describe, expect, it } from 'vitest';
import type { JobRecord } from '../../src/records/job.ts';
import { createGapWorld } from '../support/worlds/gaps.ts';

const MINUTE_MS = 60_000;

describe('the job of a bulk delete that waits for a person', () => {
  /** It compares, without a limit, and is paused. */
  async function paused() {
    const world = await createGapWorld();
    await world.tell();
    await world.after(MINUTE_MS);
    const job = await world.lastJob();
    const comparing = {
      state: 'running',
      startedAtMs: 1,
      comparingAtMs: 1,
      coversBeforeMs: world.clock.nowMs(),
    } as const;
    await world.setJob(job, { ...comparing, deletions: { reserved: 0 } });
    await world.jobs.pause(job?.id ?? '');
    await world.after(15_000);
    return { world, id: job?.id ?? '', deletions: async (): Promise<JobRecord['deletions']> => (await world.lastJob())?.deletions };
  }

  it('deletes what was announced when it is resumed', async () => {
    const { world, id, deletions } = await paused();
    await world.jobs.resume(id);
    expect(await deletions()).toEqual({ reserved: 0 });
  });

  it('Fix: deletes nothing when it is resumed after a loss was reported', async () => {
    const { world, id, deletions } = await paused();
    await world.tell({ kind: 'loss' });
    await world.jobs.resume(id);
    expect(await deletions()).toEqual({ limit: 0, reserved: 0 });
  });
});
