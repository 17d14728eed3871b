/** Creates and wires up the roles ingest and reindex of `tally serve`. */
import {
  BULK_BYTES,
  REINDEX_BULK_CONCURRENCY,
  REINDEX_HEADS,
  REINDEX_LISTINGS,
  BULK_ACTIONS,
  BULK_CONCURRENCY,
  BULK_LINGER_MS,
  HEADS,
  HELD_HEAP_SHARE,
  HELD_MAX,
  IN_FLIGHT_MAX,
} from './limits.ts';
import type { Core } from './core.ts';
import { startCalendar } from './calendar.ts';
import { createQuestionProof } from '../repair/question-proof.ts';
import { createReindexRole, type ReindexParts, type ReindexRole } from '../repair/jobs.ts';
import { checkOfFault, type CheckSource } from '../observing/readiness.ts';
import { createBackgroundWriter } from '../repair/background-writer.ts';
import { LISTING_PAGE, createReconcileTurn } from '../repair/reconcile-turn.ts';
import { getHeapStatistics } from 'node:v8';
import { createSqsReceiver } from '../aws/sqs-receiver.ts';
import type { IngestParts } from '../indexer/indexer.ts';
import { askToRepair, createCloseGaps } from '../repair/close-gaps.ts';
import { lookForOverdue } from '../repair/lifecycle.ts';

/** The role reindex, with the scheduled work; nothing runs before start(). Without the role there is nothing to run. */
export function createReindexing(core: Core, worker: string, liveIsBusy: () => boolean) {
  if (!core.settings.TALLY_ROLES.includes('reindex')) return { checks: [], start() {}, async stop() {} };
  const closeGaps = createCloseGaps({ ...core, startJob: core.jobs.start, askToRepair: (...asked) => askToRepair(core, ...asked) });
  const role = createRole({ ...core, lookAtGaps: (bucket, signal) => closeGaps(signal, bucket) }, worker, liveIsBusy);
  const work: CheckSource = { name: 'reindex-work', neededBy: ['reindex'], check: () => checkOfFault(role.lookFault()) };
  return {
    checks: [work],
    /** Begins to look for work, and runs the scheduled work until the signal is aborted. */
    start(signal: AbortSignal): void {
      role.start();
      startCalendar({ ...core, closeGaps }, signal);
    },
    stop: (deadline: AbortSignal): Promise<void> => role.stop(deadline),
  };
}

/** `worker`: the name of this process. `liveIsBusy`: whether its live events have work waiting. */
function createRole(core: Core & Pick<ReindexParts, 'lookAtGaps'>, worker: string, liveIsBusy: () => boolean): ReindexRole {
  const { writeAll, isFull } = createBackgroundWriter({
    ...core,
    limits: {
      // one request holds all differences of one listing page
      actionsMax: LISTING_PAGE,
      bytesMax: BULK_BYTES,
      concurrency: REINDEX_BULK_CONCURRENCY,
    },
    liveIsBusy,
  });
  const turn = createReconcileTurn({ ...core, writeAll, questionProof: createQuestionProof(core), headConcurrency: REINDEX_HEADS });
  const overdue = { ...core, usage: core.store.usage };
  return createReindexRole({
    ...core,
    turn,
    indexIsSlow: isFull,
    worker,
    listings: REINDEX_LISTINGS,
    lookForOverdue: (bucket) => lookForOverdue(overdue, bucket),
  });
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
      inFlightMax: IN_FLIGHT_MAX,
      visibilityS: settings.TALLY_INGEST_VISIBILITY_S,
    },
  };
}
