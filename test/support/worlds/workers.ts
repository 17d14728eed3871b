/**
 * Several workers on a virtual clock: each has its own circuits, pollers, queue watch, admission, data path and handover, and
 * a network of its own that can fail. They share a queue, a store and an S3. A worker that is killed says nothing any more,
 * and what it had in hand comes back after its visibility time-out. A re-index process closes the gaps.
 */
import { CLOSE_GAPS_NAME } from '../../../src/records/schedule.ts';
import type { FaultCode } from '../../../src/base/fault.ts';
import { markSchema, type DirtyMark } from '../../../src/records/dirty.ts';
import { askToRepair, createCloseGaps, type AskToRepair } from '../../../src/repair/close-gaps.ts';
import { createSchedules } from '../../../src/repair/schedules.ts';
import { createConnectBucket } from '../../../src/connect/connect.ts';
import { createReindexJobs } from '../../../src/repair/job-requests.ts';
import { createHandover, createHandoverPermission } from '../../../src/indexer/handover.ts';
import { createGapReports } from '../../../src/observing/gaps.ts';
import type { IngestLimits } from '../../../src/indexer/indexer.ts';
import type { Telemetry } from '../../../src/process/telemetry.ts';
import { listAllRecords, removeRecord } from '../../../src/store/stored.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { createFakeClock, createFakeQueues, createFakeStorage, type FakeQueues } from '../fakes/ports.ts';
import {
  alive,
  createPollers,
  queuesThrough,
  storageThrough,
  storeThrough,
  type Life,
  type Network,
  type Services,
} from './worker-network.ts';
import { createIngest, createRepair, DEAD_LETTERS, QUEUE } from './roles.ts';

const MINUTE_MS = 60_000;
/** Sleeps end on a grid, so that what many messages wait for is woken together. */
const GRID_MS = 100;
const MAX_RECEIVE_COUNT = 20;
const STOP_MAX_MS = 10_000;

/** The defaults of the settings. */
const LIMITS: IngestLimits = {
  bulk: { actionsMax: 1_000, bytesMax: 5_242_880, lingerMs: 20, concurrency: 4 },
  headConcurrency: 32,
  heldMax: 1_000,
  weightMaxBytes: 256 * 1_048_576,
  inFlightMax: 80_000,
  visibilityS: 60,
};

/** A message of the queue, and what the test calls messages of its kind. */
interface Told {
  readonly tag: string;
  readonly sentAtMs: number;
  readonly receiveCount: number;
}

export interface WorkerBucket {
  readonly bucket: string;
  readonly region: string;
}

interface WorldOptions {
  readonly workers: number;
  readonly buckets: readonly WorkerBucket[];
  readonly pollers?: number;
  /** Called when a document is written for the first time, and with each message that is deleted. */
  readonly indexed?: (bucket: string, key: string) => void;
  readonly deleted?: (message: Told, isLetter: boolean) => void;
}

export type WorkersWorld = Awaited<ReturnType<typeof createWorkersWorld>>;

/** Creates the world: its buckets are connected and compared, and all workers run. */
export async function createWorkersWorld(options: WorldOptions) {
  const clock = createFakeClock({ gridMs: GRID_MS });
  const store = createMemoryStore();
  const storage = createFakeStorage(clock);
  const letters = new Map<string, FaultCode>();
  const tags = new Map<string, string>();
  const told = ({ messageId, sentAtMs, receiveCount }: ReturnType<FakeQueues['messages']>[number]): Told => {
    return { tag: tags.get(messageId) ?? '', sentAtMs, receiveCount };
  };
  const redrive = { maxReceiveCount: MAX_RECEIVE_COUNT, deadLetterQueueUrl: DEAD_LETTERS, retentionMs: 4 * 86_400_000 };
  const plain = createFakeQueues(clock, redrive);
  const queues: FakeQueues = {
    ...plain,
    deleteBatch(queueUrl, handles) {
      for (const handle of handles) {
        const message = plain.byHandle(queueUrl, handle);
        if (message !== undefined) options.deleted?.(told(message), letters.has(message.messageId));
      }
      return plain.deleteBatch(queueUrl, handles);
    },
  };
  const telemetry = new Proxy({}, { get: () => () => undefined }) as Telemetry;
  const indexed = options.indexed ?? (() => undefined);
  const shared = { indexed, clock, store, storage, queues, telemetry, letters, options };
  await connectAll(shared);
  const networks = Array.from({ length: options.workers }, (): Network => ({ fault: undefined }));
  const repairNetwork: Network = { fault: undefined };
  let starts = 0;
  let repairer = await startRepairer(shared, repairNetwork, nameOf());
  const workers = await Promise.all(networks.map((network) => startWorker(shared, network)));

  function nameOf(): string {
    starts += 1;
    return `process-${starts}`;
  }

  return {
    clock,
    storage,
    networks,
    repairNetwork,
    run: (forMs: number) => clock.advance(forMs),
    /** Sends the events as one message. */
    send(tag: string, ...records: readonly unknown[]): void {
      void queues.send(QUEUE, { body: JSON.stringify({ Records: records }), attributes: {} }).then((id) => tags.set(id, tag));
    },
    /** What is in the queue, hidden messages included, and what its redrive policy moved away. */
    messages: () => queues.messages(QUEUE).map(told),
    moved: () => queues.messages(DEAD_LETTERS).map(told),
    /**
     * Other workers begin in the places of all that run. A kill says nothing to anybody; those that are stopped give back what
     * they have in hand, while the others work already.
     */
    async restart(how: 'kill' | 'stop'): Promise<void> {
      repairer.kill();
      for (const worker of workers) {
        if (how === 'kill') worker.kill();
        else void worker.stop();
      }
      repairer = await startRepairer(shared, repairNetwork, nameOf());
      await Promise.all(networks.map(async (network, index) => (workers[index] = await startWorker(shared, network))));
    },
    gaps: (): Promise<readonly DirtyMark[]> => listAllRecords(store.state, 'gap', markSchema),
    /** The keys whose document is not what the bucket holds. */
    async wrongKeys(bucket: string): Promise<readonly string[]> {
      const etags = storage.etags(bucket);
      const documents = await store.scan.scan(bucket, { prefix: '', after: '', limit: 10_000 });
      const live = new Set(documents.map(({ key }) => key));
      const different = documents.filter(({ key, etag }) => etag === undefined || etags.get(key) !== etag).map(({ key }) => key);
      return [...different, ...[...etags.keys()].filter((key) => !live.has(key))];
    },
    end(): void {
      for (const worker of workers) worker.kill();
      repairer.kill();
    },
  };
}

