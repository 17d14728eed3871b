/**
 * Decides from the live path's own telemetry whether the live path of this process is under load; re-index yields to it
 * then. Work that is done at once does not count, or a bucket that changes all the time would never be re-indexed.
 */
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** Half of the second by which re-index may make an event later. */
const SLOW_MS = 500;
/** How long a slow answer counts. */
const RECENT_MS = 2_000;

export interface LiveLoad {
  readonly isBusy: () => boolean;
  /** Wraps the telemetry of the live path, to read its facts. Every fact is passed on. */
  watching(telemetry: Telemetry): Telemetry;
}

interface LoadDependencies {
  readonly clock: Clock;
  /** The limits of the live path. */
  readonly heldMax: number;
  readonly bulkConcurrency: number;
}

/** Creates the measure of a live path that has not begun. */
export function createLiveLoad({ clock, heldMax, bulkConcurrency }: LoadDependencies): LiveLoad {
  /** Writes wait, and no request is free. */
  let isFull = false;
  let slowAtMs = Number.NEGATIVE_INFINITY;
  let headsQueued = 0;
  let held = 0;
  return {
    isBusy: () => isFull || headsQueued > 0 || held > heldMax / 2 || clock.monotonicMs() - slowAtMs < RECENT_MS,
    watching: (telemetry) => ({
      ...telemetry,
      bulkQueue(fact) {
        isFull = fact.actionsQueued > 0 && fact.requestsInFlight >= bulkConcurrency;
        telemetry.bulkQueue(fact);
      },
      bulkSent(fact) {
        if (fact.durationMs > SLOW_MS || fact.result !== 'ok') slowAtMs = clock.monotonicMs();
        telemetry.bulkSent(fact);
      },
      heads(fact) {
        headsQueued = fact.queued;
        telemetry.heads(fact);
      },
      held(messages) {
        held = messages;
        telemetry.held(messages);
      },
    }),
  };
}
