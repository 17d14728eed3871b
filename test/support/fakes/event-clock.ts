/**
 * A virtual clock for many sleepers: its cost for each sleep does not depend on how many sleep. Moments are rounded up to a
 * grid, so that what thousands of messages wait for is woken together.
 */
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import { createHeap } from '../heap.ts';

/** 2026-01-02T03:04:05Z: a whole second, far from the epoch. */
const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
/** A HEAD request takes one turn of the event loop until it is sent; the second sees what the first began. */
const TURNS = 2;

export interface EventClock extends Clock {
  /** Moves time on, waking all sleepers of a moment together and letting what they do run. */
  advance(byMs: number): Promise<void>;
}

interface Sleeper {
  readonly wake: () => void;
}

/** Creates a clock that moves only by `advance`. Sleeps end on a grid of `gridMs`, which must be finer than the times that a test asserts. */
export function createEventClock(gridMs: number): EventClock {
  const moments = createHeap<number>((a, b) => a < b);
  const sleepers = new Map<number, Set<Sleeper>>();
  let elapsedMs = 0;

  function sleepersAt(atMs: number): Set<Sleeper> {
    const known = sleepers.get(atMs);
    if (known !== undefined) return known;
    const fresh = new Set<Sleeper>();
    sleepers.set(atMs, fresh);
    moments.push(atMs);
    return fresh;
  }

  function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const ofMoment = sleepersAt(Math.ceil((elapsedMs + Math.max(1, delayMs)) / gridMs) * gridMs);
      const abort = (): void => {
        ofMoment.delete(sleeper);
        reject(signal?.reason as Error);
      };
      const wake = (): void => {
        signal?.removeEventListener('abort', abort);
        resolve();
      };
      const sleeper = { wake };
      ofMoment.add(sleeper);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  async function settled(): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) await setImmediate();
  }

  async function advance(byMs: number): Promise<void> {
    const untilMs = elapsedMs + byMs;
    await settled();
    for (;;) {
      const nextMs = moments.first();
      if (nextMs === undefined || nextMs > untilMs) break;
      moments.pop();
      const due = sleepers.get(nextMs) ?? new Set();
      sleepers.delete(nextMs);
      // what was aborted meanwhile needs no turn of the event loop
      if (due.size === 0) continue;
      elapsedMs = nextMs;
      for (const { wake } of due) wake();
      await settled();
    }
    elapsedMs = untilMs;
  }

  return { nowMs: () => START_MS + elapsedMs, monotonicMs: () => elapsedMs, steadyMs: () => elapsedMs, sleep, advance };
}
