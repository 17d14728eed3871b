/**
 * Whether records may be folded: only where gaps are closed. A re-index worker stores the record of the schedule that closes
 * gaps several times a minute, so that record shows that one is there; no process has to store anything else.
 */
import { CLOSE_GAPS_NAME, type ScheduleRecord } from '../../domain/calendar/schedule.ts';
import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore, StateVersion } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { parseEntry, refs } from '../records/stored.ts';
import { repeat } from '../serving/repeat.ts';

/** A worker that was not seen for this long may never come back; a restart or an upgrade takes minutes. */
const ABSENT_MS = 3_600_000;
/** How often the record is read. */
const READ_MS = 60_000;

export interface FoldingPermission {
  /** The budget is not 0, and a re-index worker was seen within the last hour. From memory. */
  readonly isPermitted: boolean;
  /** Reads now and then each minute until the signal is aborted. Resolves after the first reading, which may fail: then nothing is permitted yet. */
  watch(signal: AbortSignal): Promise<void>;
}

interface PermissionDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** LIST requests that closing the gaps of one bucket may take within a day. 0: gaps stay open. */
  readonly requestsPerDay: number;
}

/** Creates the permission; nothing is permitted before watch(). */
export function createFoldingPermission(dependencies: PermissionDependencies): FoldingPermission {
  const { state, clock, telemetry, requestsPerDay } = dependencies;
  const areGapsClosed = requestsPerDay > 0;
  /** When a worker was there, by this process's monotonic clock. */
  let seenAtMs = Number.NEGATIVE_INFINITY;
  let lastVersion: StateVersion | undefined;

  async function read(): Promise<void> {
    const { id, schema } = refs.schedule(CLOSE_GAPS_NAME);
    const entry = await state.get(id);
    if (entry === undefined || entry.version === lastVersion) return;
    // a change since the last reading needs no comparison of clocks
    const ageMs = lastVersion === undefined ? Math.abs(clock.nowMs() - lastSeenMs(parseEntry(entry, schema))) : 0;
    lastVersion = entry.version;
    seenAtMs = clock.monotonicMs() - ageMs;
  }

  return {
    get isPermitted() {
      return areGapsClosed && clock.monotonicMs() - seenAtMs < ABSENT_MS;
    },
    async watch(signal) {
      if (!areGapsClosed) return;
      repeat({ clock, telemetry }, { name: 'read whether a re-index worker is there', intervalMs: READ_MS, signal }, read);
      await read().catch((error: unknown) => {
        const { code, reason } = faultOf(error);
        telemetry.requestFailed('read whether a re-index worker is there', code, reason);
      });
    },
  };
}

/** The latest time in the record, by the clock of the worker that stored it. */
function lastSeenMs({ lastStartedAtMs = 0, lastEndedAtMs = 0 }: ScheduleRecord): number {
  return Math.max(lastStartedAtMs, lastEndedAtMs);
}
