import { describe, expect, it } from 'vitest';
import { createObservingWorld } from '../support/worlds/observing.ts';
import { bucketSources, type BucketSource } from '../../src/records/bucket.ts';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import { clockOfMs } from '../../src/ordering/clock.ts';
import { MARGIN_MS, TOMBSTONE_LIFE_MS } from '../../src/ordering/constants.ts';
import { jobSchema } from '../../src/records/job.ts';
import { createVisitTombstones } from '../../src/repair/purges.ts';
import { createVisitFull } from '../../src/repair/sweep-full.ts';
import { createSweep } from '../../src/observing/sweep.ts';
import { createUnsettledDue, createVisitUnsettled } from '../../src/repair/sweep-unsettled.ts';
import { createReindexJobs } from '../../src/repair/job-requests.ts';
import { listAllRecords, refs, updateRecord } from '../../src/store/stored.ts';
import { createRandom } from '../support/random/seeded.ts';
import { reindexRequest } from '../support/requests.ts';

const MINUTE_MS = 60_000;
const RUN_MAX_MS = 45 * MINUTE_MS;
const WEEK_MS = 604_800_000;
const never = new AbortController().signal;

async function setUp(buckets: readonly string[] = ['photos'], source: BucketSource = 'routed') {
  const world = await createObservingWorld({ buckets, source });
  const { state, clock, telemetry, maintenance, observeAgain } = world;
  const parts = { state, clock, telemetry, runMaxMs: RUN_MAX_MS, random: () => 0 };
  return {
    ...world,
    parts,
    /** A document of that age that was written provisionally. */
    unsettled: (key: string, ageMs: number, more: Partial<ObjectDocument> = {}) =>
      world.document(key, ageMs, { settled: false, source: 'routed', event_name: 'PutObject', ...more }),
    tombstone: (key: string, ageMs: number) =>
      world.document(key, ageMs, { deleted: true, deleted_at: new Date(clock.nowMs() - ageMs).toISOString() }),
    unsettledSweep: createSweep(
      parts,
      'unsettled',
      createVisitUnsettled({ state, maintenance, observeAgain, clock }),
      createUnsettledDue({ maintenance, clock }),
    ),
    tombstoneSweep: createSweep(parts, 'tombstones', createVisitTombstones({ maintenance, clock })),
  };
}

