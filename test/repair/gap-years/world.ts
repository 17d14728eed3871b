/**
 * A year of buckets with gaps: the calendar, the jobs, the reports of gaps and the records are the product's own, on the fake
 * state and S3 of the tests, in virtual time. ledger.ts judges what happens.
 */
import type { BucketSource } from '../../../src/records/bucket.ts';
import { bucketStatus, type BucketStatus } from '../../../src/records/bucket-status.ts';
import { CLOSE_GAPS_NAME } from '../../../src/records/schedule.ts';
import { documentOf, type PresentState, clockOfMs } from '../../../src/ordering/document.ts';
import { FaultError, type FaultCode } from '../../../src/base/fault.ts';
import { markSchema, type DirtyMark, type GapReport, type MarkHistory } from '../../../src/records/dirty.ts';
import type { z } from 'zod';
import type { StateKind } from '../../../src/records/state-kind.ts';
import { isDue, jobSchema, occupiesBucket, type JobRecord } from '../../../src/records/job.ts';
import { createConnectBucket } from '../../../src/connect/connect.ts';
import { askToRepair, createCloseGaps, type AskToRepair } from '../../../src/repair/close-gaps.ts';
import { createSchedules } from '../../../src/repair/schedules.ts';
import { visitCompare } from '../../../src/repair/sweeps.ts';
import { createSweep } from '../../../src/observing/sweep.ts';
import { disconnectBucket } from '../../../src/registry/operations/buckets.ts';
import { createReindexJobs } from '../../../src/repair/job-requests.ts';
import { createGapReports } from '../../../src/observing/gaps.ts';
import type { Clock } from '../../../src/process/clock.ts';
import type { BucketListing, ObjectStorage } from '../../../src/aws/storage.ts';
import type { StateStore, Store } from '../../../src/store/store.ts';
import type { Telemetry } from '../../../src/process/telemetry.ts';
import { listAllEntries, readRecord, refs } from '../../../src/store/stored.ts';
import { tidyJobs } from '../../../src/repair/job-ends.ts';
import { createFakeClock, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeBucketS3, type FakeBucketS3 } from '../../support/worlds/reindex.ts';
import type { Random } from '../../support/random/seeded.ts';
import { viewsOf } from './mutants.ts';
import { startWorker, type Worker } from './workers.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

const never = new AbortController().signal;

/** A bucket of the simulation, and how long listing a page of it takes. */
export interface SimBucket {
  readonly name: string;
  readonly source: BucketSource;
  readonly pageMs: readonly number[];
}

export const buckets: readonly SimBucket[] = [
  { name: 'small', source: 'routed', pageMs: [0, 0, 10_000, 25_000] },
  { name: 'topical', source: 'topic', pageMs: [0, 10_000] },
  { name: 'large', source: 'routed', pageMs: [10_000, 25_000] },
];

/** How wrong the clocks of the processes are. */
export const SKEWS_MS: readonly number[] = [0, 0, DAY_MS, -HOUR_MS];

/** S3 takes long to answer about these. */
export const SLOW_KEYS = 'flood/';

/** What keeps a bucket from being listed. */
export type Trouble = Extract<FaultCode, 'object.denied' | 's3.unavailable' | 'bucket.missing' | 'listing.disorder'>;

