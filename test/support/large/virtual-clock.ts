/**
 * Time that moves only when nothing is left to do at its present moment. Sleepers are kept in a heap, so that a simulation of
 * hundreds of thousands of waits costs no more for each than one of a hundred.
 */
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import { createHeap } from '../heap.ts';

/** 2026-01-02T03:04:05Z: a whole second, long after the objects of every key space were written. */
const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

export interface VirtualClock extends Clock {
  /** Moves time on until the work has ended. Throws when nothing sleeps any more and the work has not ended. */
  runUntil<Result>(work: Promise<Result>): Promise<Result>;
  /** Calls `due` at this moment of the monotonic clock. */
  at(dueMs: number, due: () => void): void;
}

interface Sleeper {
  readonly dueMs: number;
  /** Those that are due at the same moment wake in the order in which they began. */
  readonly order: number;
  /** Undefined once the sleep was aborted. */
  wake: (() => void) | undefined;
}

/** Creates the clock. Its waits are those of `sleep`; {@link withVirtualDelays} adds those of Node's own timers. */
export function createVirtualClock(): VirtualClock {
  const sleeping = createHeap<Sleeper>((a, b) => a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order));
  let elapsedMs = 0;
  let order = 0;

  function add(dueMs: number, wake: () => void): Sleeper {
    order += 1;
    const sleeper: Sleeper = { dueMs: Math.max(elapsedMs, dueMs), order, wake };
    sleeping.push(sleeper);
    return sleeper;
  }

  function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason as Error);
      const abort = (): void => {
        sleeper.wake = undefined;
        reject(signal?.reason as Error);
      };
      const sleeper = add(elapsedMs + delayMs, () => {
        signal?.removeEventListener('abort', abort);
        resolve();
      });
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  return {
    nowMs: () => START_MS + elapsedMs,
    monotonicMs: () => elapsedMs,
    steadyMs: () => elapsedMs,
    sleep,
    at: (dueMs, due) => void add(dueMs, due),
    async runUntil(work) {
      let isOver = false;
      const settle = (): void => {
        isOver = true;
      };
      work.then(settle, settle);
      for (;;) {
        await everythingElse();
        if (isOver) return work;
        const next = sleeping.pop();
        if (next === undefined) throw new Error('nothing sleeps any more, and the work has not ended');
        elapsedMs = next.dueMs;
        next.wake?.();
      }
    },
  };
}

/** Resolves when all promises that can go on have gone on. */
function everythingElse(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

const realSetTimeout = timers.setTimeout;
let running = 0;

/**
 * Lets the delays of `node:timers/promises` pass on the clock while `run` runs: a conflict of the state store is waited out by
 * one. Runs on one clock may overlap: delays are real again when the last of them has ended.
 */
export async function withVirtualDelays<Result>(clock: Pick<Clock, 'sleep'>, run: () => Promise<Result>): Promise<Result> {
  running += 1;
  timers.setTimeout = async <Value>(delayMs = 0, value?: Value) => {
    // whole milliseconds, as Node's: the moments of records are
    await clock.sleep(Math.ceil(delayMs));
    return value as Value;
  };
  syncBuiltinESMExports();
  try {
    return await run();
  } finally {
    running -= 1;
    if (running === 0) timers.setTimeout = realSetTimeout;
    syncBuiltinESMExports();
  }
}

/** Cores that serve one request each at a time, in the order in which the requests come. */
export interface Cores {
  /** Resolves when a core has spent this long on the request. */
  use(costMs: number): Promise<void>;
  /** How long the cores were used, summed up. */
  usedMs(): number;
}

/** Creates cores of a machine on the clock. */
export function createCores(clock: VirtualClock, count: number): Cores {
  const freeAtMs = Array.from({ length: count }, () => 0);
  let usedMs = 0;
  return {
    use(costMs) {
      let first = 0;
      for (let at = 1; at < count; at += 1) if ((freeAtMs[at] ?? 0) < (freeAtMs[first] ?? 0)) first = at;
      const endMs = Math.max(clock.monotonicMs(), freeAtMs[first] ?? 0) + costMs;
      freeAtMs[first] = endMs;
      usedMs += costMs;
      return clock.sleep(endMs - clock.monotonicMs());
    },
    usedMs: () => usedMs,
  };
}
