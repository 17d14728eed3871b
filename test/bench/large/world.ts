/**
 * A re-index of a large bucket by one process, in virtual time. The code is the product's, from the request to the
 * job's end; what it asks of S3 and OpenSearch is answered from the numbers of the objects.
 */
import { faultOf } from '../../../src/base/fault.ts';
import { endedJob, type EndedJob } from '../../support/worlds/jobs.ts';
import type { JobRecord } from '../../../src/records/job.ts';
import { hasEnded } from '../../../src/records/job.ts';
import { createSchedules } from '../../../src/repair/schedules.ts';
import { createBackgroundWriter } from '../../../src/repair/background-writer.ts';
import { createReconcileTurn } from '../../../src/repair/reconcile-turn.ts';
import { createReindexJobs } from '../../../src/repair/job-requests.ts';
import type { ObjectStorage } from '../../../src/aws/storage.ts';
import type { Telemetry } from '../../../src/process/telemetry.ts';
import { readRecord, refs, updateRecord } from '../../../src/store/stored.ts';
import { createReindexRole } from '../../../src/repair/jobs.ts';
import { tidyJobs } from '../../../src/repair/job-ends.ts';
import { recordOf } from '../../support/fakes/bucket-record.ts';
import { createTestCircuits } from '../../support/fakes/circuits.ts';
import { createRandom } from '../../support/random/seeded.ts';
import { reindexRequest } from '../../support/requests.ts';
import type { KeyShape } from '../reindex/listing/key-space.ts';
import { createLargeObjects } from './objects.ts';
import {
  createCores,
  createLargeIndex,
  createLargeListing,
  noRequests,
  type Cores,
  type Counted,
  type LargeIndex,
  type Shared,
} from './servers.ts';
import { createLargeState, type StateCounted } from './state.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { withVirtualDelays } from '../../support/fakes/virtual-delays.ts';

const BUCKET = 'large';
/** As the program's own. */
const TIDY = { name: 'tidy-jobs', intervalMs: 60_000, runMaxMs: 120_000 };
const LISTINGS = 8;
const WRITER_LIMITS = { actionsMax: 1_000, bytesMax: 5_242_880, concurrency: 4 };
/** How often `--wait` and the panel read the job. */
const WATCH_MS = 2_000;

export interface LargeCase {
  readonly shape: KeyShape;
  readonly objects: number;
  /** `unchanged`: index and bucket agree. `first`: the index is empty. */
  readonly mode: 'unchanged' | 'first';
  /** Of the machines of the index, all together. */
  readonly indexCores: number;
  readonly seed?: number;
  /** Called each time another hundredth of the objects was listed. */
  readonly onProgress?: (share: number) => void;
}

export interface LargeResult extends Omit<LargeCase, 'onProgress' | 'seed'> {
  readonly job: EndedJob;
  /** Of comparing, in virtual time. */
  readonly tookS: number;
  /** How many documents the index has in the end. */
  readonly documents: number;
  readonly requests: Counted;
  readonly state: StateCounted;
  readonly turns: number;
  readonly faults: readonly string[];
  /** The share of the time in which the cores of the index were busy. */
  readonly indexBusy: number;
  /** How many parts were compared at the same time, on average, as a share of those that the process could compare. */
  readonly slotsBusy: number;
  /** How long fewer than half as many parts as on average were compared at the end. */
  readonly tailS: number;
}

/** Runs one re-index to its end. Throws unless the job is done. */
export async function runLarge(wanted: LargeCase): Promise<LargeResult> {
  const clock = createFakeClock();
  return withVirtualDelays(clock, async () => {
    const world = createWorld(wanted, clock);
    const result = await clock.runUntil(world.run());
    world.end();
    return result;
  });
}

function createWorld(wanted: LargeCase, clock: Shared['clock']) {
  const { mode, objects: objectCount, indexCores } = wanted;
  const shared: Shared = {
    clock,
    objects: createLargeObjects(wanted.shape, objectCount),
    random: createRandom(wanted.seed ?? 1),
    counted: withProgress(objectCount, wanted.onProgress),
  };
  const state = createLargeState(clock);
  const cores = createCores(clock, indexCores);
  const index = createLargeIndex(shared, cores, mode === 'unchanged');
  const work = createWork(clock, LISTINGS);
  const stopping = new AbortController();
  const parts = { shared, state, index, work, stopping: stopping.signal };
  const jobs = createReindexJobs({ state, clock, telemetry: work.telemetryOf() });

  /** From the request to the job's end, read as `--wait` reads it. */
  async function run(): Promise<LargeResult> {
    await updateRecord(state, refs.bucket(BUCKET), () => bucketRecord);
    startWorker(parts);
    const { id } = await jobs.request(reindexRequest({ bucket: BUCKET, now: true }), 'test');
    while (!hasEnded(await jobs.get(id))) await clock.sleep(WATCH_MS);
    const job = await readRecord(state, refs.job(id));
    if (job?.state !== 'done') throw new Error(`the job did not get done: ${JSON.stringify(job)}; ${work.faults.join('; ')}`);
    return resultOf(job);
  }

  function resultOf(job: JobRecord): LargeResult {
    const { comparingAtMs = 0, finishedAtMs = 0 } = job;
    const { onProgress: _, seed: __, ...asked } = wanted;
    const tookS = (finishedAtMs - comparingAtMs) / 1_000;
    return {
      ...asked,
      job: endedJob(job),
      tookS,
      documents: index.size,
      requests: shared.counted,
      state: state.counted,
      turns: work.turns,
      faults: work.faults,
      indexBusy: cores.usedMs() / (tookS * 1_000 * indexCores),
      ...work.use(tookS * 1_000),
    };
  }

  return { run, end: () => stopping.abort(new Error('the job has ended')) };
}

