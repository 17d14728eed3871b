/**
 * The calendar: what processes with the role reindex do at regular times, and when. Every value of the metric's label `sweep` has its
 * sweep here. src/repair/schedules.ts lets one process at a time perform each task.
 */
import { BULK_ACTIONS, BULK_BYTES, BULK_LINGER_MS, SWEEP_HEADS } from './limits.ts';
import type { Core } from './core.ts';
import { createSchedules, type Schedule } from '../repair/schedules.ts';
import { tidyJobs } from '../repair/job-ends.ts';
import { systemClock } from '../process/clock.ts';
import { processActor } from '../process/process-actor.ts';
import { seriesTable } from '../process/telemetry.ts';
import { CLOSE_GAPS_NAME } from '../records/schedule.ts';
import { watchIndices } from '../connect/index-identity.ts';
import type { createCloseGaps } from '../repair/close-gaps.ts';
import { createVisitLifecycle } from '../repair/lifecycle.ts';
import { createSweepDeletes, createVisitUnsettled, purgeAudit, unsettledDue, visitCompare, visitTombstones } from '../repair/sweeps.ts';
import { purgeApiKeys, purgeLogins } from '../identity/purges.ts';
import { createSweep, type DueOf, type Sweep, type Visit } from '../observing/sweep.ts';
import { createBulkWriter } from '../observing/bulk-writer.ts';
import { createObserving } from '../observing/observer.ts';
import { connectionsDue, visitConnection } from '../connect/watch.ts';

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
/** Looks for buckets whose scheduled comparison is due. */
const COMPARE: Schedule = { name: 'compare', intervalMs: 10 * MINUTE_MS, runMaxMs: 2 * MINUTE_MS };

/** The share of a sweep run's maximum time during which it may start visits. The rest is for the last visit. */
const RUN_SHARE = 3 / 4;

type CalendarParts = Core & { readonly closeGaps: ReturnType<typeof createCloseGaps> };

/** A sweep's schedule, its visit of one bucket, and which buckets are due (default: all). */
type Planned = readonly [Schedule, Visit, DueOf?];

/** Runs the scheduled work until the signal is aborted. */
export function startCalendar(core: CalendarParts, signal: AbortSignal): void {
  const { settings, connections, closeGaps, compareIntervalMs: intervalMs, clock } = core;
  // what is deleted for its age is that old by this machine's clock as well, in case SQS's is the wrong one
  const purgeClock = { ...clock, nowMs: () => Math.min(clock.nowMs(), systemClock.nowMs()) };
  const purging = { ...core, clock: purgeClock };
  const schedules = createSchedules(core);
  schedules.every(CLOSE_GAPS, closeGaps, signal);
  schedules.every(TIDY_JOBS, () => tidyJobs(purging), signal);
  schedules.every(PURGE_AUDIT, (own) => purgeAudit(purging, settings.TALLY_AUDIT_RETENTION_DAYS, own), signal);
  schedules.every(PURGE_API_KEYS, (own) => purgeApiKeys(purging, own), signal);
  schedules.every(PURGE_LOGINS, (own) => purgeLogins(purging, own), signal);
  schedules.every(WATCH_INDICES, (own) => watchIndices(core, own), signal);

  const observe = observerOf(core);
  const sweeps: Readonly<Record<Sweep, Planned | undefined>> = {
    unsettled: [SWEEP_UNSETTLED, createVisitUnsettled({ ...core, observe }), (own) => unsettledDue(core, own)],
    tombstones: [PURGE_TOMBSTONES, (bucket, own) => visitTombstones({ ...core, purgeClock }, bucket, own)],
    lifecycle: [FOLLOW_LIFECYCLE, createVisitLifecycle({ ...core, observe })],
    // in embedded mode there are none
    connections: connections && [
      WATCH_CONNECTIONS,
      (bucket, own) => visitConnection({ ...core, connections }, bucket, own),
      () => connectionsDue(core),
    ],
    compare: [COMPARE, (bucket, own) => visitCompare({ ...core, startJob: core.jobs.start, intervalMs }, bucket, own)],
  };
  for (const name of seriesTable.tally_sweeps_total.labels.sweep) {
    const planned = sweeps[name];
    if (planned === undefined) continue;
    const [schedule, visit, dueOf] = planned;
    schedules.every(schedule, createSweep({ ...core, runMaxMs: schedule.runMaxMs * RUN_SHARE }, name, visit, dueOf), signal);
  }
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
