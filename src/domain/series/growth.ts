/** How a bucket grew: its objects and bytes on each day, in one record that is written once a day. Nothing is decided by it. */
import { z } from 'zod';

const DAY_MS = 86_400_000;
/** How many days a record holds. */
export const GROWTH_DAYS_MAX = 400;

export const growthRecordSchema = z.object({
  bucket: z.string(),
  /** In order. A day on which nothing was measured is missing. */
  days: z.array(z.object({ day: z.string(), objects: z.number(), bytes: z.number() })),
});
export type GrowthRecord = z.infer<typeof growthRecordSchema>;
export type GrowthDay = GrowthRecord['days'][number];

/** The day of a moment, by UTC: 2026-11-27. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The record with what was measured on a day. The first measure of a day stays. */
export function withDay(record: GrowthRecord, measured: GrowthDay): GrowthRecord {
  const last = record.days.at(-1);
  if (last !== undefined && last.day >= measured.day) return record;
  return { ...record, days: [...record.days, measured].filter(({ day }) => day > daysBefore(measured.day, GROWTH_DAYS_MAX)) };
}

/** The last days of a record, as many as `count`, today included. */
export function daysSince(
  { days }: GrowthRecord,
  { nowMs, count }: { readonly nowMs: number; readonly count: number },
): readonly GrowthDay[] {
  const after = daysBefore(dayOf(nowMs), count);
  return days.filter(({ day }) => day > after);
}

function daysBefore(day: string, count: number): string {
  return dayOf(Date.parse(day) - count * DAY_MS);
}
