/** The reindex role of `tally serve`. Its parts are created and connected here. */
import { createS3Listing } from '../adapters/aws/s3-listing.ts';
import { systemClock } from '../adapters/system-clock.ts';
import type { Settings } from '../settings/settings.ts';
import { BULK_BYTES, REINDEX_BULK_CONCURRENCY, REINDEX_HEADS } from './limits.ts';
import type { Core } from './core.ts';
import { createSchedules } from '../pipeline/calendar/schedules.ts';
import type { Circuits } from '../pipeline/serving/circuits.ts';
import { createIndexLoad, measured } from '../pipeline/reindex-jobs/index-load.ts';
import { RANGE_LIMITS } from '../pipeline/reindex-jobs/range-records.ts';
import { createReindexRole, type ReindexRole } from '../pipeline/reindex-jobs/role.ts';
import { createTidyJobs } from '../pipeline/reindex-jobs/tidy-jobs.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { checkOfFault, type CheckSource } from '../pipeline/serving/readiness.ts';
import { createBackgroundWriter } from '../pipeline/compare/background-writer.ts';
import { LISTING_PAGE } from '../pipeline/compare/page-feeds.ts';
import { createReconcileTurn } from '../pipeline/compare/reconcile-turn.ts';

/** One worker removes each minute what jobs have left behind. */
const TIDY = { name: 'tidy-jobs', intervalMs: 60_000, runMaxMs: 120_000 };

export interface Reindexing {
  readonly checks: readonly CheckSource[];
  /** Begins to look for work, and tidies up until the signal is aborted. */
  start(signal: AbortSignal): void;
  /** Stops the role by the deadline. */
  stop(deadline: AbortSignal): Promise<void>;
}

interface ReindexingParts {
  readonly settings: Settings;
  readonly core: Core;
  readonly circuits: Circuits;
  readonly telemetry: Telemetry;
  /** The name of this process. */
  readonly worker: string;
  /** Whether live events of this process have work waiting. */
  readonly liveIsBusy: () => boolean;
}

/** Creates and connects the parts; nothing runs before start(). Without the role there is nothing to run. */
export function createReindexing(parts: ReindexingParts): Reindexing {
  const { settings, core, telemetry } = parts;
  if (!settings.TALLY_ROLES.includes('reindex')) return { checks: [], start() {}, async stop() {} };
  const role = createRole(parts);
  const { state } = core.store;
  const schedules = createSchedules({ state, clock: systemClock, telemetry });
  return {
    checks: [{ name: 'reindex-work', neededBy: ['reindex'], check: () => checkOfFault(role.lookFault()) }],
    start(signal) {
      role.start();
      core.onJobDue(role.wake);
      schedules.every(TIDY, createTidyJobs({ state, clock: systemClock }), signal);
    },
    stop: (deadline) => role.stop(deadline),
  };
}

function createRole({ settings, core, circuits, telemetry, worker, liveIsBusy }: ReindexingParts): ReindexRole {
  const clock = systemClock;
  const { store, storage, aws } = core;
  const load = createIndexLoad(clock, REINDEX_BULK_CONCURRENCY);
  const { objects, scan } = measured(load, store);
  const listing = createS3Listing({ clientFor: aws.s3For, clock });
  const writeAll = createBackgroundWriter({
    objects,
    clock,
    telemetry,
    circuits,
    limits: {
      // what one page of a listing differs in is one request
      actionsMax: LISTING_PAGE,
      bytesMax: BULK_BYTES,
      concurrency: REINDEX_BULK_CONCURRENCY,
    },
    liveIsBusy,
  });
  const turn = createReconcileTurn({
    objects,
    scan,
    listing,
    storage,
    writeAll,
    clock,
    telemetry,
    circuits,
    headConcurrency: REINDEX_HEADS,
  });
  const limits = { ...RANGE_LIMITS, listings: settings.TALLY_REINDEX_LISTINGS };
  return createReindexRole({ turn, store, listing, indexIsSlow: load.isSlow, circuits, clock, telemetry, worker, limits });
}
