import { describe, expect, it } from 'vitest';
import { createJobsWorld } from '../../support/jobs-world.ts';

describe('an apply job', () => {
  it('waits for late events behind its floor, and then makes the index say what the bucket says', async () => {
    const world = await createJobsWorld();
    for (let number = 0; number < 30; number += 1) await world.has(`new-${number}`, 'bucket');
    for (let number = 0; number < 10; number += 1) await world.has(`old-${number}`, 'both');
    await world.has('phantom', 'index');
    world.startWorker();
    const requestedAtMs = world.clock.nowMs();
    const { id } = await world.request();
    await world.run(5_000);
    const waiting = await world.job(id);
    expect(waiting).toMatchObject({ state: 'running', phase: 'waiting' });
    // D, and W + 3 s beyond it, in microseconds
    expect(waiting?.coversBeforeMs).toBeGreaterThanOrEqual(requestedAtMs - 1_000);
    expect((await world.bucketRecord())?.floor).toBe(((waiting?.coversBeforeMs ?? 0) + 18_000) * 1_000);
    expect(await world.found()).toContain('phantom');
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
});
