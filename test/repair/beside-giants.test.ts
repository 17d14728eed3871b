/** Small and medium buckets beside giant ones, in one process and in virtual time. */
import { expect, it } from 'vitest';
import { noCounts } from '../../src/records/comparison.ts';
import type { ReconcileTurn } from '../../src/repair/reconcile-turn.ts';
import { createSlots } from '../../src/repair/slots.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { reindexRequest } from '../support/requests.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { settled } from '../support/worlds/ingest.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const MINUTE_MS = 60_000;

/** A world in which jobs of `small` take a second, those of `medium` ten, and all others go on for ever, in sixteen parts each. */
async function createWorld() {
  const world = await createJobsWorld({ cutKeysMin: 10 });
  await world.hasMany({ both: 200 });
  const turn: ReconcileTurn = async ({ bucket, after }, { shouldEnd, isOver }, signal) => {
    const [isSmall, isMedium] = [bucket.bucket === 'small', bucket.bucket === 'medium'];
    const endMs = world.clock.monotonicMs() + (isSmall ? 1_000 : isMedium ? 10_000 : Infinity);
    while (world.clock.monotonicMs() < endMs && !shouldEnd() && !isOver()) await world.clock.sleep(500, signal);
    return { cursor: `${after}x`, done: isSmall || isMedium, counts: { ...noCounts, listed: 1 }, examples: {} };
  };
  const start = async (bucket: string): Promise<string> => {
    await updateRecord(world.state, refs.bucket(bucket), () => ({ ...bucketRecord, bucket }));
    return (await world.jobs.request(reindexRequest({ bucket, now: true }), 'test')).id;
  };
  return { ...world, turn, start };
}

it.each([
  [1, 5, 5],
  [8, 40, 5],
  // of which most have had no turn yet
  [8, 40, 0],
])(
  'a small bucket’s job is delayed by at most a minute in a process with %i slots by %i giant ones, after %i minutes',
  async (listings, giants, minutes) => {
    const { start, turn, ...world } = await createWorld();
    world.startWorker({ listings, turn });
    const alone = world.clock.nowMs();
    await world.ended(await start('small'));
    const aloneMs = world.clock.nowMs() - alone;
    const ids: string[] = [];
    for (let giant = 0; giant < giants; giant += 1) ids.push(await start(`giant-${giant}`));
    await world.run(minutes * MINUTE_MS);
    for (let time = 0; time < 3; time += 1) {
      const medium = time === 1 ? await start('medium') : undefined;
      const sinceMs = world.clock.nowMs();
      await world.ended(await start('small'));
      // it is looked at every five seconds
      expect(world.clock.nowMs() - sinceMs).toBeLessThanOrEqual(aloneMs + MINUTE_MS + 5_000);
      if (medium !== undefined) await world.ended(medium);
    }
    for (const id of ids) expect(await world.job(id)).toMatchObject({ state: 'running' });
  },
);

it('Fix: a slot is for the job that has waited for five minutes, however many come after it', async () => {
  const clock = createFakeClock();
  const slots = createSlots({ clock, telemetry: createFakeTelemetry(), slotsMax: 1, indexIsSlow: () => false });
  const begun: string[] = [];
  const never = new AbortController().signal;
  for (let at = 0; at < 40; at += 1) {
    const jobId = `job-${at}`;
    void slots.run({ jobId, isNew: () => true, isUncuttable: false }, () => (begun.push(jobId), clock.sleep(20_000, never)), never);
    for (let seconds = 0; seconds < 10; seconds += 1) {
      await clock.advance(1_000);
      await settled();
    }
  }
  expect(begun).toContain('job-1');
  expect(begun.indexOf('job-2')).toBeGreaterThan(begun.indexOf('job-1'));
});

it('more giant jobs than a process has slots for spread to the processes that start later', async () => {
  const { start, turn, ...world } = await createWorld();
  world.startWorker({ name: 'first', listings: 4, turn });
  const ids: string[] = [];
  for (let giant = 0; giant < 20; giant += 1) ids.push(await start(`giant-${giant}`));
  await world.run(2 * MINUTE_MS);
  world.startWorker({ name: 'second', listings: 4, turn });
  await world.run(5 * MINUTE_MS);
  const holders = (await world.allJobs()).map(({ lease }) => lease?.worker.split('/')[0]);
  expect(holders.filter((name) => name === 'second').length).toBeGreaterThanOrEqual(4);
  const compared = await Promise.all(ids.map(async (id) => (await world.job(id))?.counts?.listed ?? 0));
  // none of them is forgotten
  expect(Math.min(...compared)).toBeGreaterThan(0);
});
