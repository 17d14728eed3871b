import { setTimeout as delay } from 'node:timers/promises';

/** The clock: Tally's only source of time. */
export interface Clock {
  /** The wall clock, in ms since the epoch. It is never used to decide an order. */
  nowMs(): number;
  /**
   * For durations and expiry, in ms from an arbitrary start. It never goes back, and it continues while the machine is suspended, so
   * an answer that was held during a suspension does not look fresh. It may run ahead, and then held answers expire early.
   */
  monotonicMs(): number;
  /**
   * For watching other processes, in ms from an arbitrary start. It never goes back and never runs ahead: it stops while the
   * machine is suspended, and setting the wall clock forward does not move it. So a process that is alive never looks dead.
   */
  steadyMs(): number;
  /** Resolves after `delayMs`; rejects with the signal's reason if it is aborted earlier. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Far more than a correction of the wall clock between two readings, and far less than any duration that a decision depends on. */
const SLEPT_MIN_MS = 1_000;

/**
 * Creates the clock of durations, in ms; it never goes back. `performance.now()` stops while the machine is suspended, and `Date.now()`
 * does not. So when the wall clock gains a second or more on `performance.now()`, the gain counts as time that has passed, and an answer
 * that was held during a suspension expires. Setting the wall clock forward looks the same: held answers expire early, which is always
 * safe. A wall clock that is set back or runs slow changes nothing.
 */
export function createElapsed({ wallMs, steadyMs }: { readonly wallMs: () => number; readonly steadyMs: () => number }): () => number {
  /** How far the wall clock is ahead of the steady one: the smallest lead since a gain was last counted. */
  let leadMs = wallMs() - steadyMs();
  let sleptMs = 0;
  return () => {
    const nowMs = steadyMs();
    const gainedMs = wallMs() - nowMs - leadMs;
    if (gainedMs >= SLEPT_MIN_MS) sleptMs += gainedMs;
    if (gainedMs >= SLEPT_MIN_MS || gainedMs < 0) leadMs += gainedMs;
    return nowMs + sleptMs;
  };
}

/** Less than this is no error: SQS tells its time in whole seconds, after the answer's way. */
const AGREES_MS = 60_000;

/** A clock that keeps another's time. */
export interface SetClock {
  readonly clock: Clock;
  /** Sets it: the other is ahead of the own one by so much. */
  readonly set: (aheadMs: number) => void;
}

/**
 * Creates the clock that keeps the time of the one it was last set by, where that differs from `own` by more than a minute. So workers
 * on machines whose clocks are wrong by days agree on what is due, what is old, and when a gap was seen. If the own wall clock has been
 * set since, as by NTP, or the machine was suspended, it counts alone until the next setting.
 */
export function createSetClock(own: Clock): SetClock {
  const leadMs = (): number => own.nowMs() - own.steadyMs();
  let known = { aheadMs: 0, leadMs: 0 };
  return {
    clock: { ...own, nowMs: () => own.nowMs() + (Math.abs(leadMs() - known.leadMs) <= AGREES_MS ? known.aheadMs : 0) },
    set(aheadMs) {
      known = { aheadMs: Math.abs(aheadMs) > AGREES_MS ? aheadMs : 0, leadMs: leadMs() };
    },
  };
}

/** The clock of this machine. An aborted sleep rejects with the signal's reason. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: createElapsed({ wallMs: () => Date.now(), steadyMs: () => performance.now() }),
  steadyMs: () => performance.now(),
  async sleep(delayMs, signal) {
    try {
      await delay(delayMs, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};
