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
  SWEEP_HEADS,
} from './limits.ts';
import type { Core } from './core.ts';
import { createQuestionProof } from '../repair/question-proof.ts';
import { createSchedules, type Schedule } from '../repair/schedules.ts';
import { createReindexRole, type ReindexParts, type ReindexRole } from '../repair/jobs.ts';
import { tidyJobs } from '../repair/job-ends.ts';
import { checkOfFault, type CheckSource } from '../observing/readiness.ts';
import { createBackgroundWriter } from '../repair/background-writer.ts';
import { LISTING_PAGE, createReconcileTurn } from '../repair/reconcile-turn.ts';
import { getHeapStatistics } from 'node:v8';
import { createSqsReceiver } from '../aws/sqs-receiver.ts';
import type { IngestParts } from '../indexer/indexer.ts';
import { processActor } from '../process/process-actor.ts';
import { CLOSE_GAPS_NAME } from '../records/schedule.ts';
import { watchIndices } from '../connect/index-identity.ts';
import { askToRepair, createCloseGaps } from '../repair/close-gaps.ts';
import { createVisitLifecycle } from '../repair/follow-lifecycle.ts';
import { lookForOverdue } from '../repair/overdue.ts';
import { createSweepDeletes, createVisitUnsettled, purgeAudit, unsettledDue, visitFull, visitTombstones } from '../repair/sweeps.ts';
import { purgeApiKeys, purgeLogins } from '../identity/purges.ts';
import { createSweep, type DueOf, type Sweep, type Visit } from '../observing/sweep.ts';
import { createBulkWriter } from '../observing/bulk-writer.ts';
import { createObserving } from '../observing/observer.ts';
import { connectionsDue, visitConnection } from '../connect/watch.ts';

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

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Removes old jobs. */
const TIDY_JOBS: Schedule = { name: 'tidy-jobs', intervalMs: MINUTE_MS, runMaxMs: 2 * MINUTE_MS };
/** Every 15 s is often enough, because a gap first waits for a quiet minute. */
const CLOSE_GAPS: Schedule = { name: CLOSE_GAPS_NAME, intervalMs: 15 * SECOND_MS, runMaxMs: 2 * MINUTE_MS };
const SWEEP_UNSETTLED: Schedule = { name: 'sweep-unsettled', intervalMs: 5 * MINUTE_MS, runMaxMs: 4 * MINUTE_MS };
const PURGE_TOMBSTONES: Schedule = { name: 'purge-tombstones', intervalMs: HOUR_MS, runMaxMs: HOUR_MS };
/** Looks for buckets whose daily check is due. A newly connected bucket is checked within about a minute. */
const FOLLOW_LIFECYCLE: Schedule = { name: 'follow-lifecycle', intervalMs: MINUTE_MS, runMaxMs: HOUR_MS };
const PURGE_AUDIT: Schedule = { name: 'purge-audit', intervalMs: HOUR_MS, runMaxMs: HOUR_MS };
/** Keys end by the day, so their records may live some hours longer. */
const PURGE_API_KEYS: Schedule = { name: 'purge-api-keys', intervalMs: 6 * HOUR_MS, runMaxMs: HOUR_MS };
/** A login's lifetime, so that few unfinished logins pile up. */
const PURGE_LOGINS: Schedule = { name: 'purge-logins', intervalMs: 10 * MINUTE_MS, runMaxMs: 10 * MINUTE_MS };
/** Looks for buckets whose hourly check is due, or whose connection was changed some seconds ago. */
const WATCH_CONNECTIONS: Schedule = { name: 'watch-connections', intervalMs: 15 * SECOND_MS, runMaxMs: 10 * MINUTE_MS };
/** A run is one request for all buckets. */
const WATCH_INDICES: Schedule = { name: 'watch-indices', intervalMs: MINUTE_MS, runMaxMs: 2 * MINUTE_MS };
/** Looks for buckets whose scheduled compare is due. */
const COMPARE_WHEN_DUE: Schedule = { name: 'sweep-full', intervalMs: 10 * MINUTE_MS, runMaxMs: 2 * MINUTE_MS };

/** The share of a sweep run's maximum time during which it may start visits. The rest is for the last visit. */
const RUN_SHARE = 3 / 4;

type Calendar = Core & { readonly closeGaps: ReturnType<typeof createCloseGaps> };

function startCalendar(core: Calendar, signal: AbortSignal): void {
  const { settings, closeGaps } = core;
  const schedules = createSchedules(core);
  const observe = observerOf(core);
  const sweep = (schedule: Schedule, name: Sweep, visit: Visit, dueOf?: DueOf): void => {
    const run = createSweep({ ...core, runMaxMs: schedule.runMaxMs * RUN_SHARE }, name, visit, dueOf);
    schedules.every(schedule, run, signal);
  };

  schedules.every(TIDY_JOBS, () => tidyJobs(core), signal);
  sweep(SWEEP_UNSETTLED, 'unsettled', createVisitUnsettled({ ...core, observe }), (runSignal) => unsettledDue(core, runSignal));
  sweep(PURGE_TOMBSTONES, 'tombstones', (bucket, runSignal) => visitTombstones(core, bucket, runSignal));
  schedules.every(PURGE_AUDIT, (runSignal) => purgeAudit(core, settings.TALLY_AUDIT_RETENTION_DAYS, runSignal), signal);
  schedules.every(PURGE_API_KEYS, (runSignal) => purgeApiKeys(core, runSignal), signal);
  schedules.every(PURGE_LOGINS, (runSignal) => purgeLogins(core, runSignal), signal);
  schedules.every(WATCH_INDICES, (runSignal) => watchIndices(core, runSignal), signal);
  sweep(FOLLOW_LIFECYCLE, 'lifecycle', createVisitLifecycle({ ...core, observe }));
  const { connections } = core;
  if (connections !== undefined) {
    const visit: Visit = (bucket, runSignal) => visitConnection({ ...core, connections }, bucket, runSignal);
    sweep(WATCH_CONNECTIONS, 'connections', visit, () => connectionsDue(core));
  }
  schedules.every(CLOSE_GAPS, closeGaps, signal);
  const intervalMs = core.compareIntervalMs;
  sweep(COMPARE_WHEN_DUE, 'full', (bucket, runSignal) => visitFull({ ...core, startJob: core.jobs.start, intervalMs }, bucket, runSignal));
}

/** An observer like that of live events, with a separate HEAD limit and a separate writer that sends one bulk request at a time, so that live events have priority. */
function observerOf(core: Core) {
  const deletes = createSweepDeletes({ ...core, actor: processActor() });
  const write = createBulkWriter({
    ...core,
    objects: deletes.objects,
    limits: { actionsMax: BULK_ACTIONS, bytesMax: BULK_BYTES, lingerMs: BULK_LINGER_MS, concurrency: 1 },
  });
  const { observe } = createObserving({
    ...core,
    index: core.store,
    write,
    concurrency: SWEEP_HEADS,
    stopped: core.stopping.signal,
  });
  return deletes.watching(observe);
}