const bucketRecord = recordOf(BUCKET, { versioning: { status: 'unknown', observedAtMs: 0 } });

interface WorldParts {
  readonly shared: Shared;
  readonly state: ReturnType<typeof createLargeState>;
  readonly index: LargeIndex;
  readonly work: Work;
  readonly stopping: AbortSignal;
}

/** One process with the role reindex, put together as the program does it. */
function startWorker({ shared, state, index, work, stopping }: WorldParts): void {
  const { clock } = shared;
  const telemetry = work.telemetryOf();
  const core: Cores = createCores(clock, 1);
  const { objects, scan } = index.portsOf(core);
  const listing = createLargeListing(shared, core);
  const circuits = createTestCircuits({ clock, telemetry, stopped: stopping });
  const { writeAll, isFull } = createBackgroundWriter({
    objects,
    clock,
    telemetry,
    circuits,
    limits: WRITER_LIMITS,
    liveIsBusy: () => false,
  });
  const turn = createReconcileTurn({ objects, scan, listing, storage: noStorage, writeAll, clock, telemetry, circuits });
  const role = createReindexRole({
    store: { state, scan },
    listing,
    turn,
    indexIsSlow: isFull,
    circuits,
    clock,
    telemetry,
    worker: 'worker',
    listings: LISTINGS,
  });
  role.start();
  createSchedules({ state, clock, telemetry }).every(TIDY, () => tidyJobs({ state, clock }), stopping);
}

/** Nothing differs in a way that only a HEAD decides. */
const noStorage: ObjectStorage = {
  readState: unasked,
  regionOf: unasked,
  versioningOf: unasked,
  readVersion: unasked,
  readTags: unasked,
  firstKey: unasked,
};

function unasked(): never {
  throw new Error('a re-index of this bucket sends no HEAD');
}

function withProgress(objects: number, onProgress: LargeCase['onProgress']): Counted {
  const counted = noRequests();
  if (onProgress === undefined) return counted;
  let listed = 0;
  let reported = 0;
  return Object.defineProperty(counted, 'listed', {
    enumerable: true,
    get: () => listed,
    set(value: number) {
      listed = value;
      const share = Math.floor((listed * 100) / objects);
      if (share > reported) onProgress((reported = share) / 100);
    },
  });
}

// ── what the workers report ───────────────────────────────────────────────────────────────────────────────────────

const FAULTS_MAX = 20;

interface Work {
  /** The telemetry of one worker. */
  telemetryOf(): Telemetry;
  readonly turns: number;
  /** The first faults that were reported. */
  readonly faults: readonly string[];
  use(tookMs: number): Pick<LargeResult, 'slotsBusy' | 'tailS'>;
}

function createWork(clock: Shared['clock'], slots: number): Work {
  const faults: string[] = [];
  const counted = { turns: 0 };
  /** Parts that are compared now, since when, and how long so many were. */
  let running = 0;
  let sinceMs = 0;
  let busyMs = 0;
  /** Since when never again as many were compared, for each number of them. */
  const lastAtMs = Array.from({ length: slots + 1 }, () => 0);

  function change(by: number): void {
    const nowMs = clock.monotonicMs();
    busyMs += running * (nowMs - sinceMs);
    for (let number = running + by; number < running; number += 1) lastAtMs[number + 1] = nowMs;
    running += by;
    sinceMs = nowMs;
  }

  function report(fault: string): void {
    if (faults.length < FAULTS_MAX) faults.push(fault);
  }

  return {
    faults,
    get turns() {
      return counted.turns;
    },
    telemetryOf() {
      let own = 0;
      const noted: Partial<Telemetry> = {
        count(name, _by, ...[labels]) {
          if (labels === undefined || !('result' in labels)) return;
          if (name !== 'tally_reindex_turns_total') return;
          counted.turns += 1;
          if (labels.result !== 'done' && labels.result !== 'on') report(`turn: ${String(labels.result)}`);
        },
        set(name, now, ..._labels) {
          if (name !== 'tally_reindex_parts') return;
          change(now - own);
          own = now;
        },
        requestFailed: (operation, error) => report(`${operation}: ${faultOf(error).reason}`),
        warn: (message) => report(message),
      };
      return new Proxy(noted, { get: (target, name) => Reflect.get(target, name) ?? (() => undefined) }) as Telemetry;
    },
    use(tookMs) {
      const average = busyMs / tookMs;
      const halfAtMs = lastAtMs[Math.max(1, Math.ceil(average / 2))] ?? 0;
      return { slotsBusy: average / slots, tailS: Math.max(0, sinceMs - halfAtMs) / 1_000 };
    },
  };
}
