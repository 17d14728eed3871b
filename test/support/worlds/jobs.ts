/** Re-index jobs over fakes of our ports: one bucket in an S3 in memory, its index, a work queue and as many workers as a test starts. Time moves only by `run`. */
import { setImmediate } from 'node:timers/promises';
import type { ReindexRequest } from '../../../src/api/jobs.ts';
import type { JobView } from '../../../src/domain/reindex/job-view.ts';
import { jobSchema, rangeSchema, type JobRecord, type RangeRecord } from '../../../src/domain/reindex/job.ts';
import { createReindexJobs } from '../../../src/pipeline/control/reindex-jobs.ts';
import { createOverdueTasks } from '../../../src/pipeline/reindex-jobs/overdue-tasks.ts';
import type { RangeLimits } from '../../../src/pipeline/reindex-jobs/range-records.ts';
import { createReindexRole } from '../../../src/pipeline/reindex-jobs/role.ts';
import { createSendTask } from '../../../src/pipeline/reindex-jobs/tasks.ts';
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';
import type { QueueClient, QueueReceiver } from '../../../src/pipeline/ports/queues.ts';
import type { ReconcileTurn } from '../../../src/pipeline/compare/reconcile-turn.ts';
import { createReconcileTurn } from '../../../src/pipeline/compare/reconcile-turn.ts';
import { createBackgroundWriter } from '../../../src/pipeline/compare/background-writer.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { withVirtualDelays } from '../large/virtual-clock.ts';
import { createFakeClock, createFakeQueues, createFakeTelemetry } from '../fakes/ports.ts';
import { laggingState } from '../fakes/lagging-state.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { createTestCircuits } from '../fakes/circuits.ts';
import { bucketRecord, createFakeBucketS3 } from './reindex.ts';
import { reindexRequest } from '../requests.ts';
import { BUCKET, settled } from './ingest.ts';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { clockOfMs } from '../../../src/domain/ordering/clock.ts';

export const WORK_QUEUE = 'http://queues/work';
const VISIBILITY_S = 60;
const STEP_MS = 100;

/** Called before each call that leaves a worker, and after it was carried out: where a crash can be. */
export type Tap = (call: string, moment: 'before' | 'after') => Promise<void> | void;

interface WorkerOptions {
  readonly name?: string;
  readonly listings?: number;
  readonly tap?: Tap;
  readonly turn?: ReconcileTurn;
  /** Of its machine. */
  readonly clock?: Clock;
  readonly queues?: QueueClient;
  /** How long its receives wait. */
  readonly pollMs?: number;
}

interface WorldOptions {
  readonly limits?: Partial<RangeLimits>;
  readonly store?: Store;
  /** How far lists are behind what was stored with `listed: 'soon'`. */
  readonly listLagMs?: number;
}

export type JobsWorld = Awaited<ReturnType<typeof createJobsWorld>>;

