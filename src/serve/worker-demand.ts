/**
 * How many workers the backlog needs: one half of the signal to scale by.
 *
 * Every worker sees the whole backlog and measures its own rate, so all of them report about the same number for the whole
 * fleet: take the maximum over the workers. A sum would count the backlog once per worker. An average would be too low while
 * workers are added, since a worker that has just started does not know its rate yet.
 *
 * The backlog does not show how much keeps arriving: workers that keep up have no backlog, so an autoscaler that follows this
 * number alone would stop them, see the backlog return, and start them again. The other half is how many workers are busy,
 * which only an observer of all workers can add up; the greater of the two is right (config/scaling/keda-prometheus.yaml).
 */
import type { Clock } from '../process/clock.ts';

/** The weight of the newest measurement: after three or four readings (a minute) an old rate hardly counts. */
const NEWEST_WEIGHT = 0.4;

/**
 * Takes the backlog (visible messages) and how many messages this process has settled since its start; returns how many workers
 * are wanted. It is 0 only if there is no backlog and nothing was settled since the last call.
 */
export type WorkersWanted = (backlog: number, settledTotal: number) => number;

interface Reading {
  readonly atMs: number;
  readonly backlog: number;
  readonly settledTotal: number;
}

/** Creates the measure. A backlog needs one worker as long as the rate of a busy worker is unknown. */
export function createWorkerDemand({ clock, targetLagS }: { readonly clock: Clock; readonly targetLagS: number }): WorkersWanted {
  let last: Reading | undefined;
  let ratePerS: number | undefined;
  return function workersWanted(backlog, settledTotal) {
    const reading = { atMs: clock.monotonicMs(), backlog, settledTotal };
    const measured = last === undefined ? undefined : busyRate(last, reading);
    if (measured !== undefined) ratePerS = ratePerS === undefined ? measured : ratePerS + NEWEST_WEIGHT * (measured - ratePerS);
    const isUsed = settledTotal > (last?.settledTotal ?? 0);
    last = reading;
    if (backlog === 0) return isUsed ? 1 : 0;
    return ratePerS === undefined ? 1 : Math.max(1, Math.ceil(backlog / (ratePerS * targetLagS)));
  };
}

/**
 * Returns the messages per second of a worker that always had work. Undefined if the interval does not show this rate: if
 * fewer messages waited than were settled, the worker was slow because few arrived; if nothing was settled, there is an
 * outage and more workers would not help.
 */
function busyRate(earlier: Reading, later: Reading): number | undefined {
  const settled = later.settledTotal - earlier.settledTotal;
  const intervalMs = later.atMs - earlier.atMs;
  const isBusy = Math.min(earlier.backlog, later.backlog) >= settled;
  return settled > 0 && intervalMs > 0 && isBusy ? (settled * 1_000) / intervalMs : undefined;
}
