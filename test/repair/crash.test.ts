/** Every worker may die between any two of its steps: the next one ends the job, with every key compared once. */
import { describe, expect, it } from 'vitest';
import { isLong } from '../support/breadth.ts';
import { createJobsWorld, type JobsWorld } from '../support/worlds/jobs.ts';

const OBJECTS = 120;

/** `pageMs`: how long S3 takes for a page; slow ones leave time to cut parts. */
async function createWorld({ pageMs }: Story): Promise<JobsWorld> {
  const world = await createJobsWorld({ cutKeysMin: 25 });
  world.s3.onPage = ({ objects }) => (pageMs === 0 ? undefined : world.clock.sleep(objects.length > 1 ? pageMs : pageMs / 10));
  for (let number = 0; number < OBJECTS; number += 1) {
    await world.has(`key-${String(number).padStart(5, '0')}`, number % 3 === 0 ? 'both' : number % 3 === 1 ? 'bucket' : 'index');
  }
  world.s3.pageSize = pageMs === 0 ? 25 : 5;
  return world;
}

/** Between a step and the next one a worker does nothing that lasts: what is left before a step is nearly always what the one before it left. */
const moments = isLong ? (['before', 'after'] as const) : (['after'] as const);

const shares = { both: OBJECTS / 3, bucket: OBJECTS / 3, index: OBJECTS / 3 };

interface Story {
  readonly mode: 'apply' | 'report';
  readonly pageMs: number;
}
const stories: readonly Story[] = [
  { mode: 'apply', pageMs: 100 },
  // each day a report dies where its parts are cut, too
  ...(isLong ? [{ mode: 'report', pageMs: 0 } as const] : []),
  { mode: 'report', pageMs: 700 },
];

/** All calls that one worker makes for one job that nobody disturbs. */
async function callsOfOneJob(story: Story): Promise<readonly string[]> {
  const calls: string[] = [];
  const world = await createWorld(story);
  world.startWorker({
    tap: (call, moment) => {
      if (moment === 'before') calls.push(call);
    },
  });
  await world.ended((await world.request({ now: true, mode: story.mode })).id);
  await world.run(1_000);
  return calls.map((call) => call.replaceAll(/job-0[0-9a-z]{8}-[0-9a-f]{12}/g, 'JOB'));
}

async function expectDone(world: JobsWorld, id: string, { mode }: Story): Promise<void> {
  const { state, counts } = await world.ended(id);
  expect(state).toBe('done');
  expect(counts?.listed).toBe(shares.both + shares.bucket);
  if (mode === 'report') {
    // nothing was written, so whatever was done twice has found the same twice
    expect(counts).toMatchObject({
      scanned: shares.both + shares.index,
      equal: shares.both,
      missing: shares.bucket,
      phantom: shares.index,
    });
  } else {
    expect((counts?.equal ?? 0) + (counts?.missing ?? 0)).toBe(shares.both + shares.bucket);
    expect(await world.found()).toEqual(world.inBucket());
  }
  const { dueAtMs, lease, parts } = (await world.job(id)) ?? {};
  expect([dueAtMs, lease, parts]).toEqual([undefined, undefined, undefined]);
}

async function dieAt(
  world: JobsWorld,
  { moment, index }: { readonly moment: 'before' | 'after'; readonly index: number },
  { mode }: Story,
) {
  let count = -1;
  const dying = world.startWorker({
    name: 'dying',
    tap: (_call, now) => {
      if (now === 'before') count += 1;
      if (now === moment && count === index) dying.kill();
    },
  });
  const { id } = await world.request({ now: true, mode });
  await world.run(5_000);
  world.startWorker({ name: 'heir' });
  return id;
}

describe.each(stories)('a worker that dies during a job ($mode, $pageMs ms a page)', async (story) => {
  const calls = await callsOfOneJob(story);

  it('has many places to do so', () => {
    const effects = story.mode === 'apply' ? ['objects.write'] : [];
    for (const part of ['put job:', ...effects]) expect(calls.some((call) => call.startsWith(part))).toBe(true);
    expect(calls.filter((call) => call.startsWith('put job:')).length).toBeGreaterThan(3);
  });

  it.each(calls.flatMap((call, index) => moments.map((moment) => [moment, index, call] as const)))(
    'loses no key and doubles none %s step %i (%s)',
    async (moment, index, _call) => {
      const world = await createWorld(story);
      await expectDone(world, await dieAt(world, { moment, index }, story), story);
    },
  );
});

it.each(
  ['put bucket:', 'put job:'].flatMap(
    (step) =>
      [
        ['before', step],
        ['after', step],
      ] as const,
  ),
)('a worker that dies while a job waits leaves its floor and its wait to the next one (%s %s)', async (moment, step) => {
  const story = { mode: 'apply', pageMs: 0 } as const;
  const world = await createWorld(story);
  const dying = world.startWorker({
    tap: (call, now) => {
      if (now === moment && call.startsWith(step)) dying.kill();
    },
  });
  const { id } = await world.request();
  await world.run(5_000);
  world.startWorker();
  await expectDone(world, id, story);
  const job = await world.job(id);
  expect((await world.bucketRecord())?.floor).toBeGreaterThanOrEqual(((job?.coversBeforeMs ?? Infinity) + 18_000) * 1_000);
  expect(job?.comparingAtMs).toBeGreaterThanOrEqual((job?.coversBeforeMs ?? Infinity) + 60_000);
});
