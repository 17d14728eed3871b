/**
 * The load of this process's live path: its parts report what waits in them and how their writes end, gauges show it, and re-index
 * yields to the path while it is busy. Work that is done at once does not count; otherwise a bucket that changes all the time would
 * never be re-indexed.
 */
import type { WithPorts } from '../store/store.ts';

/** Half of the second by which a re-index may delay an event. */
const SLOW_MS = 500;
/** How long the live path counts as busy after a slow answer. */
const RECENT_MS = 2_000;

export interface LiveLoad {
  readonly isBusy: () => boolean;
  /** How many writes wait for a bulk request, and how many requests are in flight. */
  bulkQueue(now: { readonly actionsQueued: number; readonly requestsInFlight: number }): void;
  /** A bulk request was answered. `isTaken`: the store took it as a whole. */
  bulkSent(answer: { readonly durationMs: number; readonly isTaken: boolean }): void;
  /** How many requests about single objects wait to be sent, and how many are in flight. */
  heads(now: { readonly queued: number; readonly inFlight: number }): void;
  /** How many messages are held. */
  held(messages: number): void;
}

interface LoadDependencies extends WithPorts<'clock' | 'telemetry'> {
  /** The limits of the live path. */
  readonly heldMax: number;
  readonly bulkConcurrency: number;
}

/** Creates the load of a live path that has not started. */
export function createLiveLoad({ clock, telemetry, heldMax, bulkConcurrency }: LoadDependencies): LiveLoad {
  /** Writes wait, and no request is free. */
  let isFull = false;
  let slowAtMs = Number.NEGATIVE_INFINITY;
  let headsQueued = 0;
  let heldNow = 0;
  return {
    isBusy: () => isFull || headsQueued > 0 || heldNow > heldMax / 2 || clock.monotonicMs() - slowAtMs < RECENT_MS,
    bulkQueue({ actionsQueued, requestsInFlight }) {
      isFull = actionsQueued > 0 && requestsInFlight >= bulkConcurrency;
      telemetry.set('tally_bulk_queued_actions', actionsQueued);
      telemetry.set('tally_bulk_in_flight_requests', requestsInFlight);
    },
    bulkSent({ durationMs, isTaken }) {
      if (durationMs > SLOW_MS || !isTaken) slowAtMs = clock.monotonicMs();
    },
    heads({ queued, inFlight }) {
      headsQueued = queued;
      telemetry.set('tally_head_queued_requests', queued);
      telemetry.set('tally_head_in_flight_requests', inFlight);
    },
    held(messages) {
      heldNow = messages;
      telemetry.set('tally_held_messages', messages);
    },
  };
}
