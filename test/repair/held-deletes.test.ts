/** Deletions that wait for a person, in the whole machinery of jobs and gaps: nothing but that person's consent deletes them, and nothing hides them. */
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { markSchema, nextOf, type GapReport } from '../../src/records/dirty.ts';
import { closeGapsOf } from '../support/worlds/gaps.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { listAllRecords, readRecord, refs } from '../../src/store/stored.ts';
import { BUCKET } from '../support/worlds/ingest.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';

const MINUTE_MS = 60_000;
const never = new AbortController().signal;

/** A bucket of five objects and `index` documents without one, of which the deletion limit of a job deletes a thousand. */
async function createWorld(index = 1_205) {
  const world = await createJobsWorld();
  const { state, clock, telemetry } = world;
  await world.hasMany({ both: 5, index });
  const reports = createGapReports({ state, clock, telemetry });
  const closeGaps = closeGapsOf(world);
  world.startWorker();
  const look = () => world.during(closeGaps(never));

  return {
    ...world,
    /** The calendar looks at the gaps once. */
    look,
    /** Lets the calendar work for this long. */
    async calm(forMs: number) {
      for (let doneMs = 0; doneMs < forMs; doneMs += 15_000) {
        await look();
        await world.run(15_000);
      }
      await look();
    },
    async tell(kind: GapReport['kind'], more: Partial<GapReport> = {}) {
      await world.during(reports.report({ bucket: BUCKET, kind, reason: 'test', seenAtMs: clock.nowMs(), ...more }));
    },
    gaps: () => listAllRecords(state, 'gap', markSchema),
    /** How many deletions wait for a person, by prefix. */
    waiting: async () => ((await readRecord(state, refs.bucket(BUCKET)))?.waiting ?? []).map(({ prefix, count }) => [prefix, count]),
    lastJob: async () => (await world.allJobs()).at(-1),
    left: async () => (await world.found()).length - 5,
  };
}

describe('deletions that wait for a person', () => {
  it('wait on after a job that held none back, but left a key to S3, which refused it', async () => {
    const world = await createWorld(1_001);
    await world.tell('loss');
    await world.calm(5 * MINUTE_MS);
    const id = (await world.lastJob())?.id ?? '';
    await world.during(world.jobs.decline(id));
    const key = (await world.found()).find((each) => each.startsWith('index'));
    world.s3.onHead = (asked) => {
      if (asked === key) throw new FaultError('object.denied', 'the bucket policy');
    };
    const sweep = await world.jobs.start({ bucket: BUCKET, prefix: '', mode: 'apply', requestedBy: 'schedule' });
    await world.calm(15 * MINUTE_MS);
    expect(await world.job(sweep.id)).toMatchObject({ state: 'done', counts: { held: 0 } });
    expect(await world.waiting()).toEqual([['', 1]]);
    world.s3.onHead = () => {};
    await world.calm(60 * MINUTE_MS);
    expect([await world.left(), await world.gaps()]).toEqual([1, []]);
  });
});

describe('a job that is over before all is compared', () => {
  /** A job that has deleted a thousand and holds 205 back, and is not at its end. */
  async function createBusyWorld(kind: 'loss' | undefined) {
    const world = await createWorld();
    await world.hasMany({ both: 100 }, 'z/');
    world.slowPages(2_000, 1);
    if (kind === undefined) await world.request();
    else await world.tell(kind);
    while ((await world.lastJob())?.counts?.held !== 205) {
      if (kind !== undefined) await world.look();
      await world.run(100);
    }
    return { ...world, id: (await world.lastJob())!.id };
  }

  it.each(['loss', undefined] as const)('Fix: leaves what it held back when a person pauses it (mark: %s)', async (kind) => {
    const world = await createBusyWorld(kind);
    await world.jobs.pause(world.id);
    expect(await world.waiting()).toEqual([['', 205]]);
    world.s3.onPage = async () => {};
    await world.calm(10 * MINUTE_MS);
    expect(await world.left()).toBe(100 + 205);
    expect(await world.waiting()).toEqual([['', 205]]);
  });

  it('Fix: leaves also what its process has held back since its progress was stored', async () => {
    const world = await createWorld();
    await world.hasMany({ both: 1_000 }, 'z/');
    world.slowPages(200, 20);
    const { id } = await world.request({ now: true });
    while ((await world.lastJob())?.deletions?.reserved !== 1_000) await world.run(100);
    await world.run(200);
    await world.jobs.pause(id);
    const stored = await world.waiting();
    expect(stored).toHaveLength(1);
    expect(stored[0]?.[1] ?? 0).toBeLessThan(205);
    await world.run(30_000);
    expect(await world.waiting()).toEqual([['', 205]]);
  });

  it('Fix: does not overrule a newer one when it is resumed', async () => {
    const world = await createBusyWorld(undefined);
    await world.jobs.pause(world.id);
    world.s3.onPage = async () => {};
    await world.ended((await world.jobs.allow(world.id, 'alice')).id);
    expect([await world.left(), await world.waiting()]).toEqual([100, []]);
    await world.jobs.resume(world.id);
    await world.ended(world.id);
    expect(await world.waiting()).toEqual([]);
  });

  it('Fix: leaves what a report found when a person pauses it, and once it ends, all of that', async () => {
    const world = await createWorld(0);
    await world.hasMany({ bucket: 5 });
    await world.hasMany({ both: 100 }, 'm/');
    await world.hasMany({ bucket: 7 }, 'z/');
    world.slowPages(2_000, 10);
    const { id } = await world.request({ mode: 'report' });
    while (((await world.jobs.get(id)).counts?.missing ?? 0) < 5) await world.run(500);
    await world.jobs.pause(id);
    const found = async () => (await world.gaps()).flatMap(({ differences = [] }) => differences.map(({ missing }) => missing));
    expect(await found()).toEqual([5]);
    world.s3.onPage = async () => {};
    await world.jobs.resume(id);
    await world.ended(id);
    expect(await found()).toEqual([12]);
  });
});

