/**
 * How many workers the backlog wants: one half of the signal to scale by.
 *
 * Every worker sees the whole backlog and measures its own rate, so that all of them answer (about) the same number for the
 * fleet: take the maximum over the workers. A sum counts the backlog once per worker; an average is pulled down by workers
 * that have just started and know no rate yet, which is when workers are being added.
 *
 * The backlog says nothing of what keeps arriving: workers that keep up have none, and who followed this number alone would
 * stop them, see the backlog come back, and start them again. The other half, which only an observer of all workers can
 * add up, is how many are busy; the greater of the two is right (config/scaling/keda-prometheus.yaml;
 * test/pipeline/worker-demand-simulation.test.ts shows both).
 */
import type { Clock } from '../ports/clock.ts';

/** Weight of the newest measurement: three or four readings (a minute) forget an old rate. */
const NEWEST_WEIGHT = 0.4;

export interface WorkerDemand {
  /**
   * Told the backlog (visible messages) and how many messages this process has settled in all; answers the workers wanted:
   * 0 only when there is no backlog and nothing was settled since the last call.
   */
  update(backlog: number, settledTotal: number): number;
}

interface Reading {
  readonly atMs: number;
  readonly backlog: number;
  readonly settledTotal: number;
}

/** Creates the measure. Until the rate of a busy worker is known, a backlog wants one. */
export function createWorkerDemand({ clock, targetLagS }: { readonly clock: Clock; readonly targetLagS: number }): WorkerDemand {
  let last: Reading | undefined;
  let ratePerS: number | undefined;
  return {
    update(backlog, settledTotal) {
      const reading = { atMs: clock.monotonicMs(), backlog, settledTotal };
      const measured = last === undefined ? undefined : busyRate(last, reading);
      if (measured !== undefined) ratePerS = ratePerS === undefined ? measured : ratePerS + NEWEST_WEIGHT * (measured - ratePerS);
      const isUsed = settledTotal > (last?.settledTotal ?? 0);
      last = reading;
      if (backlog === 0) return isUsed ? 1 : 0;
      return ratePerS === undefined ? 1 : Math.max(1, Math.ceil(backlog / (ratePerS * targetLagS)));
    },
  };
}

/**
 * What a worker does that has enough to do. Undefined where the interval does not show it: a trickle (less waited than was
 * settled) is slow because little comes, and in an outage, when nothing is settled, more workers would not help.
 */
function busyRate(earlier: Reading, later: Reading): number | undefined {
  const settled = later.settledTotal - earlier.settledTotal;
  const intervalMs = later.atMs - earlier.atMs;
  const isBusy = Math.min(earlier.backlog, later.backlog) >= settled;
  return settled > 0 && intervalMs > 0 && isBusy ? (settled * 1_000) / intervalMs : undefined;
}