interface Shared extends Services {
  readonly telemetry: Telemetry;
  readonly letters: Map<string, FaultCode>;
  readonly options: WorldOptions;
}

async function connectAll({ clock, store, storage, telemetry, options }: Shared): Promise<void> {
  const gaps = createGapReports({ state: store.state, clock, telemetry });
  const connect = createConnectBucket({ state: store.state, objects: store.objects, storage, gaps, clock, telemetry });
  for (const { bucket, region } of options.buckets) {
    storage.createBucket(bucket, { region });
    await connect.connect({ bucket }, 'test');
  }
  // as after the first re-index
  for (const { id } of await listAllRecords(store.state, 'gap', markSchema)) await removeRecord(store.state, id);
}

interface Process {
  kill(): void;
}

function lifeOf({ clock }: Shared, network: Network): { readonly life: Life; readonly end: AbortController } {
  const end = new AbortController();
  const sleep = (delayMs: number, signal?: AbortSignal): Promise<void> => clock.sleep(delayMs, signal).then(() => alive(end.signal));
  return { end, life: { network, dead: end.signal, clock: { ...clock, sleep } } };
}

async function startWorker(shared: Shared, network: Network) {
  const { queues: allQueues, telemetry, letters, options } = shared;
  const { life, end } = lifeOf(shared, network);
  const { clock } = life;
  const stopping = new AbortController();
  const store = storeThrough(shared, life);
  const storage = storageThrough(shared, life);
  const queues = queuesThrough(shared, life);
  const common = { state: store.state, clock, telemetry };
  const permission = createHandoverPermission(common);
  const { role, start } = createIngest(
    {
      ...common,
      store,
      storage,
      queues,
      receiver: createPollers({ queues: allQueues, life, pollers: options.pollers ?? 8 }),
      handover: createHandover({ ...common, permission }),
      sendDeadLetter: async ({ messageId }, { code }) => void letters.set(messageId, code),
      limits: LIMITS,
    },
    stopping,
  );
  await permission.watch(stopping.signal);
  await start();
  return {
    kill: () => end.abort(new Error('the worker was killed')),
    async stop(): Promise<void> {
      const deadline = new AbortController();
      void shared.clock.sleep(STOP_MAX_MS / 2).then(() => deadline.abort(new Error('the deadline of the stop')));
      await role.stop(deadline.signal);
      end.abort(new Error('the worker has stopped'));
    },
  };
}

/** The process that closes gaps: re-index and calendar. */
async function startRepairer(shared: Shared, network: Network, worker: string): Promise<Process> {
  const { telemetry } = shared;
  const { life, end } = lifeOf(shared, network);
  const { clock } = life;
  const store = storeThrough(shared, life);
  const storage = storageThrough(shared, life);
  const { objects, state } = store;
  const common = { state, clock, telemetry };
  const stops = { probeCluster: () => objects.probe(), stopped: end.signal };
  const role = createRepair({ ...common, ...stops, store, s3: storage, worker, listings: 2 });
  const jobs = createReindexJobs(common);
  const ask: AskToRepair = (...asked) => askToRepair({ listing: storage, objects, clock }, ...asked);
  const closeGaps = createCloseGaps({ ...common, startJob: jobs.start, askToRepair: ask });
  const schedules = createSchedules(common);
  const gapSchedule = { name: CLOSE_GAPS_NAME, intervalMs: MINUTE_MS / 4, runMaxMs: 2 * MINUTE_MS };
  // the record of this schedule shows the workers that gaps are closed
  await schedules.runIfDue(gapSchedule, closeGaps, end.signal).catch(() => false);
  schedules.every(gapSchedule, closeGaps, end.signal);
  role.start();
  return { kill: () => end.abort(new Error('the process was killed')) };
}
