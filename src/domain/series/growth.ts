/** How a bucket grew: its objects and bytes on each day, in one record that is written once a day. Nothing is decided by it. */
import { z } from 'zod';

const DAY_MS = 86_400_000;
/** How many days a record holds. */
export const GROWTH_DAYS_MAX = 400;

/** Why nothing was measured on a day: the sums took too long, or there was no index to sum. */
export const missedReasons = ['too-slow', 'index-missing'] as const;

export const growthRecordSchema = z.object({
  bucket: z.string(),
  /** In order. A day on which nothing was measured is missing. */
  days: z.array(z.object({ day: z.string(), objects: z.number(), bytes: z.number() })),
  /** In order: the days on which it was tried without success. */
  missed: z.array(z.object({ day: z.string(), reason: z.enum(missedReasons) })).exactOptional(),
});
export type GrowthRecord = z.infer<typeof growthRecordSchema>;
export type GrowthDay = GrowthRecord['days'][number];
export type MissedDay = NonNullable<GrowthRecord['missed']>[number];

/** The day of a moment, by UTC: 2026-11-27. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The record with what was measured on a day. The first measure of a day stays. */
export function withDay(record: GrowthRecord, measured: GrowthDay): GrowthRecord {
  const { bucket, days, missed = [] } = record;
  if (isNoted(days, measured)) return record;
  const others = missed.filter(({ day }) => day !== measured.day);
  return { bucket, days: kept([...days, measured], measured), missed: kept(others, measured) };
}

/** The record with a day on which nothing was measured, unless something was. */
export function withoutDay(record: GrowthRecord, tried: MissedDay): GrowthRecord {
  const { bucket, days, missed = [] } = record;
  if (isNoted(days, tried) || isNoted(missed, tried)) return record;
  return { bucket, days: kept(days, tried), missed: kept([...missed, tried], tried) };
}

interface OfDay {
  readonly day: string;
}

const isNoted = (days: readonly OfDay[], { day }: OfDay): boolean => (days.at(-1)?.day ?? '') >= day;

const kept = <Day extends OfDay>(days: readonly Day[], { day: today }: OfDay): Day[] =>
  days.filter(({ day }) => day > daysBefore(today, GROWTH_DAYS_MAX));

/** The last days, as many as `count`, today included. */
export function daysSince<Day extends OfDay>(
  days: readonly Day[],
  { nowMs, count }: { readonly nowMs: number; readonly count: number },
): readonly Day[] {
  const after = daysBefore(dayOf(nowMs), count);
  return days.filter(({ day }) => day > after);
}

function daysBefore(day: string, count: number): string {
  return dayOf(Date.parse(day) - count * DAY_MS);
}