describe('a gap whose repair does not continue', () => {
  it('Fix: says what its job waits for: a prefix whose HEADs S3 refuses, about which it is asked seldom', async () => {
    const world = await createWorld(0);
    await world.hasMany({ index: 9 }, 'secret/');
    await world.hasMany({ bucket: 5 }, 'z/');
    world.s3.onHead = (key) => {
      if (key.startsWith('secret/')) throw new FaultError('object.denied', 'the bucket policy');
    };
    await world.tell('loss');
    await world.calm(10 * MINUTE_MS);
    expect((await world.gaps()).map((mark) => nextOf(mark, world.clock.nowMs()))).toEqual([
      'its re-index waits: object.denied: the bucket policy',
    ]);
    // soon at first, then once a minute
    expect(world.s3.heads.length).toBeLessThan(2 * 9 * 14);
    world.s3.onHead = () => {};
    await world.calm(10 * MINUTE_MS);
    expect([await world.gaps(), await world.found()]).toEqual([[], world.inBucket()]);
  });

  it('Fix: ends no job for more than eight such keys while something of it goes on', async () => {
    const world = await createWorld(0);
    for (let number = 0; number < 9; number += 1) await world.tell('drift', { key: `x/${number}` });
    await world.has('k/refused', 'index');
    await world.hasMany({ bucket: 800 }, 'z/');
    world.slowPages(25_000, 2);
    world.s3.onHead = (key) => {
      if (key === 'k/refused') throw new FaultError('object.denied', 'the bucket policy');
    };
    const { id } = await world.request({ now: true });
    await world.run(14 * MINUTE_MS);
    expect(await world.job(id)).toMatchObject({ state: 'running' });
  });

  it('Fix: ends no job for a prefix whose HEADs S3 refuses while other parts of it go on', async () => {
    const world = await createWorld(0);
    await world.hasMany({ both: 800 }, 'z/');
    const refused = 'z/both-00405-';
    for (let number = 0; number < 9; number += 1) await world.has(`${refused}${number}`, 'index');
    world.slowPages(25_000, 2);
    world.s3.onHead = (key) => {
      if (key.startsWith(refused)) throw new FaultError('object.denied', 'the bucket policy');
    };
    const { id } = await world.request({ now: true });
    while (!(await world.parts(id)).some(({ fault }) => (fault?.sinceMs ?? Infinity) < world.clock.nowMs() - 10 * MINUTE_MS))
      await world.run(MINUTE_MS / 2);
    // until it has been tried again
    await world.run(4 * MINUTE_MS);
    expect(await world.job(id)).toMatchObject({ state: 'running' });
    expect(await world.ended(id)).toMatchObject({ state: 'failed', error: { code: 'object.denied' } });
  });

  it('Fix: of such a key alone compares all that begins with it, within one limit', async () => {
    const world = await createWorld(0);
    await world.has('k', 'index');
    await world.hasMany({ index: 1_205 }, 'k/');
    world.s3.onHead = (asked) => {
      if (asked === 'k') throw new FaultError('object.denied', 'the bucket policy');
    };
    await world.tell('drift', { key: 'k' });
    await world.calm(60 * MINUTE_MS);
    expect([await world.left(), await world.waiting()]).toEqual([206, [['k', 205]]]);
  });

  it('Fix: leaves the key that S3 refuses to a separate gap, and the bucket to the next jobs with their whole limit', async () => {
    const world = await createWorld(50);
    let heads = 0;
    const key = 'index-00003';
    world.s3.onHead = (asked) => {
      if (asked !== key) return;
      heads += 1;
      throw new FaultError('object.denied', 'the bucket policy');
    };
    await world.tell('loss');
    await world.calm(15 * MINUTE_MS);
    const [first] = await world.allJobs();
    expect(first).toMatchObject({ state: 'done', counts: { tombstones: 49, held: 0 } });
    expect(await world.gaps()).toMatchObject([
      { prefix: key, reasons: [{ example: `a re-index could not compare ${key}: object.denied: the bucket policy` }] },
    ]);
    // what a job of this gap deletes beside the key takes no limit from others
    await world.has(`${key}/x`, 'index');
    // its own jobs end at once, and come less and less often
    await world.calm(60 * MINUTE_MS);
    expect((await world.gaps())[0]?.failures).toBeGreaterThan(3);
    const before = heads;
    await world.calm(60 * MINUTE_MS);
    expect(heads - before).toBeLessThan(6);
    // what else happens to the bucket is repaired as usual: an honest bulk delete of thousands without a person
    await world.hasMany({ index: 1_200 }, 'z/');
    await world.tell('bulk-delete');
    await world.calm(15 * MINUTE_MS);
    expect(await world.found()).toEqual([...world.inBucket(), key].toSorted());
    expect(await world.waiting()).toEqual([]);
    expect(await world.gaps()).toMatchObject([{ prefix: key }]);
    world.s3.onHead = () => {};
    await world.calm(60 * MINUTE_MS);
    expect([await world.gaps(), await world.found()]).toEqual([[], world.inBucket()]);
  });
});
