/**
 * The record of one hour of one process: what arrived in each minute, how the buckets stood, and the buckets that were busiest. It is
 * written again each minute, and nothing is decided by it.
 */
import { z } from 'zod';
import { compareKeys } from '../documents/key-order.ts';
import { addedLags, lagClassOf, packedLags, type Lags, type PackedLags } from './lags.ts';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
/** How finely a bucket's part is kept: twelve slots bound what fifty buckets take. */
export const SLOT_MS = 300_000;
/** How long the records are kept. */
export const SERIES_KEPT_MS = 14 * 24 * HOUR_MS;
/** The buckets that a record names. */
export const BUSIEST_MAX = 50;

/** The place in the hour, from 0, the events, and their lags as they are packed. */
const slot = z.tuple([z.number(), z.number(), z.array(z.number())]);

export const hourRecordSchema = z.object({
  hourMs: z.number(),
  /** The name of the process, which no other one has. */
  worker: z.string(),
  minutes: z.array(
    z.object({
      slot,
      /** How many buckets had each status. Absent: this process did not look in this minute. */
      statuses: z.record(z.string(), z.number()).optional(),
    }),
  ),
  busiest: z.array(z.object({ bucket: z.string(), slots: z.array(slot) })),
});
export type HourRecord = z.infer<typeof hourRecordSchema>;
type Slot = z.infer<typeof slot>;

/** The beginning of the hour. */
export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS) * HOUR_MS;
}

/** What a process counts within one hour. */
export interface HourCounts {
  /** An event of this bucket arrived. `lagMs`: how long it took until a search found it; absent: it is not known. */
  event(bucket: string, atMs: number, lagMs: number | undefined): void;
  /** How many buckets have each status now. */
  statuses(counts: Readonly<Record<string, number>>, atMs: number): void;
  /** The record so far. */
  record(worker: string): HourRecord;
}

interface Counted {
  events: number;
  readonly lags: Map<number, number>;
}

/** Creates the counts of the hour that begins at this moment. It has at most one entry for each bucket with events. */
export function createHourCounts(hourMs: number): HourCounts {
  const minutes = new Map<number, Counted>();
  const statusesOf = new Map<number, Readonly<Record<string, number>>>();
  const buckets = new Map<string, Map<number, Counted>>();

  function count(counted: Map<number, Counted>, at: number, lagMs: number | undefined): void {
    let place = counted.get(at);
    if (place === undefined) counted.set(at, (place = { events: 0, lags: new Map() }));
    place.events += 1;
    if (lagMs === undefined) return;
    const lagClass = lagClassOf(lagMs);
    place.lags.set(lagClass, (place.lags.get(lagClass) ?? 0) + 1);
  }

  return {
    event(bucket, atMs, lagMs) {
      const passedMs = atMs - hourMs;
      count(minutes, Math.floor(passedMs / MINUTE_MS), lagMs);
      let slots = buckets.get(bucket);
      if (slots === undefined) buckets.set(bucket, (slots = new Map()));
      count(slots, Math.floor(passedMs / SLOT_MS), lagMs);
    },
    statuses(counts, atMs) {
      statusesOf.set(Math.floor((atMs - hourMs) / MINUTE_MS), counts);
    },
    record(worker) {
      const ats = [...new Set([...minutes.keys(), ...statusesOf.keys()])].toSorted((a, b) => a - b);
      return {
        hourMs,
        worker,
        minutes: ats.map((at) => {
          const statuses = statusesOf.get(at);
          return { slot: slotOf(at, minutes.get(at)), ...(statuses !== undefined && { statuses }) };
        }),
        busiest: busiestOf(buckets),
      };
    },
  };
}

function slotOf(at: number, counted: Counted | undefined): Slot {
  return [at, counted?.events ?? 0, packedLags(counted?.lags ?? new Map())];
}

function busiestOf(buckets: ReadonlyMap<string, ReadonlyMap<number, Counted>>): HourRecord['busiest'] {
  const eventsOf = (slots: ReadonlyMap<number, Counted>): number => slots.values().reduce((sum, { events }) => sum + events, 0);
  return [...buckets]
    .toSorted(([a, ofA], [b, ofB]) => eventsOf(ofB) - eventsOf(ofA) || compareKeys(a, b))
    .slice(0, BUSIEST_MAX)
    .map(([bucket, slots]) => ({ bucket, slots: [...slots].map(([at, counted]) => slotOf(at, counted)) }));
}

/**
 * The records of one hour as one: what all processes counted, in one minute and one slot. In steps of whole hours it counts as they do,
 * and it is as small as one minute of them.
 */
