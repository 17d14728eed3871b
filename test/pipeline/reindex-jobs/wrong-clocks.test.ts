/** Workers whose clocks are wrong, by a day in both directions: what they leave behind blocks a range no longer than that of others. */
import { describe, expect, it } from 'vitest';
import { createSendTask } from '../../../src/pipeline/reindex-jobs/tasks.ts';
import type { QueueClient } from '../../../src/pipeline/ports/queues.ts';
import { fill, slowPages } from '../../support/worlds/jobs-fill.ts';
import { createJobsWorld, WORK_QUEUE, type JobsWorld } from '../../support/worlds/jobs.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A queue that refuses what SQS refuses. */
function strictQueues({ queues }: JobsWorld): QueueClient {
  return {
    ...queues,
    send: async (url, message) => {
      if ((message.delayS ?? 0) > 900) throw new Error(`InvalidParameterValue: DelaySeconds ${message.delayS}`);
      return queues.send(url, message);
    },
  };
}

/** A job of some 20 pages, whose only worker has a wrong clock and dies after five seconds. */
async function afterDeath(wrongMs: number) {
  const world = await createJobsWorld();
  await fill(world, { both: 400 });
  slowPages(world);
  const clock = { ...world.clock, nowMs: () => world.clock.nowMs() + wrongMs };
  const dying = world.startWorker({ name: 'dying', listings: 1, clock });
  const { id } = await world.request({ now: true });
  await world.run(5_000);
  dying.kill();
  expect((await world.ranges())[0]).toMatchObject({ lease: {}, cursor: '' });
  return { world, id };
}

describe('a worker that dies during a turn', () => {
  it.each([
    ['a day fast', DAY_MS],
    ['a day slow', -DAY_MS],
    ['an hour slow', -HOUR_MS],
    ['right', 0],
  ])('Fix: with a clock that is %s blocks its range for minutes', async (_, wrongMs) => {
    const { world, id } = await afterDeath(wrongMs);
    for (const name of ['a', 'b', 'c']) world.startWorker({ name, listings: 1, queues: strictQueues(world) });
    // its message comes back after a minute, its lease is watched for 75 s, and the pages take 20 s
    await world.run(60_000 + 75_000 + 40_000);
    expect(await world.job(id)).toMatchObject({ state: 'done', counts: { listed: 400 } });
  });

  it.each([
    ['a day fast', DAY_MS],
    ['a day slow', -DAY_MS],
  ])('Fix: with a clock that is %s, and whose message is lost, blocks its range for minutes', async (_, wrongMs) => {
    const { world, id } = await afterDeath(wrongMs);
    for (const { receiptHandle } of await world.queues.receive(WORK_QUEUE, { visibilityS: 0, max: 10 }))
      await world.queues.deleteBatch(WORK_QUEUE, [receiptHandle]);
    await world.clock.advance(MINUTE_MS);
    for (const { receiptHandle } of await world.queues.receive(WORK_QUEUE, { visibilityS: 0, max: 10 }))
      await world.queues.deleteBatch(WORK_QUEUE, [receiptHandle]);
    expect(world.messages()).toEqual([]);
    world.startWorker({ name: 'heir', listings: 1, queues: strictQueues(world) });
    await world.run(8 * MINUTE_MS);
    expect(await world.job(id)).toMatchObject({ state: 'done', counts: { listed: 400 } });
  });
});

it.each([
  ['slow', 'right', -HOUR_MS, 0],
  ['right', 'fast', 0, DAY_MS],
])('Fix: a range of a living worker with a %s clock is not taken by one with a %s clock', async (_, __, holderMs, otherMs) => {
  const world = await createJobsWorld();
  await fill(world, { both: 900 });
  slowPages(world);
  const clockOf = (wrongMs: number) => ({ ...world.clock, nowMs: () => world.clock.nowMs() + wrongMs });
  world.startWorker({ name: 'holder', listings: 1, clock: clockOf(holderMs) });
  const { id } = await world.request({ now: true });
  await world.run(2_000);
  world.startWorker({ name: 'other', clock: clockOf(otherMs) });
  const sendTask = createSendTask(world.queues, WORK_QUEUE);
  for (let seconds = 0; seconds < 25; seconds += 5) {
    await sendTask({ job: id, range: 0, turn: 0 });
    await world.run(5_000);
    const [range] = await world.ranges();
    // after its turn any worker may have it
    expect(range).toMatchObject(
      range?.turn === 0 ? { lease: { worker: expect.stringMatching(/^holder/) }, fruitless: 0 } : { fruitless: 0 },
    );
  }
  expect(world.telemetry.recorded('reindexTask')).toContainEqual(['leased']);
});

it('Fix: a task is never sent with a delay that SQS refuses', async () => {
  const world = await createJobsWorld();
  await createSendTask(strictQueues(world), WORK_QUEUE)({ job: 'job-000000000-000000000000' }, 86_400);
  expect(world.messages()).toHaveLength(1);
});

it('Fix: a job that is resumed long after its worker died continues at once', async () => {
  const { world, id } = await afterDeath(0);
  await world.jobs.pause(id);
  await world.run(2 * MINUTE_MS);
  world.startWorker({ name: 'heir', listings: 1 });
  await world.run(2 * MINUTE_MS);
  // far longer than a message is delayed (15 min) or a lease is watched (75 s)
  await world.clock.advance(2 * HOUR_MS);
  await world.jobs.resume(id, {});
  await world.run(75_000 + 40_000);
  expect(await world.job(id)).toMatchObject({ state: 'done' });
});
