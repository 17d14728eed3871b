/**
 * Limits against flooding. They count in this process only: N processes permit N times as much. Credentials that fail are not
 * limited: no number of guesses finds 256 random bits, and a caller whose credential has ended must learn just that, however
 * often it is sent and whatever the neighbours send.
 */
import { LRUCache } from 'lru-cache';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { WithPorts } from '../ports/ports.ts';

const SECOND_MS = 1_000;
/** Far more than a script needs; a loop that runs away takes no more of the store than this. */
const REQUESTS_PER_S = 100;
/** A few megabytes at most. Above it the window that was counted in longest ago is forgotten. */
const TABLE_MAX = 10_000;

interface CounterOptions {
  readonly windowMs: number;
  /** How many are permitted in one window. */
  readonly countMax: number;
  /** Default: 10,000. */
  readonly tableMax?: number;
}

/** Counts one more of this name. Returns undefined if it is permitted, otherwise in how many ms the window ends. */
export type Counter = (name: string) => number | undefined;

/** Creates a counter of events in windows. The window of a name begins with its first event. */
export function createCounter(clock: Pick<Clock, 'monotonicMs'>, { windowMs, countMax, tableMax = TABLE_MAX }: CounterOptions): Counter {
  const windows = new LRUCache<string, { readonly endsAtMs: number; count: number }>({ max: tableMax });

  return function count(name) {
    const nowMs = clock.monotonicMs();
    const current = windows.get(name);
    if (current !== undefined && nowMs < current.endsAtMs) {
      current.count += 1;
      return current.count <= countMax ? undefined : current.endsAtMs - nowMs;
    }
    windows.set(name, { endsAtMs: nowMs + windowMs, count: 1 });
    return undefined;
  };
}

export interface AbuseLimits {
  /** Counts a request with this key. Throws `request.rate-limited` above 100 in a second. */
  readonly requested: (keyId: string) => void;
}

/** Creates the limits of a process. All doors share one of them. */
export function createAbuseLimits({ clock }: WithPorts<'clock'>): AbuseLimits {
  const countRequest = createCounter(clock, { windowMs: SECOND_MS, countMax: REQUESTS_PER_S });
  return {
    requested(keyId) {
      const waitMs = countRequest(keyId);
      if (waitMs === undefined) return;
      throw new RequestError(
        'request.rate-limited',
        `more than ${REQUESTS_PER_S} requests in a second came with this API key: send fewer, or use several keys`,
        { retry_after_s: secondsOf(waitMs) },
      );
    },
  };
}

function secondsOf(waitMs: number): number {
  return Math.max(1, Math.ceil(waitMs / SECOND_MS));
}
