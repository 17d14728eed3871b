/** Small and medium buckets beside giant ones, in one process and in virtual time. */
import { describe, expect, it } from 'vitest';
import { noCounts } from '../../../src/domain/reindex/counts.ts';
import type { ReconcileTurn } from '../../../src/pipeline/compare/reconcile-turn.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { reindexRequest } from '../../support/requests.ts';
import { fill } from '../../support/worlds/jobs-fill.ts';
import { createJobsWorld } from '../../support/worlds/jobs.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';

const MINUTE_MS = 60_000;

describe('a small bucket’s job', () => {
  it.each([
    [1, 1],
    [8, 1],
    [8, 12],
  ])('is delayed by at most a minute in a process with %i slots by %i giant ones', async (listings, giants) => {
    const world = await createJobsWorld({ limits: { partDocumentsMin: 10, cutKeysMin: 10 } });
    // of which each job is cut into sixteen parts
    await fill(world, { both: 200 });
    const turn: ReconcileTurn = async ({ bucket, after }, { shouldEnd, durationMaxMs }, signal) => {
      const [isSmall, isMedium] = [bucket.bucket === 'small', bucket.bucket === 'medium'];
      const endMs = world.clock.monotonicMs() + (isSmall ? 1_000 : isMedium ? 10_000 : durationMaxMs);
      while (world.clock.monotonicMs() < endMs && !shouldEnd(after)) await world.clock.sleep(500, signal);
      return { cursor: `${after}x`, done: isSmall || isMedium, counts: noCounts, examples: {} };
    };
    const start = async (bucket: string): Promise<string> => {
      await updateRecord(world.state, refs.bucket(bucket), () => ({ ...bucketRecord, bucket }));
      return (await world.jobs.request(reindexRequest({ bucket, now: true }), 'test')).id;
    };
    world.startWorker({ listings, turn });
    const alone = world.clock.nowMs();
    await world.ended(await start('small'));
    const aloneMs = world.clock.nowMs() - alone;
    const ids: string[] = [];
    for (let giant = 0; giant < giants; giant += 1) ids.push(await start(`giant-${giant}`));
    await world.run(5 * MINUTE_MS);
    for (let time = 0; time < 3; time += 1) {
      const medium = time === 1 ? await start('medium') : undefined;
      const sinceMs = world.clock.nowMs();
      await world.ended(await start('small'));
      // it is looked at every five seconds
      expect(world.clock.nowMs() - sinceMs).toBeLessThanOrEqual(aloneMs + MINUTE_MS + 5_000);
      if (medium !== undefined) await world.ended(medium);
    }
    for (const id of ids) expect(await world.job(id)).toMatchObject({ state: 'running' });
  });
});
