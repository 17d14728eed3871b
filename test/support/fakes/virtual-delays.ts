/** The delays of Node's timers, on a virtual clock. */
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import type { TimerOptions } from 'node:timers';
import type { Clock } from '../../../src/process/clock.ts';

const realSetTimeout = timers.setTimeout;
/** The clock on which delays pass now. */
let virtual: Pick<Clock, 'sleep'> | undefined;
let running = 0;

// once: to tell all modules of a change takes longer than most runs
timers.setTimeout = async <Value>(delayMs = 0, value?: Value, ...rest: [TimerOptions?]) => {
  if (virtual === undefined) return realSetTimeout(delayMs, value, ...rest);
  // whole milliseconds, as Node's: the moments of records are
  await virtual.sleep(Math.ceil(delayMs));
  return value as Value;
};
syncBuiltinESMExports();

/**
 * Lets the delays of `node:timers/promises` pass on the clock while `run` runs: a conflict of the state store is waited out by
 * one. Runs on one clock may overlap: delays are real again when the last of them has ended.
 */
export async function withVirtualDelays<Result>(clock: Pick<Clock, 'sleep'>, run: () => Promise<Result>): Promise<Result> {
  running += 1;
  virtual = clock;
  try {
    return await run();
  } finally {
    running -= 1;
    if (running === 0) virtual = undefined;
  }
}
