/** The delays of Node's timers, on a virtual clock. */
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
