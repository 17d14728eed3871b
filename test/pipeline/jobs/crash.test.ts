/** Every worker may die between any two of its steps: the next one ends the job, with every key compared once. */
import { describe, expect, it } from 'vitest';
import { createJobsWorld, type JobsWorld } from '../../support/jobs-world.ts';

const OBJECTS = 240;
const LIMITS = { rangeDocumentsMin: 60, splitKeysMin: 50 };

async function createWorld(): Promise<JobsWorld> {
  const world = await createJobsWorld({ limits: LIMITS });
  for (let number = 0; number < OBJECTS; number += 1) {
    await world.has(`key-${String(number).padStart(5, '0')}`, number % 3 === 0 ? 'both' : number % 3 === 1 ? 'bucket' : 'index');
  }
  world.s3.pageSize = 50;
  return world;
}

/** All calls that one worker makes for one job that nobody disturbs. */
async function callsOfOneJob(): Promise<readonly string[]> {
  const calls: string[] = [];
  const world = await createWorld();
  world.startWorker({
    tap: (call, moment) => {
      if (moment === 'before') calls.push(call);
    },
  });
  await world.ended((await world.request({ now: true })).id);
  await world.run(1_000);
  return calls;
}

async function expectDone(world: JobsWorld, id: string): Promise<void> {
  expect(await world.ended(id)).toMatchObject({
    state: 'done',
    counts: { listed: (OBJECTS * 2) / 3, phantom: OBJECTS / 3 },
  });
  expect(await world.found()).toEqual(world.inBucket());
  // what the dead one had comes back, and finds nothing to do
  await world.run(300_000);
  expect(await world.ranges()).toEqual([]);
  expect(world.messages()).toEqual([]);
}

const calls = await callsOfOneJob();

describe('a worker that dies', () => {
  it('has many places to do so', () => {
    expect(calls.length).toBeGreaterThan(20);
    for (const part of ['put job:', 'put range:', 'put bucket:', 'send {', 'delete', 'objects.write', 'remove range:']) {
      if (part !== 'put bucket:') expect(calls.some((call) => call.startsWith(part))).toBe(true);
    }
  });

  it.each(
    calls.flatMap(
      (call, index) =>
        [
          ['before', index, call],
          ['after', index, call],
        ] as const,
    ),
  )('%s step %i (%s) loses no range and doubles none', async (moment, index, _call) => {
    const world = await createWorld();
    let count = -1;
    const dying = world.startWorker({
      name: 'dying',
      tap: (_call, now) => {
        if (now === 'before') count += 1;
        if (now === moment && count === index) dying.kill();
      },
    });
    const { id } = await world.request({ now: true });
    await world.run(5_000);
    world.startWorker({ name: 'heir' });
    await expectDone(world, id);
  });

  it.each(['before', 'after'] as const)(
    '%s each step of an apply job that waits leaves its floor and its wait to the next',
    async (moment) => {
      const steps = ['put bucket:', 'put job:', 'send {'];
      for (const step of steps) {
        const world = await createWorld();
        const dying = world.startWorker({
          tap: (call, now) => {
            if (now === moment && call.startsWith(step)) dying.kill();
          },
        });
        const { id } = await world.request();
        await world.run(5_000);
        world.startWorker();
        await expectDone(world, id);
        const job = await world.job(id);
        expect((await world.bucketRecord())?.floor).toBeGreaterThanOrEqual(((job?.coversBeforeMs ?? Infinity) + 18_000) * 1_000);
        expect(job?.comparingAtMs).toBeGreaterThanOrEqual((job?.coversBeforeMs ?? Infinity) + 60_000);
      }
    },
  );
});
