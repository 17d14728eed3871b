import { describe, expect, it } from 'vitest';
import { createObservingWorld } from '../support/worlds/observing.ts';
import { bucketSources, type BucketSource, type BucketRecord } from '../../src/records/bucket.ts';
import { type ObjectDocument, documentOf, clockOfMs } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import { MARGIN_MS, TOMBSTONE_LIFE_MS } from '../../src/ordering/constants.ts';
import { jobSchema, type JobRecord, type JobState } from '../../src/records/job.ts';
import {
  createVisitUnsettled,
  unsettledDue,
  visitCompare,
  visitTombstones,
  isCompareDue,
  mayCompareBeDue,
  createSweepDeletes,
  observeAgain,
  purgeAudit,
} from '../../src/repair/sweeps.ts';
import { createSweep } from '../../src/observing/sweep.ts';
import { createReindexJobs } from '../../src/repair/job-requests.ts';
import { listAllRecords, readRecord, refs, updateRecord, newAuditRecord } from '../../src/store/stored.ts';
import { createRandom } from '../support/random/seeded.ts';
import { reindexRequest } from '../support/requests.ts';
import { jobMadeAt } from '../support/fakes/gap-records.ts';
import { z } from 'zod';
import type { AuditRecord } from '../../src/base/audit.ts';
import { hintOfTie } from '../../src/ordering/hint.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const MINUTE_MS = 60_000;
const RUN_MAX_MS = 45 * MINUTE_MS;
const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
const never = new AbortController().signal;

async function setUp(buckets: readonly string[] = ['photos'], source: BucketSource = 'routed') {
  const world = await createObservingWorld({ buckets, source });
  const { state, clock, telemetry, objects, maintenance, observe } = world;
  const parts = { state, clock, telemetry, runMaxMs: RUN_MAX_MS, random: () => 0 };
  return {
    ...world,
    parts,
    /** A document of that age that was written provisionally. */
    unsettled: (key: string, ageMs: number, more: Partial<ObjectDocument> = {}) =>
      world.document(key, ageMs, { settled: false, source: 'routed', event_name: 'PutObject', ...more }),
    tombstone: (key: string, ageMs: number) =>
      world.document(key, ageMs, { deleted: true, deleted_at: new Date(clock.nowMs() - ageMs).toISOString() }),
    unsettledSweep: createSweep(parts, 'unsettled', createVisitUnsettled({ state, maintenance, observe, clock }), (signal) =>
      unsettledDue({ maintenance, clock }, signal),
    ),
    tombstoneSweep: createSweep(parts, 'tombstones', (bucket, signal) =>
      visitTombstones({ state, objects, maintenance, clock, purgeClock: clock }, bucket, signal),
    ),
  };
}

