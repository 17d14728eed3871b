/** What telemetry remembers from one fact to the next, all of it bounded. */
import type { Clock } from '../../pipeline/ports/clock.ts';

/** The number of names of one kind that are remembered: far more than fail at the same time. A bound is needed because anyone who can send messages can invent event names. */
const NAMES_MAX = 1_000;
const SECOND_MS = 1_000;

interface OnceOptions {
  readonly clock: Clock;
  /** How long a logged name is not logged again. */
  readonly intervalMs: number;
  /** Called at most once per interval, when the limit of names is reached and further ones are not logged. */
  readonly full: () => void;
}

/** Creates a function that returns whether a name should be logged now: it was not logged within the interval, and there is room to remember it. */
export function createOnce({ clock, intervalMs, full }: OnceOptions): (name: string) => boolean {
  /** In the order in which the names were logged. */
  const loggedAtMs = new Map<string, number>();
  let fullAtMs = -Infinity;

  function forget(nowMs: number): void {
    for (const [name, atMs] of loggedAtMs) {
      if (nowMs - atMs < intervalMs) return;
      loggedAtMs.delete(name);
    }
  }

  return function isNews(name) {
    const nowMs = clock.monotonicMs();
    forget(nowMs);
    if (loggedAtMs.has(name)) return false;
    if (loggedAtMs.size < NAMES_MAX) {
      loggedAtMs.set(name, nowMs);
      return true;
    }
    if (nowMs - fullAtMs >= intervalMs) {
      fullAtMs = nowMs;
      full();
    }
    return false;
  };
}

export interface RecentMaximum {
  record(value: number): void;
  /** The greatest value recorded within the window, to the second; 0 if none was. */
  read(): number;
}

/** Creates the maximum of a sliding window, kept as one maximum per second. */
export function createRecentMaximum(clock: Clock, windowMs: number): RecentMaximum {
  const maxima = new Map<number, number>();

  function currentSecond(): number {
    const second = Math.floor(clock.monotonicMs() / SECOND_MS);
    for (const each of maxima.keys()) if (each <= second - windowMs / SECOND_MS) maxima.delete(each);
    return second;
  }

  return {
    record(value) {
      const second = currentSecond();
      maxima.set(second, Math.max(value, maxima.get(second) ?? 0));
    },
    read() {
      currentSecond();
      return Math.max(0, ...maxima.values());
    },
  };
}
