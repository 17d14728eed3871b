/** What telemetry remembers from one fact to the next, all of it bounded. */
import type { Clock } from '../../pipeline/ports/clock.ts';

/** Names of one kind that are remembered: far more than go wrong at once, and anybody can make up event names. */
const NAMES_MAX = 1_000;
const SECOND_MS = 1_000;

interface OnceOptions {
  readonly clock: Clock;
  /** How long a name that was said is not said again. */
  readonly intervalMs: number;
  /** Told, at most once an interval, when so many names were said that others are not. */
  readonly full: () => void;
}

/** Whether a name is to be said now: it was not within the interval, and there is room to remember it. */
export function createOnce({ clock, intervalMs, full }: OnceOptions): (name: string) => boolean {
  /** In the order they were said. */
  const saidAtMs = new Map<string, number>();
  let fullAtMs = -Infinity;

  function forget(nowMs: number): void {
    for (const [name, atMs] of saidAtMs) {
      if (nowMs - atMs < intervalMs) return;
      saidAtMs.delete(name);
    }
  }

  return function isNews(name) {
    const nowMs = clock.monotonicMs();
    forget(nowMs);
    if (saidAtMs.has(name)) return false;
    if (saidAtMs.size < NAMES_MAX) {
      saidAtMs.set(name, nowMs);
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
  told(value: number): void;
  /** The greatest value told within the window, to the second; 0 when none was. */
  read(): number;
}

/** The maximum of a sliding window, kept as one maximum a second. */
export function createRecentMaximum(clock: Clock, windowMs: number): RecentMaximum {
  const maxima = new Map<number, number>();

  function currentSecond(): number {
    const second = Math.floor(clock.monotonicMs() / SECOND_MS);
    for (const each of maxima.keys()) if (each <= second - windowMs / SECOND_MS) maxima.delete(each);
    return second;
  }

  return {
    told(value) {
      const second = currentSecond();
      maxima.set(second, Math.max(value, maxima.get(second) ?? 0));
    },
    read() {
      currentSecond();
      return Math.max(0, ...maxima.values());
    },
  };
}
