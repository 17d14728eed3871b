/** How many workers the backlog wants: the signal to scale by. */
import type { Clock } from './ports.ts';

/** Weight of the newest measurement: three or four readings (a minute) forget an old rate. */
const NEWEST_WEIGHT = 0.4;

export interface WorkerDemand {
  /** Told the backlog (visible messages) and how many messages this process has settled in all; answers the workers wanted. */
  update(backlog: number, settledTotal: number): number;
}

/** Creates the measure. The rate counts only while there was a backlog: an idle worker's rate says nothing of what it can do. */
export function createWorkerDemand({ clock, targetLagS }: { readonly clock: Clock; readonly targetLagS: number }): WorkerDemand {
  let last: { readonly atMs: number; readonly settled: number; readonly backlog: number } | undefined;
  let ratePerS = 0;
  return {
    update(backlog, settledTotal) {
      const atMs = clock.monotonicMs();
      if (last !== undefined && last.backlog > 0 && atMs > last.atMs) {
        const measured = ((settledTotal - last.settled) * 1_000) / (atMs - last.atMs);
        ratePerS = ratePerS === 0 ? measured : ratePerS + NEWEST_WEIGHT * (measured - ratePerS);
      }
      last = { atMs, settled: settledTotal, backlog };
      if (backlog === 0) return 0;
      return ratePerS <= 0 ? 1 : Math.max(1, Math.ceil(backlog / (ratePerS * targetLagS)));
    },
  };
}