export interface Hooks {
  readonly gapClosed: (mark: DirtyMark, jobId: string) => void;
  /** The job was stored as done, perhaps again. */
  readonly jobDone: (job: JobRecord) => void;
  /** So many documents became tombstones while this job occupied the bucket. */
  readonly deleted: (jobId: string, count: number) => void;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** Creates the world: no bucket is connected, and no worker runs. */
export async function createWorld(random: Random, mutant: string | undefined, hooks: Hooks) {
  const views = viewsOf(mutant);
  const clock = createFakeClock();
  const telemetry = quietTelemetry();
  const store = createMemoryStore();
  const { objects } = store;
  const state = watchingEnds(store.state, hooks);
  const s3s = new Map(buckets.map(({ name }) => [name, createFakeBucketS3(clock)]));
  const troubles = new Map<string, Trouble>();
  const denied = new Map<string, string>();
  const s3 = manyBuckets({ clock, random, denied }, s3s, troubles);
  const jobs = createReindexJobs({ state: views.people(state), clock, telemetry });
  const trueReports = createGapReports({ state, clock, telemetry });
  const connecting = createConnectBucket({ state, objects, storage: s3, gaps: trueReports, clock, telemetry });
  const disconnecting = { state, objects, jobs, gaps: trueReports, clock };
  const disconnect = (bucket: string) => disconnectBucket(disconnecting, bucket);
  const processes = SKEWS_MS.map((skewMs) => createProcess(skewMs));
  const workers = new Set<Worker>();
  const listAll = createListAll(state);
  let started = 0;
  let rightUntilMs = 0;
  /** Of the workers that run, or that start next. */
  let workersSkewMs = 0;

  /** The calendar of one process, and the reports of its role `ingest`. */
  function createProcess(skewMs: number) {
    const own = { ...clock, nowMs: () => clock.nowMs() + skewMs };
    const ownJobs = createReindexJobs({ state, clock: own, telemetry });
    const ask: AskToRepair = (...asked) => askToRepair({ listing: s3, objects, clock }, ...asked);
    const closing = { startJob: ownJobs.start, askToRepair: ask, clock: own, telemetry };
    const closeGaps = createCloseGaps({ ...closing, state: views.closing(state) });
    const tidy = (): Promise<void> => tidyJobs({ state, clock: own });
    const compare = createSweep({ state, clock: own, telemetry, runMaxMs: MINUTE_MS, random: () => 0 }, 'compare', (bucket, signal) =>
      visitCompare({ state, startJob: ownJobs.start, clock: own, intervalMs: 7 * DAY_MS }, bucket, signal),
    );
    const schedules = createSchedules({ state, clock: own, telemetry });
    const work = [
      [{ name: CLOSE_GAPS_NAME, intervalMs: 15 * SECOND_MS, runMaxMs: 2 * MINUTE_MS }, closeGaps],
      [{ name: 'tidy-jobs', intervalMs: MINUTE_MS, runMaxMs: 2 * MINUTE_MS }, tidy],
      [{ name: 'compare', intervalMs: 10 * MINUTE_MS, runMaxMs: 2 * MINUTE_MS }, compare],
    ] as const;
    return {
      clock: own,
      reports: createGapReports({ state, clock: own, telemetry }),
      async calendar(isTidied: boolean): Promise<void> {
        for (const [schedule, run] of work) if (isTidied || run !== tidy) await schedules.runIfDue(schedule, run, never);
      },
    };
  }

  /** The time passes; whatever sleeps wakes at its moment. */
  async function during<Result>(work: Promise<Result>): Promise<Result> {
    const over = { is: false };
    const ended = work.finally(() => (over.is = true));
    ended.catch(() => undefined);
    await clock.advance(0);
    while (!over.is) await clock.advance(SECOND_MS);
    return ended;
  }

  /** Some workers, on machines whose clocks are equally wrong; there is work. */
  function startWorkers(): void {
    const count = random.integer(1, 3);
    for (let each = 0; each < count; each += 1) {
      const own = { ...clock, nowMs: () => clock.nowMs() + workersSkewMs };
      started += 1;
      workers.add(
        startWorker({
          name: `worker-${started}`,
          store: { ...store, objects: watchingDeletes(store, hooks), state: views.workers(state) },
          s3,
          clock: views.workerClock(own),
          telemetry,
        }),
      );
    }
  }

  async function stopWorkers(): Promise<void> {
    const all = [...workers];
    workers.clear();
    for (const worker of all) await during(worker.stop());
    // the machine with the wrong clock may be the one that died: then all others are right for a while
    workersSkewMs = clock.nowMs() < rightUntilMs ? 0 : random.pick(SKEWS_MS);
  }

  return {
    clock,
    state,
    store,
    jobs,
    s3s,
    troubles,
    /** S3 refuses the HEADs of the keys that begin so, by bucket. */
    denied,
    connecting,
    disconnect,
    during,
    startWorkers,
    stopWorkers,
    /** The first worker that runs is killed. */
    killWorker(): void {
      const [worker] = workers;
      if (worker === undefined) return;
      workers.delete(worker);
      worker.kill();
      rightUntilMs = clock.nowMs() + 6 * HOUR_MS;
    },
    workersRunning: () => workers.size,
    /** One of the processes looks what is due. */
    calendar: (isTidied: boolean) => during(random.pick(processes).calendar(isTidied)),
    /** Reports a gap from the process whose clock is so wrong. */
    report: (report: GapReport, process: number) => during(processes[process]!.reports.report(report)),
    /** When a worker can claim something; Infinity if there is nothing. */
    async nextDueAtMs(): Promise<number> {
      const all = await listAll('job', jobSchema);
      const nowMs = clock.nowMs();
      return Math.min(
        Infinity,
        ...all.map((each) => (isDue(each, nowMs + workersSkewMs) ? nowMs : (each.dueAtMs ?? Infinity) - workersSkewMs)),
      );
    },
    gaps: () => listAll('gap', markSchema),
    /** The job that occupies the bucket, or that occupied it last. */
    async latestJob(bucket: string): Promise<JobRecord | undefined> {
      const applyJobId = (await readRecord(state, refs.bucket(bucket)))?.applyJobId;
      return applyJobId === undefined ? undefined : readRecord(state, refs.job(applyJobId));
    },
    async runningJob(bucket: string): Promise<JobRecord | undefined> {
      const job = await this.latestJob(bucket);
      return job !== undefined && occupiesBucket(job) ? job : undefined;
    },
    /** The deletions of the bucket that wait for a person. */
    waiting: async (bucket: string) => (await readRecord(state, refs.bucket(bucket)))?.waiting ?? [],
    /** How far the bucket's index can be relied on, as people are told. */
    async status(bucket: string): Promise<BucketStatus | undefined> {
      const record = await readRecord(state, refs.bucket(bucket));
      const gaps = (await this.gaps()).filter((mark) => mark.bucket === bucket);
      const facts = { waitsFor: undefined, unread: undefined, gaps, nowMs: clock.nowMs(), compareIntervalMs: 7 * DAY_MS };
      return record && bucketStatus({ record, ...facts });
    },
    isConnected: async (bucket: string) => (await state.get(refs.bucket(bucket).id)) !== undefined,
    /** An object, and its document if an event told of it. */
    async put(bucket: string, key: string, isTold: boolean): Promise<void> {
      const atMs = Math.floor(clock.nowMs() / SECOND_MS) * SECOND_MS;
      const object: PresentState = { present: true, etag: `${key}-${atMs}`, sizeBytes: 1, lastModifiedMs: atMs, storageClass: 'STANDARD' };
      s3s.get(bucket)?.objects.set(key, object);
      if (!isTold) return;
      const facts = { bucket, key, state: object, clock: clockOfMs(atMs), settled: true, source: 'native' } as const;
      await objects.write([{ document: documentOf({ ...facts, cause: {}, stateAtMs: atMs, nowMs: atMs }), equalClock: 'accept' }]);
    },
    /** The keys that searches find. */
    found: async (bucket: string) =>
      new Set((await store.scan.scan(bucket, { prefix: '', after: '', limit: 10_000 })).map(({ key }) => key)),
  };
}

/** Lists all records of a kind. The store shares each frozen record with all readers, so it is parsed once: each step lists all jobs. */
function createListAll(state: StateStore) {
  const parsed = new WeakMap<object, unknown>();
  return async function listAll<Schema extends z.ZodObject>(kind: StateKind, schema: Schema): Promise<readonly z.infer<Schema>[]> {
    return (await listAllEntries(state, kind)).map(({ record }) => {
      if (!parsed.has(record as object)) parsed.set(record as object, schema.parse(record));
      return parsed.get(record as object) as z.infer<Schema>;
    });
  };
}

/** Nothing is kept of what a year reports. */
function quietTelemetry(): Telemetry {
  return new Proxy(createFakeTelemetry(), { get: () => () => undefined });
}

/** The index, which says how many documents a job deleted. */
function watchingDeletes({ objects, state }: Store, { deleted }: Hooks): Store['objects'] {
  return {
    ...objects,
    async write(writes, signal) {
      const [bucket = ''] = writes.map(({ document }) => document.bucket);
      const keys = writes.map(({ document: { key } }) => key);
      const before = await objects.getMany(bucket, keys);
      const answers = await objects.write(writes, signal);
      const count = writes.filter(
        ({ document }, at) => document.deleted && before[at]?.deleted === false && answers[at]?.kind === 'written',
      ).length;
      if (count > 0) deleted((await readRecord(state, refs.bucket(bucket)))?.applyJobId ?? '', count);
      return answers;
    },
  };
}

/** The state, which says when a job was done, and when a gap was closed: its mark is removed, and the history names the job. */
function watchingEnds(state: StateStore, { gapClosed, jobDone }: Hooks): StateStore {
  const removed = new Map<string, DirtyMark>();
  return {
    ...state,
    async remove(id, ...asked) {
      const mark = id.startsWith('gap:') ? markSchema.safeParse((await state.get(id))?.record).data : undefined;
      const answer = await state.remove(id, ...asked);
      if (mark !== undefined && answer !== 'conflict') removed.set(id, mark);
      return answer;
    },
    async put(entry, ...asked) {
      const stored = await state.put(entry, ...asked);
      const job = entry.kind === 'job' ? (entry.record as JobRecord) : undefined;
      if (job?.state === 'done' && stored !== 'conflict') jobDone(job);
      const closed = entry.kind === 'gap-history' ? (entry.record as MarkHistory).closed.at(-1) : undefined;
      const mark = closed && removed.get(closed.id);
      if (mark !== undefined && stored !== 'conflict') gapClosed(mark, closed?.jobId ?? '');
      return stored;
    },
  };
}

/** One S3 with all buckets. A bucket in trouble refuses; one whose listing is in disorder still lists a single key. */
function manyBuckets(
  { clock, random, denied }: { readonly clock: Clock; readonly random: Random; readonly denied: ReadonlyMap<string, string> },
  s3s: ReadonlyMap<string, FakeBucketS3>,
  troubles: ReadonlyMap<string, Trouble>,
): ObjectStorage & BucketListing {
  const of = (bucket: string, keys = 1): FakeBucketS3 => {
    const s3 = s3s.get(bucket);
    const trouble = troubles.get(bucket);
    if (s3 === undefined) throw new FaultError('bucket.missing', `no bucket ${bucket}`);
    if (trouble !== undefined && (trouble !== 'listing.disorder' || keys > 1)) throw new FaultError(trouble, `${bucket} is in trouble`);
    return s3;
  };
  const [first] = s3s.values();
  if (first === undefined) throw new Error('there is no bucket');
  return {
    ...first,
    page: async (location, range, signal) => {
      // so that workers are killed while they compare
      const { pageMs = [0] } = buckets.find(({ name }) => name === location.bucket) ?? {};
      if (range.limit > 1) await clock.sleep(random.pick(pageMs), signal);
      return of(location.bucket, range.limit).page(location, range, signal);
    },
    async readState(location, key, ...asked) {
      // so that people stop jobs whose limit is partly used
      if (key.startsWith(SLOW_KEYS)) await clock.sleep(2_000);
      const refused = denied.get(location.bucket);
      if (refused !== undefined && key.startsWith(refused)) throw new FaultError('object.denied', `HEAD ${key}`);
      return of(location.bucket).readState(location, key, ...asked);
    },
    regionOf: async () => 'us-east-1',
    versioningOf: async () => ({ status: 'never', observedAtMs: (await first.readState({ bucket: '', region: '' }, '')).observedAtMs }),
  };
}
