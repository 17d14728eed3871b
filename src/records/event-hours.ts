/**
 * What one process saw in one hour: how many events arrived, and how long they took until a search found them. Overview shows the last
 * day of it. Nothing is decided by it.
 */
import { z } from 'zod';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** How finely an hour is kept: a chart of a day has 288 steps. */
export const STEP_MS = 300_000;

/** The place in the hour from 0, the events, and how many of them are of each class of lags, from the shortest. */
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

/** A step of all processes. */
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
    /** The process runs at this moment, so that the step is known although no event arrived. */
    seen: (ms: number): void => void at(ms),
    /** An event arrived. `lagMs`: how long it took; absent: it is not known. */
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

/** The steps of all processes from a moment on, in order. Steps in which none ran are missing. */
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
/** Two for each doubling, so that a percentile is at most √2 of the true one, up or down. */
const CLASSES_OF_DOUBLING = 2;
/** Of the longest wait in a queue, which is 14 days. */
const CLASS_MAX = 50;

/** The class of a lag: the first one whose longest lag is not shorter. */
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
