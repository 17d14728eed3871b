import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from './clock.ts';

/** Far above what a wall clock is corrected by between two readings, and far below every duration that decides. */
const SLEPT_MIN_MS = 1_000;

/**
 * Creates the clock of durations, in ms. `performance.now()` stands still while the machine is suspended, and `Date.now()` does not, so
 * what the wall clock gains on it counts as time that has passed: an answer that was held over a suspension has expired. A wall
 * clock that is set forward looks the same, and makes what is held expire early, which is always safe. One that is set back or
 * is slow changes nothing. It never goes back.
 */
export function createElapsed({ wallMs, steadyMs }: { readonly wallMs: () => number; readonly steadyMs: () => number }): () => number {
  /** How far the wall clock is ahead of the steady one: the least since something was last counted. */
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
