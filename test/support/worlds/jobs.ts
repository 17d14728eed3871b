/** Re-index jobs over fakes of our ports: one bucket in an S3 in memory, its index, and as many workers as a test starts. Time moves only by `run`. */
import { setImmediate } from 'node:timers/promises';
import type { ReindexRequest } from '../../../src/registry/contract/jobs.ts';
import { defined } from '../../../src/base/defined.ts';
import { shownCounts, type ShownCounts } from '../../../src/records/comparison.ts';
import type { Job } from '../../../src/registry/contract/job.ts';
import { jobSchema, type JobRecord, type Part } from '../../../src/records/job.ts';
import { createReindexJobs } from '../../../src/repair/job-requests.ts';
import { tidyJobs } from '../../../src/repair/job-ends.ts';
import type { ReindexParts } from '../../../src/repair/jobs.ts';
import type { Clock } from '../../../src/process/clock.ts';
import type { StateStore, Store } from '../../../src/store/store.ts';
import type { ReconcileTurn } from '../../../src/repair/reconcile-turn.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../../src/store/stored.ts';
import { withVirtualDelays } from '../fakes/virtual-delays.ts';
import { createFakeClock, createFakeTelemetry } from '../fakes/ports.ts';
import { guarded } from '../fakes/guarded.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { bucketRecord, createFakeBucketS3 } from './reindex.ts';
import { reindexRequest } from '../requests.ts';
import { BUCKET, settled } from './ingest.ts';
import { createRepair } from './roles.ts';
import { documentOf, clockOfMs } from '../../../src/ordering/document.ts';

const STEP_MS = 100;
/** After so long a run whatever the test asked for is on its way, and larger steps do: what sleeps wakes at its moment in any step. */
const SMALL_STEPS_MS = 2_000;
const LARGE_STEP_MS = 500;

/** Called before each call that leaves a worker, and after it was carried out: where a crash can be. */
export type Tap = (call: string, moment: 'before' | 'after') => Promise<void> | void;

interface WorkerOptions {
  readonly name?: string;
  readonly listings?: number;
  readonly tap?: Tap;
  readonly turn?: ReconcileTurn;
  readonly indexIsSlow?: () => boolean;
  readonly lookAtGaps?: ReindexParts['lookAtGaps'];
  readonly lookForOverdue?: ReindexParts['lookForOverdue'];
  /** Of its machine. */
  readonly clock?: Clock;
}

type Where = 'bucket' | 'both' | 'index';

/** A job with its counts as they are shown. */
export type EndedJob = Omit<JobRecord, 'counts'> & { readonly counts?: ShownCounts };

export function endedJob({ counts, ...job }: JobRecord): EndedJob {
  return { ...job, ...(counts !== undefined && { counts: shownCounts(counts) }) };
}

export type JobsWorld = Awaited<ReturnType<typeof createJobsWorld>>;

