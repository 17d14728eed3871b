/**
 * Whether the live path of this process has work in hand, told by its own facts: re-index gives way to it, and only to
 * what is really there.
 */
import type { Clock, Telemetry } from './ports.ts';

/** Between two bulk requests of a steady stream is a pause; the next one is as good as there. */
const RECENT_MS = 200;

export interface LiveLoad {
  readonly isBusy: () => boolean;
  /** The telemetry for the live path to tell its facts to; everything is passed on. */
  watching(telemetry: Telemetry): Telemetry;
}

/** Creates the load of a live path that has not begun. */
export function createLiveLoad({ clock, heldMax }: { readonly clock: Clock; readonly heldMax: number }): LiveLoad {
  let isBulking = false;
  let bulkedAtMs = Number.NEGATIVE_INFINITY;
  let headsQueued = 0;
  let held = 0;
  return {
    isBusy: () => isBulking || headsQueued > 0 || held > heldMax / 2 || clock.monotonicMs() - bulkedAtMs < RECENT_MS,
    watching: (telemetry) => ({
      ...telemetry,
      bulkQueue(fact) {
        isBulking = fact.actionsQueued + fact.requestsInFlight > 0;
        bulkedAtMs = clock.monotonicMs();
        telemetry.bulkQueue(fact);
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
