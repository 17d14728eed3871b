/** Workers whose clocks are wrong, by a day in both directions: what they leave behind blocks a job no longer than that of others. */
import { describe, expect, it } from 'vitest';
import { fill, slowPages } from '../support/worlds/jobs-fill.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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
  expect(await world.job(id)).toMatchObject({ lease: {}, state: 'running' });
  return { world, id };
}

describe('a worker that dies during a turn', () => {
  it.each([
    ['a day fast', DAY_MS],
    ['a day slow', -DAY_MS],
  ])('Fix: with a clock that is %s blocks its job for minutes', async (_, wrongMs) => {
    const { world, id } = await afterDeath(wrongMs);
    for (const name of ['a', 'b', 'c']) world.startWorker({ name, listings: 1 });
    // it is due after 20 s, its lease is watched for a minute, and the pages take 20 s
    await world.run(20_000 + 60_000 + 40_000);
    expect(await world.job(id)).toMatchObject({ state: 'done', counts: { listed: 400 } });
  });
});

it('Fix: a job that is resumed long after its worker died continues at once', async () => {
  const { world, id } = await afterDeath(0);
  await world.jobs.pause(id);
  await world.run(2 * MINUTE_MS);
  world.startWorker({ name: 'heir', listings: 1 });
  await world.run(2 * MINUTE_MS);
  // far longer than anything is put off (5 min) or a lease is watched (60 s)
  await world.clock.advance(2 * HOUR_MS);
  await world.jobs.resume(id);
  await world.run(40_000);
  expect(await world.job(id)).toMatchObject({ state: 'done' });
});