/** Creates the world: the bucket is connected, nothing is in it, and no worker runs. */
export async function createJobsWorld({ cutKeysMin }: { readonly cutKeysMin?: number } = {}) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const store = createMemoryStore();
  const { state } = store;
  const s3 = createFakeBucketS3(clock);
  await store.objects.createBucket(BUCKET);
  await updateRecord(state, refs.bucket(BUCKET), () => ({ ...bucketRecord, bucket: BUCKET }));
  const jobs = createReindexJobs({ state, clock, telemetry });
  const kills = new Map<string, () => void>();
  let started = 0;

  function startWorker(worker: WorkerOptions = {}) {
    const {
      name = `worker-${started}`,
      listings = 8,
      tap = () => {},
      turn,
      indexIsSlow = () => false,
      lookAtGaps,
      lookForOverdue,
      clock: ownClock = clock,
    } = worker;
    const dead = new AbortController();
    started += 1;
    const own = { clock: ownClock, telemetry };
    const tappedState = tapState(state, tap, dead.signal);
    const objects: Store['objects'] = {
      ...store.objects,
      write: (writes, signal) => tapCall({ tap, dead: dead.signal }, 'objects.write', () => store.objects.write(writes, signal)),
    };
    const role = createRepair({
      ...own,
      store: { state: tappedState, objects, scan: store.scan },
      s3,
      turn,
      indexIsSlow,
      worker: name,
      listings,
      ...defined({ cutKeysMin, lookAtGaps, lookForOverdue }),
    });
    role.start();
    /** Nothing of it goes out any more, and no call of it ends. */
    const kill = (): void => {
      dead.abort(new Error(`${name} was killed`));
    };
    kills.set(name, kill);
    return {
      kill,
      async stop(deadline: AbortSignal = new AbortController().signal): Promise<void> {
        await during(role.stop(deadline));
      },
    };
  }

  const tidy = (): Promise<void> => tidyJobs({ state, clock });

  /** Moves time on in steps; each minute the calendar's work is done. Writers that meet wait for each other in this time too. */
  function run(forMs: number): Promise<void> {
    return withVirtualDelays(clock, () => runFor(forMs));
  }

  async function runFor(forMs: number): Promise<void> {
    for (let doneMs = 0, stepMs = STEP_MS; doneMs < forMs; doneMs += stepMs) {
      stepMs = doneMs < SMALL_STEPS_MS || forMs - doneMs < LARGE_STEP_MS ? STEP_MS : LARGE_STEP_MS;
      await clock.advance(stepMs);
      await settled();
      if (Math.floor(clock.nowMs() / 60_000) !== Math.floor((clock.nowMs() - stepMs) / 60_000)) await tidy().catch(() => undefined);
    }
  }

  function during(work: Promise<unknown>): Promise<void> {
    const isOver = work.then(() => true);
    return withVirtualDelays(clock, async () => {
      while (!(await Promise.race([isOver, setImmediate(false)]))) {
        await clock.advance(STEP_MS);
        await settled();
      }
    });
  }

  /** Runs until the job has ended or is paused, for an hour at most. */
  async function ended(id: string): Promise<EndedJob> {
    for (let minutes = 0; minutes < 60 * 12; minutes += 1) {
      const record = await job(id);
      if (record !== undefined && record.state !== 'queued' && record.state !== 'running') return endedJob(record);
      await run(5_000);
    }
    throw new Error(`the job did not end: ${JSON.stringify(await job(id))}`);
  }

  function job(id: string): Promise<JobRecord | undefined> {
    return readRecord(state, refs.job(id));
  }

  /** What is left to compare of a job, as stored. */
  async function parts(id: string): Promise<readonly Part[]> {
    return (await job(id))?.parts ?? [];
  }

  /** An object that was there an hour ago, in the bucket alone, in both, or only in the index. */
  async function has(key: string, where: Where): Promise<void> {
    const atMs = clock.nowMs() - 3_600_000;
    const present = { present: true, etag: `etag-${key}`, sizeBytes: 1, lastModifiedMs: atMs, storageClass: 'STANDARD' } as const;
    if (where !== 'index') s3.objects.set(key, present);
    if (where === 'bucket') return;
    const facts = { bucket: BUCKET, key, state: present, clock: clockOfMs(atMs), settled: true, source: 'native' } as const;
    const document = documentOf({ ...facts, cause: {}, stateAtMs: atMs, nowMs: atMs });
    await store.objects.write([{ document, equalClock: 'accept' }]);
  }

  /** Numbered keys of each kind: objects that the index does not know, those that it knows, and documents without an object. */
  async function hasMany(shares: Partial<Record<Where, number>>, prefix = ''): Promise<void> {
    for (const where of ['bucket', 'both', 'index'] as const)
      for (let number = 0; number < (shares[where] ?? 0); number += 1)
        await has(`${prefix}${where}-${String(number).padStart(5, '0')}`, where);
  }

  /** Pages that take so long that a job is seen on its way. */
  function slowPages(pageMs = 1_000, pageSize = 20): void {
    s3.pageSize = pageSize;
    s3.onPage = () => clock.sleep(pageMs);
  }

  /** Keys that searches find. */
  async function found(): Promise<readonly string[]> {
    return (await store.scan.scan(BUCKET, { prefix: '', after: '', limit: 10_000 })).map(({ key }) => key);
  }

  function inBucket(): readonly string[] {
    return [...s3.objects.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }

  return {
    clock,
    telemetry,
    store,
    state,
    s3,
    jobs,
    startWorker,
    kill: (name: string): void => kills.get(name)?.(),
    run,
    during,
    ended,
    job,
    parts,
    has,
    hasMany,
    slowPages,
    found,
    inBucket,
    tidy,
    request: (request: Partial<ReindexRequest> = {}): Promise<Job> => jobs.request(reindexRequest({ bucket: BUCKET, ...request }), 'test'),
    allJobs: () => listAllRecords(state, 'job', jobSchema),
    bucketRecord: () => readRecord(state, refs.bucket(BUCKET)),
  };
}

// ── calls that may be a worker's last ─────────────────────────────────────────────────────────────────────────────

interface Life {
  readonly tap: Tap;
  readonly dead: AbortSignal;
}

async function tapCall<Answer>({ tap, dead }: Life, name: string, call: () => Promise<Answer>): Promise<Answer> {
  if (!dead.aborted) await tap(name, 'before');
  if (dead.aborted) return never();
  const answer = await call();
  if (!dead.aborted) await tap(name, 'after');
  return dead.aborted ? never() : answer;
}

function never<Answer>(): Promise<Answer> {
  return new Promise(() => {});
}

function tapState(state: StateStore, tap: Tap, dead: AbortSignal): StateStore {
  const life = { tap, dead };
  return {
    ...guarded(state, () => (dead.aborted ? never() : undefined)),
    put: (...args) => tapCall(life, `put ${args[0].id}`, () => state.put(...args)),
    remove: (...args) => tapCall(life, `remove ${args[0]}`, () => state.remove(...args)),
  };
}