describe('the sweep of unsettled documents', () => {
  it('settles what is older than ten minutes at the clock of its observation, and keeps the event that led to it; younger ones are left to their messages', async () => {
    const world = await setUp();
    const state = world.storage.put('photos', 'a', { etag: 'now' });
    await world.store([world.unsettled('a', 11 * MINUTE_MS, { etag: 'then' }), world.unsettled('young', 9 * MINUTE_MS)]);
    await world.unsettledSweep(never);
    expect(world.storage.observed).toEqual(['photos/a']);
    const found = await world.stored('a');
    expect(found).toMatchObject({ etag: state.etag, settled: true, source: 'check', event_name: 'PutObject' });
    expect(found?.clock).toBeGreaterThan(clockOfMs(world.clock.nowMs() - MARGIN_MS - 2_000));
    expect(world.telemetry.logged('sweep ended')).toEqual([{ sweep: 'unsettled', bucket: 'photos', result: 'ok', objects: 1 }]);
  });

  it('makes a tombstone of what is gone, and a document of a tombstone whose object is back', async () => {
    const world = await setUp();
    world.storage.put('photos', 'back');
    await world.store([world.unsettled('gone', 11 * MINUTE_MS), { ...world.tombstone('back', 11 * MINUTE_MS), settled: false }]);
    await world.unsettledSweep(never);
    expect(await world.stored('gone')).toMatchObject({ deleted: true, settled: true });
    expect(await world.stored('back')).toMatchObject({ deleted: false, settled: true });
  });

  it('deletes nothing while deletions of the bucket wait for a person, and goes on in the bucket beside it', async () => {
    const world = await setUp(['photos', 'neighbour']);
    await world.store([world.unsettled('gone', 11 * MINUTE_MS), { ...world.unsettled('gone', 11 * MINUTE_MS), bucket: 'neighbour' }]);
    await world.hold('open', 'other/');
    await world.unsettledSweep(never);
    expect(await world.stored('gone')).toMatchObject({ deleted: false });
    expect(await world.stored('gone', 'neighbour')).toMatchObject({ deleted: true });
    await world.hold('closed', 'other/');
    await world.unsettledSweep(never);
    expect(await world.stored('gone')).toMatchObject({ deleted: true });
  });

  it('observes a thousand of a bucket in one run, and goes on behind those that can never be read', async () => {
    const world = await setUp();
    const keys = Array.from({ length: 1_150 }, (_, at) => `key-${String(at).padStart(4, '0')}`);
    await world.store(keys.map((key) => world.unsettled(key, 11 * MINUTE_MS)));
    world.storage.failWith(new FaultError('object.denied', 'no'));
    await world.unsettledSweep(never);
    expect(world.storage.observed).toHaveLength(1_000);
    await world.unsettledSweep(never);
    expect(new Set(world.storage.observed).size).toBe(1_150);
    await world.unsettledSweep(never);
    expect(world.storage.observed).toHaveLength(2_150);
  });

  it('of a bucket that is gone is told, and the others are swept all the same', async () => {
    const world = await setUp(['gone', 'photos']);
    world.storage.deleteBucket('gone');
    await world.store(Array.from({ length: 300 }, (_, at) => world.unsettled(`k${at}`, 11 * MINUTE_MS, { bucket: 'gone' })));
    await world.store([world.unsettled('a', 11 * MINUTE_MS)]);
    await world.unsettledSweep(never);
    expect(world.telemetry.logged('sweep ended').map(({ bucket, result }) => [bucket, result])).toEqual([
      ['gone', 'bucket.missing'],
      ['photos', 'ok'],
    ]);
    expect(await world.stored('a')).toMatchObject({ settled: true });
    expect(await world.stored('k0', 'gone')).toMatchObject({ settled: false, deleted: false });
    // its other documents are left alone
    expect(world.storage.observed.length).toBeLessThanOrEqual(17 + 1);
  });

  it('ends with its signal after the observations that run', async () => {
    const world = await setUp();
    const keys = Array.from({ length: 300 }, (_, at) => `key-${at}`);
    for (const key of keys) world.storage.put('photos', key);
    await world.store(keys.map((key) => world.unsettled(key, 11 * MINUTE_MS)));
    const stopping = new AbortController();
    const readState = world.storage.readState.bind(world.storage);
    world.storage.readState = async (...args) => {
      stopping.abort(new Error('the process stops'));
      return readState(...args);
    };
    await expect(world.unsettledSweep(stopping.signal)).rejects.toThrow('the process stops');
    expect(world.storage.observed).toHaveLength(16);
  });

  it('Fix: of a bucket whose HEADs are slow ends after a minute, continues there, and leaves the next bucket its turn', async () => {
    const world = await setUp(['a-slow', 'photos']);
    const keys = Array.from({ length: 150 }, (_, at) => `key-${String(at).padStart(3, '0')}`);
    for (const key of keys) world.storage.put('a-slow', key);
    world.storage.put('photos', 'neighbour');
    await world.store(keys.map((key) => ({ ...world.unsettled(key, 11 * MINUTE_MS), bucket: 'a-slow' })));
    await world.store([world.unsettled('neighbour', 11 * MINUTE_MS)]);
    const readState = world.storage.readState.bind(world.storage);
    world.storage.readState = async (...args) => {
      if (args[0].bucket === 'a-slow') await world.clock.sleep(1_000);
      return readState(...args);
    };
    await world.unsettledSweep(never);
    expect(await world.stored('neighbour')).toMatchObject({ settled: true });
    const first = world.storage.observed.filter((name) => name.startsWith('a-slow/'));
    // with a second for each HEAD; those that run at the end of the minute still end
    expect(first.length).toBeGreaterThanOrEqual(60);
    expect(first.length).toBeLessThanOrEqual(76);
    world.storage.observed.splice(0);
    await world.unsettledSweep(never);
    expect(world.storage.observed[0]).toBe(`a-slow/${keys[first.length] ?? ''}`);
    await world.unsettledSweep(never);
    for (const key of keys) expect(await world.stored(key, 'a-slow')).toMatchObject({ settled: true });
  });
});