describe('the sweep of unsettled documents', () => {
  it('settles what is older than ten minutes at the clock of its observation, and keeps the event that led to it; so is a tombstone whose object is back; younger ones are left to their messages', async () => {
    const world = await setUp();
    const state = world.storage.put('photos', 'a', { etag: 'now' });
    world.storage.put('photos', 'back');
    await world.store([world.unsettled('a', 11 * MINUTE_MS, { etag: 'then' }), world.unsettled('young', 9 * MINUTE_MS)]);
    await world.store([{ ...world.tombstone('back', 11 * MINUTE_MS), settled: false }]);
    await world.unsettledSweep(never);
    expect(world.storage.observed.toSorted()).toEqual(['photos/a', 'photos/back']);
    const found = await world.stored('a');
    expect(found).toMatchObject({ etag: state.etag, settled: true, source: 'check', event_name: 'PutObject' });
    expect(found?.clock).toBeGreaterThan(clockOfMs(world.clock.nowMs() - MARGIN_MS - 2_000));
    expect(world.telemetry.logged('sweep ended')).toEqual([{ sweep: 'unsettled', bucket: 'photos', result: 'ok', objects: 2 }]);
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
});

it('the purge of tombstones removes those of seven days that were written before the mark, in batches with pauses, and leaves the rest', async () => {
  const world = await setUp();
  const old = Array.from({ length: 1_201 }, (_, at) => world.tombstone(`old-${at}`, 1));
  await world.store([...old, world.tombstone('young', -MINUTE_MS), world.unsettled('live', TOMBSTONE_LIFE_MS), world.document('late', 10)]);
  await world.tombstoneSweep(never);
  const marked = await readRecord(world.state, refs.bucket('photos'));
  // what a message from a dead-letter queue deletes was deleted long ago
  await world.store([world.tombstone('late', 0)]);
  await world.clock.advance(TOMBSTONE_LIFE_MS);
  expect(await readRecord(world.state, refs.bucket('photos'))).toEqual(marked);
  const begunMs = world.clock.monotonicMs();
  await world.tombstoneSweep(never);
  expect(world.clock.monotonicMs() - begunMs).toBe(500);
  expect(await world.stored('old-7')).toBeUndefined();
  for (const key of ['young', 'live', 'late']) expect(await world.stored(key), key).toBeDefined();
  expect((await readRecord(world.state, refs.bucket('photos')))?.purge?.upTo).toEqual(marked?.purge?.next.position);
  expect(world.telemetry.logged('sweep ended')).toEqual([{ sweep: 'tombstones', bucket: 'photos', result: 'ok', objects: 1_201 }]);
  expect(world.telemetry.labels('tally_sweeps_total').at(-1)).toEqual({ sweep: 'tombstones', result: 'ok' });
});

it('Fix: a sweep that takes longer than its run begins elsewhere with the next run, on any worker, so that each bucket has its turn', async () => {
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

describe('the scheduled compare', () => {
  async function weekly(source: BucketSource) {
    const world = await setUp(['photos'], source);
    const { state, clock, telemetry } = world;
    const jobs = createReindexJobs({ state, clock, telemetry });
    const parts = { state, clock, startJob: (request: Parameters<typeof jobs.start>[0]) => jobs.start(request), intervalMs: WEEK_MS };
    const sweep = createSweep(world.parts, 'compare', (bucket, signal) => visitCompare(parts, bucket, signal));
    return {
      ...world,
      jobs,
      allJobs: () => listAllRecords(state, 'job', jobSchema),
      /** Looks every hour, and ends what was begun. */
      async run(forMs: number, ends: 'done' | 'not' = 'done') {
        for (let ms = 0; ms < forMs; ms += 60 * MINUTE_MS) {
          await clock.sleep(60 * MINUTE_MS);
          await sweep(never);
          if (ends === 'not') continue;
          for (const { id } of await this.allJobs()) await updateRecord(state, refs.job(id), (job) => job && { ...job, state: ends });
        }
      },
    };
  }

  it.each(bucketSources)(
    'compares a bucket of the source %s once in its interval, the whole of it, with its deletion limit on',
    async (source) => {
      const world = await weekly(source);
      await world.run(4 * WEEK_MS);
      const jobs = await world.allJobs();
      // what a store posts can be lost, and nothing shows it
      expect(jobs.length).toBe(source === 'webhook' ? 28 : 4);
      expect(jobs[0]).toMatchObject({ bucket: 'photos', prefix: '', mode: 'apply', requestedBy: 'schedule' });
      expect(jobs[0]).not.toHaveProperty('tags');
    },
  );

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

const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000;

const jobOf = (state: JobState): JobRecord => jobMadeAt(NOW_MS, { state, finishedAtMs: NOW_MS + HOUR_MS });
const begun = { bucket: 'photos', createdAtMs: 0, scheduled: { jobId: 'job-1', atMs: NOW_MS } };
const isDue = (afterMs: number, job?: JobRecord): boolean => isCompareDue(begun, job, { nowMs: NOW_MS + afterMs, intervalMs: WEEK_MS });

describe('the scheduled compare of a bucket', () => {
  it('has its own time in the week', () => {
    const firstDay = (bucket: string): number => {
      const at = (day: number) => ({ nowMs: NOW_MS + day * 24 * HOUR_MS, intervalMs: WEEK_MS });
      return [0, 1, 2, 3, 4, 5, 6, 7].findIndex((day) => isCompareDue({ bucket, createdAtMs: NOW_MS }, undefined, at(day)));
    };
    expect(new Set(Array.from({ length: 200 }, (_, at) => firstDay(`bucket-${at}`)))).toEqual(new Set([1, 2, 3, 4, 5, 6, 7]));
  });

  it('begins again a week later', () => {
    for (const job of [jobOf('done'), jobOf('cancelled'), undefined])
      expect([isDue(WEEK_MS - 1, job), isDue(WEEK_MS, job)]).toEqual([false, true]);
  });

  it.each(['queued', 'running', 'paused'] as const)('waits for its job that is %s, however long', (state) => {
    expect(isDue(3 * WEEK_MS, jobOf(state))).toBe(false);
  });

  it('is due again six hours after its job failed, which the bucket’s record alone does not rule out', () => {
    expect([isDue(7 * HOUR_MS - 1, jobOf('failed')), isDue(7 * HOUR_MS, jobOf('failed'))]).toEqual([false, true]);
    const look = { nowMs: NOW_MS + 7 * HOUR_MS, intervalMs: WEEK_MS };
    expect(mayCompareBeDue(begun, look)).toBe(true);
    expect(mayCompareBeDue({ ...begun, lastComparedAtMs: NOW_MS + HOUR_MS }, look)).toBe(false);
  });

  it('does not believe a moment that no right clock can have set', () => {
    expect(isDue(-3 * WEEK_MS)).toBe(true);
  });
});

const deletedSchema = z.object({ deleted: z.number(), keys: z.array(z.object({ bucket: z.literal('photos'), key: z.string() })) });
const actor = { kind: 'local', user: 'tally', host: 'worker-1' } as const;

async function withDeletions(append?: (record: AuditRecord) => Promise<void>) {
  const audit = createMemoryAudit();
  let deletes: ReturnType<typeof createSweepDeletes> | undefined;
  const world = await createObservingWorld({
    writesTo(objects, parts) {
      deletes = createSweepDeletes({ ...parts, objects, audit: { append: append ?? ((record) => audit.append(record)) }, actor });
      return deletes.objects;
    },
  });
  return {
    ...world,
    audit,
    add: async (key: string, present: boolean): Promise<ObjectDocument> => {
      const document = world.document(key, 1, present ? { size: 1 } : { deleted: true });
      await world.store([document]);
      return document;
    },
    isDeleted: async (key: string) => (await world.stored(key))?.deleted,
    bucket: { ...bucketRecord, bucket: 'photos' },
    observeAll: (bucket: BucketRecord, documents: readonly ObjectDocument[]) =>
      observeAgain(deletes!.watching(world.observe), bucket, documents),
  };
}

describe('the deletions of sweeps', () => {
  it('have a record for each bulk request, with the keys of live documents whose objects are gone, and no others', async () => {
    const { audit, telemetry, storage, add, observeAll, bucket, isDeleted } = await withDeletions();
    storage.put('photos', 'kept');
    const documents = [await add('kept', true), await add('gone', true), await add('gone too', true), await add('long gone', false)];
    expect(await observeAll(bucket, documents)).toBe(4);
    expect(await Promise.all(['kept', 'gone', 'gone too', 'long gone'].map(isDeleted))).toEqual([false, true, true, true]);
    // one request or two, by how the writes met
    const named = audit.records.map(({ parameters }) => deletedSchema.parse(parameters));
    expect(named.flatMap(({ keys }) => keys.map(({ key }) => key)).toSorted()).toEqual(['gone', 'gone too']);
    expect(named.every(({ deleted, keys }) => deleted === keys.length)).toBe(true);
    const useridentity = { email: 'tally@worker-1', sessionContext: { auth: { type: 'local' } } };
    for (const record of audit.records) expect(record).toMatchObject({ eventname: 'SweepDelete', outcome: 'done', useridentity });
    expect(audit.records[0]).not.toHaveProperty('sourceipaddress');
    expect(telemetry.recorded('audited').flat()).toEqual(audit.records);
  });

  it('are answered although the record cannot be stored, which is logged', async () => {
    const refuse = () => Promise.reject(new FaultError('index.blocked', 'the disk is full'));
    const { telemetry, storage, add, observeAll, bucket, isDeleted } = await withDeletions(refuse);
    storage.put('photos', 'kept');
    expect(await observeAll(bucket, [await add('gone', true), await add('kept', true)])).toBe(2);
    expect([await isDeleted('gone'), await isDeleted('kept')]).toEqual([true, false]);
    expect(telemetry.recorded('audited')).toHaveLength(1);
    expect(telemetry.recorded('requestFailed')).toEqual([['store an audit record', 'index.blocked', 'the disk is full']]);
  });
});

it('lists at most a thousand keys of a bulk request, and their number', async () => {
  const { objects } = createMemoryStore();
  await objects.createBucket('photos');
  const audit = createMemoryAudit();
  const clock = createFakeClock();
  const deletes = createSweepDeletes({ objects, audit, clock, telemetry: createFakeTelemetry(), actor });
  const keys = Array.from({ length: 1_200 }, (_, n) => `key-${n}`);
  const gate = Promise.withResolvers<void>();
  const observe = deletes.watching(async () => {
    await gate.promise;
    return { kind: 'expired' };
  });
  const observations = keys.map((key) => observe({ bucket: bucketRecord, key, hint: hintOfTie(1), cause: {}, source: 'check' }));
  const state = { present: false } as const;
  const documents = keys.map((key) =>
    documentOf({ bucket: bucketRecord.bucket, key, state, clock: 1, settled: true, source: 'check', cause: {}, stateAtMs: 0, nowMs: 0 }),
  );
  await objects.createBucket(bucketRecord.bucket);
  await deletes.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
  expect(audit.records).toHaveLength(1);
  expect(audit.records[0]?.parameters).toMatchObject({ deleted: 1_200 });
  expect(audit.records[0]?.parameters?.keys).toHaveLength(1_000);
  gate.resolve();
  await Promise.all(observations);
  // the observations have ended, so this is not the sweep's deletion
  await deletes.objects.write([{ document: documents[0]!, equalClock: 'accept' }]);
  expect(audit.records).toHaveLength(1);
});

it('the purge of the audit deletes what is older than the retention, in as many batches as it takes, and nothing younger; a run ends at its bound', async () => {
  const clock = createFakeClock({ autoAdvance: true });
  const telemetry = createFakeTelemetry();
  const audit = createMemoryAudit();
  const nowMs = clock.nowMs();
  for (const days of [0, 399, 399.9, 401, 402, 403, 500, 900])
    await audit.append(newAuditRecord({ event: 'BucketRemove', actor, requestId: 'r', outcome: 'done', atMs: nowMs - days * DAY_MS }));
  for (let run = 0; run < 2; run += 1) await purgeAudit({ audit, clock, telemetry }, 400, never);
  expect(audit.records.map(({ eventtime }) => (nowMs - Date.parse(eventtime)) / DAY_MS)).toEqual([0, 399, 399.9]);
  expect(telemetry.recorded('info')).toHaveLength(1);
  let calls = 0;
  const purge = async () => {
    calls += 1;
    return 'more' as const;
  };
  await purgeAudit({ audit: { ...audit, purge }, clock, telemetry }, 400, never);
  expect(calls).toBe(1_000);
});
