/**
 * What one process saw in one hour: how many events arrived, and how long it took until a search found them. The panel's Overview shows
 * the last day. No decision depends on it.
 */
import { z } from 'zod';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** The resolution: a day has 288 steps. */
export const STEP_MS = 300_000;

/** The step's place in the hour, from 0; its events; and how many of them are in each class of lags, the shortest first. */
const step = z.tuple([z.number(), z.number(), z.array(z.number())]);

export const eventHourSchema = z.object({
  hourMs: z.number(),
  /** The name of the process, which no other one has. */
  worker: z.string(),
  steps: z.array(step),
});
export type EventHour = z.infer<typeof eventHourSchema>;

/** The beginning of the hour. */
export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS) * HOUR_MS;
}

/** One step, summed over all processes. */
export interface EventStep {
  readonly atMs: number;
  events: number;
  readonly lags: number[];
}

/** Creates what a process counts in one hour. */
export function createHourCounts(hourMs: number) {
  const steps = new Map<number, EventStep>();

  function at(ms: number): EventStep {
    const place = Math.floor((ms - hourMs) / STEP_MS);
    let counted = steps.get(place);
    if (counted === undefined) steps.set(place, (counted = { atMs: hourMs + place * STEP_MS, events: 0, lags: [] }));
    return counted;
  }

  return {
    /** Notes that the process was running, so that the step is known even if no event arrived. */
    seen: (ms: number): void => void at(ms),
    /** Counts an event. `lagMs`: how long it took, if that is known. */
    event(ms: number, lagMs: number | undefined): void {
      const counted = at(ms);
      counted.events += 1;
      if (lagMs !== undefined) addLags(counted.lags, [[lagClassOf(lagMs), 1]]);
    },
    record: (worker: string): EventHour => ({
      hourMs,
      worker,
      steps: [...steps].map(([place, { events, lags }]) => [place, events, [...lags]]),
    }),
  };
}

/** All processes' steps from a moment on, in order. Steps in which no process ran are missing. */
export function stepsOf(records: readonly EventHour[], fromMs: number): readonly EventStep[] {
  const steps = new Map<number, EventStep>();
  for (const { hourMs, steps: counted } of records) {
    for (const [place, events, lags] of counted) {
      const atMs = hourMs + place * STEP_MS;
      if (atMs < fromMs) continue;
      const sum = steps.get(atMs) ?? { atMs, events: 0, lags: [] };
      steps.set(atMs, sum);
      sum.events += events;
      addLags(sum.lags, lags.entries());
    }
  }
  return [...steps.values()].toSorted((a, b) => a.atMs - b.atMs);
}

const SHORTEST_MS = 50;
/** Two for each doubling, so that a percentile is within a factor of √2 of the true one. */
const CLASSES_OF_DOUBLING = 2;
/** The class of the longest wait in a queue, which is 14 days. */
const CLASS_MAX = 50;

/** A lag's class: the first whose longest lag is at least as long. */
export function lagClassOf(lagMs: number): number {
  return lagMs <= SHORTEST_MS ? 0 : Math.min(CLASS_MAX, Math.ceil(CLASSES_OF_DOUBLING * Math.log2(lagMs / SHORTEST_MS)));
}

function longestOf(lagClass: number): number {
  return lagClass < 0 ? 0 : SHORTEST_MS * 2 ** (lagClass / CLASSES_OF_DOUBLING);
}

function addLags(sum: number[], lags: Iterable<readonly [lagClass: number, count: number]>): void {
  for (const [lagClass, count] of lags) {
    while (sum.length <= lagClass) sum.push(0);
    sum[lagClass] = (sum[lagClass] ?? 0) + count;
  }
}

/** The lag that this share of the events did not exceed, in milliseconds; undefined if there are none. */
export function percentileMs(lags: readonly number[], share: number): number | undefined {
  const wanted = share * lags.reduce((sum, count) => sum + count, 0);
  let before = 0;
  for (const [lagClass, count] of lags.entries()) {
    if (count > 0 && before + count >= wanted) {
      const fromMs = longestOf(lagClass === 0 ? -1 : lagClass - 1);
      return Math.round(fromMs + ((wanted - before) / count) * (longestOf(lagClass) - fromMs));
    }
    before += count;
  }
  return undefined;
}