export function condensed(hourMs: number, records: readonly HourRecord[]): HourRecord {
  const whole = { fromMs: hourMs, toMs: hourMs + HOUR_MS, stepMs: HOUR_MS };
  const wholeSlot = ({ events, lags }: Step): Slot => [
    0,
    events,
    packedLags(new Map(Object.entries(lags).map(([lagClass, count]) => [Number(lagClass), count]))),
  ];
  const buckets = Map.groupBy(
    records.flatMap(({ busiest }) => busiest),
    ({ bucket }) => bucket,
  );
  return {
    hourMs,
    worker: '',
    minutes: stepsOf(records, whole).map((step) => ({
      slot: wholeSlot(step),
      ...(step.statuses !== undefined && { statuses: step.statuses }),
    })),
    busiest: [...buckets].map(([bucket, its]) => {
      const parts = its.flatMap(({ slots }) => slots.map((each) => partOf(each, hourMs, SLOT_MS)));
      return { bucket, slots: added(parts, whole).map(wholeSlot) };
    }),
  };
}

/** What was counted in a time, of all processes. */
export interface Step {
  readonly atMs: number;
  readonly events: number;
  readonly lags: Lags;
  /** How many buckets had each status at its end. Absent: no process looked, or it is not of all buckets. */
  readonly statuses?: Readonly<Record<string, number>>;
}

interface Window {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
}

/** What belongs to a step: the counts of a minute of a record, or of a slot of a bucket. */
interface Part {
  readonly atMs: number;
  readonly events: number;
  readonly lags: PackedLags;
  readonly statuses?: Readonly<Record<string, number>> | undefined;
}

function partOf([at, events, lags]: Slot, hourMs: number, lengthMs: number): Part {
  return { atMs: hourMs + at * lengthMs, events, lags };
}

/** The steps of all buckets, in order. Steps of which nothing was recorded are missing. */
export function stepsOf(records: readonly HourRecord[], window: Window): readonly Step[] {
  return added(
    records.flatMap(({ hourMs, minutes }) => minutes.map(({ slot: each, statuses }) => ({ ...partOf(each, hourMs, MINUTE_MS), statuses }))),
    window,
  );
}

/**
 * The steps of these buckets, as far as they were among the busiest; the steps are no shorter than a slot. Where a process recorded
 * anything, its steps are there: with no event of the bucket they are 0.
 */
export function stepsOfBuckets(records: readonly HourRecord[], isWanted: (bucket: string) => boolean, window: Window): readonly Step[] {
  const parts = records.flatMap(({ hourMs, minutes, busiest }): readonly Part[] => [
    ...minutes.map(({ slot: each }) => ({ ...partOf(each, hourMs, MINUTE_MS), events: 0, lags: [] })),
    ...busiest.filter(({ bucket }) => isWanted(bucket)).flatMap(({ slots }) => slots.map((each) => partOf(each, hourMs, SLOT_MS))),
  ]);
  return added(parts, window);
}

function added(parts: readonly Part[], { fromMs, toMs, stepMs }: Window): readonly Step[] {
  const steps = new Map<number, Step>();
  /** When the statuses of each step were counted. */
  const looks = new Map<number, number>();
  for (const { atMs, events, lags: counts, statuses } of parts) {
    const stepAtMs = Math.floor(atMs / stepMs) * stepMs;
    if (stepAtMs < fromMs || stepAtMs >= toMs) continue;
    const known = steps.get(stepAtMs) ?? { atMs: stepAtMs, events: 0, lags: {} };
    // every process counts the same buckets, so the last look stands for all
    const isLater = statuses !== undefined && atMs >= (looks.get(stepAtMs) ?? -Infinity);
    if (isLater) looks.set(stepAtMs, atMs);
    steps.set(stepAtMs, {
      ...known,
      events: known.events + events,
      lags: addedLags(known.lags, counts),
      ...(isLater && { statuses }),
    });
  }
  return [...steps.values()].toSorted((a, b) => a.atMs - b.atMs);
}

/** The buckets with the most events in the time, the busiest first. */
export function busiestIn(
  records: readonly HourRecord[],
  isWanted: (bucket: string) => boolean,
  { fromMs, toMs }: Pick<Window, 'fromMs' | 'toMs'>,
): readonly { readonly bucket: string; readonly events: number }[] {
  const events = new Map<string, number>();
  for (const { hourMs, busiest } of records) {
    for (const { bucket, slots } of busiest) {
      if (!isWanted(bucket)) continue;
      for (const [at, count] of slots) {
        const atMs = hourMs + at * SLOT_MS;
        if (atMs > fromMs - SLOT_MS && atMs < toMs) events.set(bucket, (events.get(bucket) ?? 0) + count);
      }
    }
  }
  return [...events]
    .map(([bucket, count]) => ({ bucket, events: count }))
    .toSorted((a, b) => b.events - a.events || compareKeys(a.bucket, b.bucket))
    .slice(0, BUSIEST_MAX);
}

/** The step of a chart: at most 336 steps, which is what a screen can show. `isOfBuckets`: not of all buckets together. */
export function stepMsOf(fromMs: number, toMs: number, isOfBuckets: boolean): number {
  const hours = (toMs - fromMs) / HOUR_MS;
  if (hours > 26) return HOUR_MS;
  return hours > 3 || isOfBuckets ? SLOT_MS : MINUTE_MS;
}