/** Creates the world: the bucket is connected, nothing is in it, and no worker runs. */
export async function createJobsWorld(options: WorldOptions = {}) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const store = options.store ?? createMemoryStore();
  const state = options.listLagMs === undefined ? store.state : laggingState(store.state, clock, options.listLagMs);
  const queues = createFakeQueues(clock);
  const s3 = createFakeBucketS3(clock);
  const limits = { rangeDocumentsMin: 25_000, splitKeysMin: 1_000, ...options.limits };
  await store.objects.createBucket(BUCKET);
  await updateRecord(state, refs.bucket(BUCKET), () => ({ ...bucketRecord, bucket: BUCKET }));
  const jobs = createReindexJobs({ state, clock, telemetry, sendTask: createSendTask(queues, WORK_QUEUE) });
  const workers: { readonly stop: AbortController }[] = [];

  function startWorker({
    name = `worker-${workers.length}`,
    listings = 8,
    tap = () => {},
    turn,
    clock: ownClock = clock,
    queues: ownQueues = queues,
    pollMs = 20_000,
  }: WorkerOptions = {}) {
    const dead = new AbortController();
    const stop = new AbortController();
    workers.push({ stop });
    const own = { clock: ownClock, telemetry };
    const tapped = { state: tapState(state, tap, dead.signal), queues: tapQueues(ownQueues, tap, dead.signal) };
    const objects: Store['objects'] = {
      ...store.objects,
      write: (writes, signal) => tapCall({ tap, dead: dead.signal }, 'objects.write', () => store.objects.write(writes, signal)),
    };
    const writerLimits = { actionsMax: 1_000, bytesMax: 5_000_000, concurrency: 2 };
    const circuits = createTestCircuits(own);
    const writeAll = createBackgroundWriter({ ...own, circuits, objects, limits: writerLimits, liveIsBusy: () => false });
    const ownTurn = turn ?? createReconcileTurn({ ...own, circuits, objects, scan: store.scan, listing: s3, storage: s3, writeAll });
    const sendTask = createSendTask(tapped.queues, WORK_QUEUE);
    const receiver = createWorkReceiver({ queues: tapped.queues, clock, dead: dead.signal, pollMs });
    const role = createReindexRole({
      ...own,
      store: { state: tapped.state, scan: store.scan },
      listing: s3,
      turn: ownTurn,
      queues: tapped.queues,
      workQueueUrl: WORK_QUEUE,
      sendTask,
      receiver,
      circuits,
      worker: name,
      limits: { ...limits, listings, visibilityS: VISIBILITY_S },
    });
    role.start();
    return {
      role,
      /** Nothing of it goes out any more, and no call of it ends. */
      kill: () => dead.abort(new Error(`${name} was killed`)),
      async stop(deadline: AbortSignal = new AbortController().signal): Promise<void> {
        await during(role.stop(deadline));
      },
    };
  }

  const lookForOverdue = createOverdueTasks({ state, clock, sendTask: createSendTask(queues, WORK_QUEUE) });

  /** Moves time on in steps; each minute the calendar's work is done. Writers that meet wait for each other in this time too. */
  function run(forMs: number): Promise<void> {
    return withVirtualDelays(clock, () => runFor(forMs));
  }

  async function runFor(forMs: number): Promise<void> {
    for (let doneMs = 0; doneMs < forMs; doneMs += STEP_MS) {
      await clock.advance(STEP_MS);
      await settled();
      if (Math.floor(clock.nowMs() / 60_000) !== Math.floor((clock.nowMs() - STEP_MS) / 60_000))
        await lookForOverdue(new AbortController().signal).catch(() => undefined);
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
  async function ended(id: string): Promise<JobRecord> {
    for (let minutes = 0; minutes < 60 * 12; minutes += 1) {
      const record = await job(id);
      if (record !== undefined && record.state !== 'queued' && record.state !== 'running') return record;
      await run(5_000);
    }
    throw new Error(`the job did not end: ${JSON.stringify(await job(id))} ${JSON.stringify(await ranges())}`);
  }

  function job(id: string): Promise<JobRecord | undefined> {
    return readRecord(state, refs.job(id));
  }

  function ranges(): Promise<readonly RangeRecord[]> {
    return listAllRecords(state, 'range', rangeSchema);
  }

  /** The ranges of a job by their ids, whatever lists show. */
  async function rangesById(id: string): Promise<readonly RangeRecord[]> {
    const numbers = Array.from({ length: (await job(id))?.rangesCut ?? 0 }, (_, number) => number);
    return (await Promise.all(numbers.map(async (number) => readRecord(state, refs.range(id, number))))).filter(
      (range) => range !== undefined,
    );
  }

  /** An object that was there an hour ago, in the bucket alone, in both, or only in the index. */
  async function has(key: string, where: 'bucket' | 'both' | 'index'): Promise<void> {
    const atMs = clock.nowMs() - 3_600_000;
    const present = { present: true, etag: `etag-${key}`, sizeBytes: 1, lastModifiedMs: atMs, storageClass: 'STANDARD' } as const;
    if (where !== 'index') s3.objects.set(key, present);
    if (where === 'bucket') return;
    const facts = { bucket: BUCKET, key, state: present, clock: clockOfMs(atMs), settled: true, source: 'native' } as const;
    const document = documentOf({ ...facts, cause: {}, stateAtMs: atMs, nowMs: atMs });
    await store.objects.write([{ document, equalClock: 'accept' }]);
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
    queues,
    s3,
    jobs,
    startWorker,
    run,
    during,
    ended,
    job,
    ranges,
    rangesById,
    has,
    found,
    inBucket,
    lookForOverdue,
    request: (request: Partial<ReindexRequest> = {}): Promise<JobView> =>
      jobs.request(reindexRequest({ bucket: BUCKET, ...request }), 'test'),
    allJobs: () => listAllRecords(state, 'job', jobSchema),
    bucketRecord: () => readRecord(state, refs.bucket(BUCKET)),
    messages: () => queues.messages(WORK_QUEUE),
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
    get: (...args) => (dead.aborted ? never() : state.get(...args)),
    list: (...args) => (dead.aborted ? never() : state.list(...args)),
    count: (...args) => (dead.aborted ? never() : state.count(...args)),
    put: (...args) => tapCall(life, `put ${args[0].id}`, () => state.put(...args)),
    remove: (...args) => tapCall(life, `remove ${args[0]}`, () => state.remove(...args)),
  };
}

function tapQueues(queues: QueueClient, tap: Tap, dead: AbortSignal): QueueClient {
  const life = { tap, dead };
  return {
    ...queues,
    receive: (...args) => (dead.aborted ? never() : queues.receive(...args)),
    send: (...args) => tapCall(life, `send ${args[1].body}`, () => queues.send(...args)),
    deleteBatch: (...args) => tapCall(life, 'delete', () => queues.deleteBatch(...args)),
    changeVisibilityBatch: (...args) => tapCall(life, 'visibility', () => queues.changeVisibilityBatch(...args)),
  };
}

interface ReceiverDependencies {
  readonly queues: QueueClient;
  readonly clock: Clock;
  readonly dead: AbortSignal;
  readonly pollMs: number;
}

/** One poller on the fake clock: a message at a time. */
function createWorkReceiver({ queues, clock, dead, pollMs }: ReceiverDependencies): QueueReceiver {
  const stopping = new AbortController();

  async function poll(handlers: Parameters<QueueReceiver['start']>[0]): Promise<void> {
    while (!dead.aborted) {
      await handlers.admit(stopping.signal);
      let messages = await queues.receive(WORK_QUEUE, { visibilityS: VISIBILITY_S, max: 1 });
      for (let waitedMs = 0; messages.length === 0 && waitedMs < pollMs; waitedMs += STEP_MS) {
        await clock.sleep(STEP_MS, stopping.signal);
        messages = await queues.receive(WORK_QUEUE, { visibilityS: VISIBILITY_S, max: 1 });
      }
      handlers.polled?.(WORK_QUEUE);
      if (messages.length > 0) await handlers.handle(messages);
    }
  }

  return {
    start(handlers) {
      void poll(handlers).catch(() => undefined);
    },
    async stop() {
      stopping.abort(new Error('receiving was stopped'));
    },
  };
}
