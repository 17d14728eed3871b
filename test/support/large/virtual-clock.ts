/** What passes on a virtual clock beside its sleeps: the delays of Node's timers, and the time of cores. */
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import type { Clock } from '../../../src/process/clock.ts';

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
export function createCores(clock: Clock, count: number): Cores {
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
