import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from './clock.ts';

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
