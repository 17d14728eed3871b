import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../pipeline/ports/clock.ts';

/** The clock of this machine. An aborted sleep rejects with the signal's reason. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  async sleep(delayMs, signal) {
    try {
      await delay(delayMs, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};
