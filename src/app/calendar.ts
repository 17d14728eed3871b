/** What `tally serve` does without being asked, in processes with the role reindex: its parts built once and joined by hand. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { createS3Lifecycle } from '../adapters/aws/s3-lifecycle.ts';
import { systemClock } from '../adapters/system-clock.ts';
import type { Settings } from '../settings/settings.ts';
import { SWEEP_HEADS, type Core } from './core.ts';
import { createCloseGaps, type StartJob } from '../pipeline/calendar/close-gaps.ts';
import { createVisitLifecycle } from '../pipeline/calendar/follow-lifecycle.ts';
import { createLookAgain } from '../pipeline/calendar/look-again.ts';
import { createVisitTombstones } from '../pipeline/calendar/purge-tombstones.ts';
import { createSchedules, type Schedule } from '../pipeline/calendar/schedules.ts';
import { createVisitFull } from '../pipeline/calendar/sweep-full.ts';
import { createSweep, type Visit } from '../pipeline/calendar/sweep.ts';
import { createVisitUnsettled } from '../pipeline/calendar/sweep-unsettled.ts';
import { createReindexJobs } from '../pipeline/control/reindex-jobs.ts';
import { createBulkWriter } from '../pipeline/looks/bulk-writer.ts';
import { createLooks } from '../pipeline/looks/create.ts';
import { withPlainFallback } from '../pipeline/looks/plain-fallback.ts';
import type { Sweep } from '../pipeline/ports/telemetry.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Often enough beside a quiet time of a minute. */
const CLOSE_GAPS: Schedule = { name: 'close-gaps', intervalMs: 15 * SECOND_MS, claimMs: 2 * MINUTE_MS };
const UNSETTLED: Schedule = { name: 'sweep-unsettled', intervalMs: 5 * MINUTE_MS, claimMs: 4 * MINUTE_MS };
const TOMBSTONES: Schedule = { name: 'purge-tombstones', intervalMs: HOUR_MS, claimMs: HOUR_MS };
/** Looks which buckets' daily check is due: one that was just connected is checked within a minute or so. */
const LIFECYCLE: Schedule = { name: 'follow-lifecycle', intervalMs: MINUTE_MS, claimMs: HOUR_MS };
/** Looks which buckets' weekly re-index is due. */
const FULL: Schedule = { name: 'sweep-full', intervalMs: 10 * MINUTE_MS, claimMs: 2 * MINUTE_MS };

interface CalendarParts {
  readonly settings: Settings;
  readonly core: Core;
  readonly telemetry: Telemetry;
}

/** Runs the calendar until the signal is aborted. Without the role nothing runs; without a work queue nothing that needs jobs. */
export function startCalendar({ settings, core, telemetry }: CalendarParts, signal: AbortSignal): void {
  if (!settings.TALLY_ROLES.includes('reindex')) return;
  const clock = systemClock;
  const { state, scan, maintenance } = core.store;
  const worker = `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
  const schedules = createSchedules({ state, clock, telemetry, worker });
  const lookAgain = createLookAgain(observerOf({ settings, core, telemetry }, signal));
  const sweep = (schedule: Schedule, name: Sweep, visit: Visit): void =>
    schedules.every(schedule, createSweep({ state, telemetry }, name, visit), signal);

  sweep(UNSETTLED, 'unsettled', createVisitUnsettled({ maintenance, lookAgain, clock }));
  sweep(TOMBSTONES, 'tombstones', createVisitTombstones({ maintenance, clock }));
  const lifecycle = createS3Lifecycle({ clientFor: core.aws.s3For, clock });
  sweep(
    LIFECYCLE,
    'lifecycle',
    createVisitLifecycle({ state, maintenance, scan, lifecycle, lookAgain, gaps: core.gaps, clock, telemetry }),
  );
  if (core.sendTask === undefined) return;
  const jobs = createReindexJobs({ state, clock, telemetry, sendTask: core.sendTask });
  const startJob: StartJob = (request, each) => jobs.start(request, each);
  const requestsPerDay = settings.TALLY_GAPS_LIST_REQUESTS_PER_DAY;
  schedules.every(CLOSE_GAPS, createCloseGaps({ state, scan, startJob, clock, telemetry, requestsPerDay }), signal);
  sweep(FULL, 'full', createVisitFull({ state, startJob, clock }));
}

/** The live path's observer with a place and a writer of its own: one request at a time, so that live events come first. */
function observerOf({ settings, core, telemetry }: CalendarParts, stopped: AbortSignal) {
  const clock = systemClock;
  // gauges that tell of the live path
  const quiet: Telemetry = { ...telemetry, heads: () => undefined, bulkQueue: () => undefined };
  const writer = createBulkWriter({
    objects: core.store.objects,
    clock,
    telemetry: quiet,
    limits: {
      actionsMax: settings.TALLY_BULK_ACTIONS,
      bytesMax: settings.TALLY_BULK_BYTES,
      lingerMs: settings.TALLY_BULK_LINGER_MS,
      concurrency: 1,
    },
  });
  const looks = createLooks({
    storage: core.storage,
    writer: withPlainFallback(writer, quiet),
    clock,
    telemetry: quiet,
    concurrency: SWEEP_HEADS,
    stopped,
  });
  return looks.observe;
}
