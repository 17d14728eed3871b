/** The reindex role of `tally serve`. Its parts are created and connected here. */
import { createS3Listing } from '../adapters/aws/s3-listing.ts';
import { createSqsReceiver } from '../adapters/aws/sqs-receiver.ts';
import { systemClock } from '../adapters/system-clock.ts';
import type { Settings } from '../settings/settings.ts';
import type { Core, Queues } from './core.ts';
import { createSchedules } from '../pipeline/calendar/schedules.ts';
import type { Circuits } from '../pipeline/serving/circuits.ts';
import { createIndexLoad, measured } from '../pipeline/reindex-jobs/index-load.ts';
import { createOverdueTasks } from '../pipeline/reindex-jobs/overdue-tasks.ts';
import { RANGE_LIMITS } from '../pipeline/reindex-jobs/range-records.ts';
import { createReindexRole, type ReindexRole } from '../pipeline/reindex-jobs/role.ts';
import type { SendTask } from '../pipeline/reindex-jobs/tasks.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { checkOfFault, type CheckSource, type ReadinessCheck } from '../pipeline/serving/readiness.ts';
import { createBackgroundWriter } from '../pipeline/compare/background-writer.ts';
import { createReconcileTurn } from '../pipeline/compare/reconcile-turn.ts';

/** As long as a lease: the task of a killed worker is received again when its range is free again. */
const VISIBILITY_S = 60;
/** One worker looks for lost tasks each minute. */
const OVERDUE = { name: 'overdue-tasks', intervalMs: 60_000, runMaxMs: 120_000 };

export interface Reindexing {
  readonly checks: readonly CheckSource[];
  /** Begins to receive tasks, and looks for lost ones until the signal is aborted. */
  start(signal: AbortSignal): void;
  /** Stops the role by the deadline. */
  stop(deadline: AbortSignal): Promise<void>;
}

interface ReindexingParts {
  readonly settings: Settings;
  readonly core: Core;
  readonly queues: Queues;
  readonly circuits: Circuits;
  readonly telemetry: Telemetry;
  /** The name of this process. */
  readonly worker: string;
  /** Whether live events of this process have work waiting. */
  readonly liveIsBusy: () => boolean;
}

/** Creates and connects the parts; nothing runs before start(). Without the role or a work queue there is nothing to run. */
export function createReindexing(parts: ReindexingParts): Reindexing {
  const { settings, core, queues, telemetry } = parts;
  if (!settings.TALLY_ROLES.includes('reindex')) return { checks: [], start() {}, async stop() {} };
  if (queues.work === undefined || core.sendTask === undefined) {
    return {
      checks: [{ name: 'work-queue', neededBy: ['reindex'], check: () => NO_WORK_QUEUE }],
      start: () => telemetry.warn('re-index jobs stay queued: no work queue is set', { advice: NO_WORK_QUEUE.advice }),
      async stop() {},
    };
  }
  const role = createRole(parts, { workQueueUrl: queues.work, sendTask: core.sendTask });
  const { state } = core.store;
  const schedules = createSchedules({ state, clock: systemClock, telemetry });
  const lookForOverdue = createOverdueTasks({ state, clock: systemClock, sendTask: core.sendTask });
  return {
    checks: [{ name: 'work-queue', neededBy: ['reindex'], check: () => checkOfFault(role.receiveFault()) }],
    start(signal) {
      role.start();
      schedules.every(OVERDUE, lookForOverdue, signal);
    },
    stop: (deadline) => role.stop(deadline),
  };
}

function createRole(
  { settings, core, circuits, telemetry, worker, liveIsBusy }: ReindexingParts,
  { workQueueUrl, sendTask }: { readonly workQueueUrl: string; readonly sendTask: SendTask },
): ReindexRole {
  const clock = systemClock;
  const { store, storage, queues, aws } = core;
  const load = createIndexLoad(clock, settings.TALLY_REINDEX_BULK_CONCURRENCY);
  const { objects, scan } = measured(load, store);
  const listing = createS3Listing({ clientFor: aws.s3For, clock });
  const writeAll = createBackgroundWriter({
    objects,
    clock,
    telemetry,
    circuits,
    limits: {
      actionsMax: settings.TALLY_BULK_ACTIONS,
      bytesMax: settings.TALLY_BULK_BYTES,
      concurrency: settings.TALLY_REINDEX_BULK_CONCURRENCY,
    },
    liveIsBusy,
  });
  const headConcurrency = settings.TALLY_REINDEX_HEAD_CONCURRENCY;
  const turn = createReconcileTurn({ objects, scan, listing, storage, writeAll, clock, telemetry, circuits, headConcurrency });
  const receiver = createSqsReceiver({
    clientFor: aws.sqsReceivingFor,
    queueUrls: [workQueueUrl],
    pollers: 1,
    waitS: settings.TALLY_INGEST_WAIT_S,
    visibilityS: VISIBILITY_S,
    // one at a time: a task for which this worker has no free slot is better received by another worker
    batchMax: 1,
    clock,
  });
  const limits = { ...RANGE_LIMITS, listings: settings.TALLY_REINDEX_LISTINGS, visibilityS: VISIBILITY_S };
  const work = { turn, queues, workQueueUrl, sendTask, receiver };
  return createReindexRole({ ...work, store, listing, indexIsSlow: load.isSlow, circuits, clock, telemetry, worker, limits });
}

const NO_WORK_QUEUE: ReadinessCheck = {
  status: 'warning',
  code: 'no-work-queue',
  detail: 'no work queue is set: re-index jobs stay queued, and gaps stay open',
  advice: 'Set TALLY_WORK_QUEUE_URL to an SQS queue that nothing else uses.',
};
