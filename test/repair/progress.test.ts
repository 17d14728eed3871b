import { describe, expect, it } from 'vitest';
import { fill } from '../support/worlds/jobs-fill.ts';
import { createJobsWorld, type JobsWorld } from '../support/worlds/jobs.ts';

/** A hundred pages that take 20 seconds together; looks at single keys, which find where parts are cut, take no time. */
function slowPages({ s3, clock }: JobsWorld): void {
  s3.pageSize = 10;
  s3.onPage = ({ objects }) => (objects.length > 1 ? clock.sleep(200) : undefined);
}

describe('a first index of one long turn', () => {
  it('shows what is listed and how fast from its first pages on, and in the end counts each key once', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 1_000 });
    slowPages(world);
    world.startWorker({ listings: 1 });
    const { id } = await world.request({ now: true });
    await world.run(3_000);
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

  it('stores none for a turn that is over within a second', async () => {
    const world = await createJobsWorld();
    await fill(world, { bucket: 40 });
    let puts = 0;
    world.startWorker({
      tap: (call, moment) => {
        if (moment === 'after' && call.startsWith('put job:')) puts += 1;
      },
    });
    const { id } = await world.request({ now: true });
    expect(await world.ended(id)).toMatchObject({ state: 'done' });
    // claimed, begun, compared, looked at before its end, ended
    expect(puts).toBeLessThanOrEqual(5);
  });
});