describe('the purge of tombstones', () => {
  it('removes those of seven days, in batches with pauses, and leaves the rest', async () => {
    const world = await setUp();
    const old = Array.from({ length: 1_201 }, (_, at) => world.tombstone(`old-${at}`, TOMBSTONE_LIFE_MS + 1));
    await world.store([...old, world.tombstone('young', TOMBSTONE_LIFE_MS - MINUTE_MS), world.unsettled('live', TOMBSTONE_LIFE_MS * 2)]);
    const begunMs = world.clock.monotonicMs();
    await world.tombstoneSweep(never);
    expect(world.clock.monotonicMs() - begunMs).toBe(500);
    expect(await world.stored('old-7')).toBeUndefined();
    expect(await world.stored('young')).toBeDefined();
    expect(await world.stored('live')).toBeDefined();
    expect(world.telemetry.logged('sweep ended')).toEqual([{ sweep: 'tombstones', bucket: 'photos', result: 'ok', objects: 1_201 }]);
    expect(world.telemetry.labels('tally_sweeps_total')).toEqual([{ sweep: 'tombstones', result: 'ok' }]);
  });

  it('gives each bucket its turn within the hour', async () => {
    const world = await setUp(['huge', 'photos']);
    await world.store([world.tombstone('a', TOMBSTONE_LIFE_MS + 1)]);
    const purge = world.maintenance.purge.bind(world.maintenance);
    // more than can be purged in five minutes
    world.maintenance.purge = async (bucket, page, signal) => (bucket === 'huge' ? page.limit : purge(bucket, page, signal));
    const begunMs = world.clock.monotonicMs();
    await world.tombstoneSweep(never);
    expect(world.clock.monotonicMs() - begunMs).toBeLessThanOrEqual(5 * MINUTE_MS + 250);
    expect(await world.stored('a')).toBeUndefined();
  });
});

describe('a sweep that takes longer than its run', () => {
  it('Fix: begins elsewhere with the next run, on any worker, so that each bucket has its turn', async () => {
    const names = Array.from({ length: 20 }, (_, at) => `bucket-${String(at).padStart(2, '0')}`);
    const { clock, parts } = await setUp(names);
    const random = createRandom(1);
    const visited: string[] = [];
    const worker = () =>
      createSweep({ ...parts, random: () => random.integer(0, 999) / 1_000 }, 'lifecycle', async ({ bucket }) => {
        visited.push(bucket);
        await clock.sleep(5 * MINUTE_MS);
        return 1;
      });
    for (let run = 1; run <= 20; run += 1) {
      const beginMs = clock.monotonicMs();
      await worker()(never);
      expect(clock.monotonicMs() - beginMs).toBe(45 * MINUTE_MS);
      expect(new Set(visited.slice(-9)).size).toBe(9);
    }
    expect(new Set(visited).size).toBe(20);
  });
});

describe('the weekly sweep', () => {
  async function weekly(source: BucketSource) {
    const world = await setUp(['photos'], source);
    const { state, clock, telemetry } = world;
    const jobs = createReindexJobs({ state, clock, telemetry });
    const visit = createVisitFull({
      state,
      clock,
      startJob: (request, signal) => jobs.start(request, signal),
      intervalMs: WEEK_MS,
    });
    const sweep = createSweep(world.parts, 'full', visit);
    return {
      ...world,
      jobs,
      allJobs: () => listAllRecords(state, 'job', jobSchema),
      /** Looks every hour, and ends what was begun. */
      async run(forMs: number, ends: 'done' | 'failed' | 'not' = 'done') {
        for (let ms = 0; ms < forMs; ms += 60 * MINUTE_MS) {
          await clock.sleep(60 * MINUTE_MS);
          await sweep(never);
          if (ends === 'not') continue;
          for (const job of await this.allJobs()) {
            if (job.state === 'queued') await updateRecord(state, refs.job(job.id), (current) => current && { ...current, state: ends });
          }
        }
      },
    };
  }

  it.each(bucketSources)('compares a bucket of the source %s once a week, the whole of it, with its deletion limit on', async (source) => {
    const world = await weekly(source);
    await world.run(4 * WEEK_MS);
    const jobs = await world.allJobs();
    expect(jobs.length).toBe(4);
    expect(jobs[0]).toMatchObject({ bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'schedule' });
    expect(jobs[0]).not.toHaveProperty('tags');
  });

  it('reads the tags again of a bucket whose documents have them: its trail may have lost a change of tags', async () => {
    const world = await weekly('routed');
    await updateRecord(world.state, refs.bucket('photos'), (bucket) => bucket && { ...bucket, enrich: 'tags' as const });
    await world.run(WEEK_MS);
    expect(await world.allJobs()).toMatchObject([{ requestedBy: 'schedule', tags: true }]);
  });

  it('waits for a job of the bucket that runs already', async () => {
    const world = await weekly('routed');
    const { id } = await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'http');
    await world.run(WEEK_MS, 'not');
    expect((await world.allJobs()).map((job) => job.id)).toEqual([id]);
    await world.jobs.cancel(id);
    await world.run(60 * MINUTE_MS, 'not');
    expect(await world.allJobs()).toHaveLength(2);
  });
});
