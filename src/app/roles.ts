/** The roles ingest and reindex of `tally serve`. Their parts are created and connected here. */
import {
  BULK_BYTES,
  REINDEX_BULK_CONCURRENCY,
  REINDEX_HEADS,
  BULK_ACTIONS,
  BULK_CONCURRENCY,
  BULK_LINGER_MS,
  HEADS,
  HELD_HEAP_SHARE,
  HELD_MAX,
  HOLD_MAX_MS,
  IN_FLIGHT_MAX,
} from './limits.ts';
import type { Core } from './core.ts';
import { createQuestionProof } from '../pipeline/compare/question-proof.ts';
import { createSchedules } from '../pipeline/calendar/schedules.ts';
import { createIndexLoad, measured } from '../pipeline/reindex-jobs/index-load.ts';
import { PART_LIMITS } from '../pipeline/reindex-jobs/key-probes.ts';
import { createReindexRole, type ReindexRole } from '../pipeline/reindex-jobs/role.ts';
import { tidyJobs } from '../pipeline/reindex-jobs/job-ends.ts';
import { checkOfFault, type CheckSource } from '../pipeline/serving/readiness.ts';
import { createBackgroundWriter } from '../pipeline/compare/background-writer.ts';
import { LISTING_PAGE } from '../pipeline/compare/page-feeds.ts';
import { createReconcileTurn } from '../pipeline/compare/reconcile-turn.ts';
import { getHeapStatistics } from 'node:v8';
import { createSqsReceiver } from '../adapters/aws/sqs-receiver.ts';
import type { IngestParts } from '../pipeline/ingest/role.ts';

/** One process removes old jobs each minute. */
const TIDY = { name: 'tidy-jobs', intervalMs: 60_000, runMaxMs: 120_000 };

export interface Reindexing {
  readonly checks: readonly CheckSource[];
  /** Begins to look for work, and tidies up until the signal is aborted. */
  start(signal: AbortSignal): void;
  /** Stops the role by the deadline. */
  stop(deadline: AbortSignal): Promise<void>;
}

interface ReindexingParts {
  /** The name of this process. */
  readonly worker: string;
  /** Whether live events of this process have work waiting. */
  readonly liveIsBusy: () => boolean;
}

/** Creates and connects the parts; nothing runs before start(). Without the role there is nothing to run. */
export function createReindexing(core: Core, parts: ReindexingParts): Reindexing {
  if (!core.settings.TALLY_ROLES.includes('reindex')) return { checks: [], start() {}, async stop() {} };
  const role = createRole(core, parts);
  const schedules = createSchedules(core);
  return {
    checks: [{ name: 'reindex-work', neededBy: ['reindex'], check: () => checkOfFault(role.lookFault()) }],
    start(signal) {
      role.start();
      core.onJobDue(role.wake);
      schedules.every(TIDY, () => tidyJobs(core), signal);
    },
    stop: (deadline) => role.stop(deadline),
  };
}

function createRole(core: Core, { worker, liveIsBusy }: ReindexingParts): ReindexRole {
  const load = createIndexLoad(core.clock, REINDEX_BULK_CONCURRENCY);
  const parts = { ...core, ...measured(load, core.store) };
  const writeAll = createBackgroundWriter({
    ...parts,
    limits: {
      // what one page of a listing differs in is one request
      actionsMax: LISTING_PAGE,
      bytesMax: BULK_BYTES,
      concurrency: REINDEX_BULK_CONCURRENCY,
    },
    liveIsBusy,
  });
  const turn = createReconcileTurn({ ...parts, writeAll, questionProof: createQuestionProof(core), headConcurrency: REINDEX_HEADS });
  const limits = { ...PART_LIMITS, listings: core.settings.TALLY_REINDEX_LISTINGS };
  return createReindexRole({ ...core, turn, indexIsSlow: load.isSlow, worker, limits });
}

/** Creates the parts of the ingest role, with its limits. */
export function ingestParts(core: Core, parts: Pick<IngestParts, 'handover' | 'counter'>): IngestParts {
  const { settings, bucketQueueUrls, clock } = core;
  const receiver = createSqsReceiver({
    clientFor: core.aws.sqsReceivingFor,
    queueUrls: bucketQueueUrls,
    pollers: settings.TALLY_INGEST_POLLERS,
    waitS: settings.TALLY_INGEST_WAIT_S,
    visibilityS: settings.TALLY_INGEST_VISIBILITY_S,
    clock,
  });
  return {
    ...core,
    ...parts,
    connect: core.connectBucket,
    receiver,
    sendDeadLetter: core.deadLetters.send,
    limits: {
      bulk: { actionsMax: BULK_ACTIONS, bytesMax: BULK_BYTES, lingerMs: BULK_LINGER_MS, concurrency: BULK_CONCURRENCY },
      headConcurrency: HEADS,
      heldMax: HELD_MAX,
      weightMaxBytes: getHeapStatistics().heap_size_limit * HELD_HEAP_SHARE,
      holdMaxMs: HOLD_MAX_MS,
      inFlightMax: IN_FLIGHT_MAX,
      visibilityS: settings.TALLY_INGEST_VISIBILITY_S,
    },
  };
}
