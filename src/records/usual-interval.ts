/** How often a bucket's events come, and when their silence is unusual. */
import { z } from 'zod';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A week contains every usual interval: nights, weekends, a weekly export. Before that, no silence is known to be unusual. */
const LEARNING_MS = 7 * DAY_MS;
/** How fast a shorter interval replaces a longer one: what was usual a fortnight ago counts for a third. */
const MEMORY_MS = 14 * DAY_MS;
/** A silence of more usual intervals than this is unusual. */
const INTERVALS_MAX = 3;
/** A shorter silence is never unusual: it may be a pause of a few workers, or of the network. */
const SILENCE_MIN_MS = HOUR_MS;

/** Once the silence has lasted for this much longer, the bucket counts as no longer written to, because people have seen the status by then. */
const DORMANT_MS = 30 * DAY_MS;

export const usualIntervalSchema = z.object({
  /** When the first known event arrived. */
  sinceMs: z.number(),
  /** The longest interval between two events that still counts. */
  usualIntervalMs: z.number(),
});
export type UsualInterval = z.infer<typeof usualIntervalSchema>;

/**
 * The usual interval after an event. A longer interval counts at once. A shorter one counts by its length, so a bucket that is busy by day
 * keeps its nights, and one that has become busy loses them within some weeks.
 */
export function usualIntervalAfter(
  known: UsualInterval | undefined,
  event: { readonly atMs: number; readonly beforeMs: number | undefined },
): UsualInterval {
  const { atMs, beforeMs = atMs } = event;
  const { sinceMs, usualIntervalMs } = known ?? { sinceMs: beforeMs, usualIntervalMs: 0 };
  const intervalMs = Math.max(0, atMs - beforeMs);
  const share = Math.min(1, intervalMs / MEMORY_MS);
  return { sinceMs, usualIntervalMs: Math.max(intervalMs, Math.round(usualIntervalMs + share * (intervalMs - usualIntervalMs))) };
}

/** Whether a silence of this length is unusual. */
export function isUnusuallyLong(silenceMs: number, { sinceMs, usualIntervalMs }: UsualInterval, lastEventAtMs: number): boolean {
  const usualMs = Math.max(SILENCE_MIN_MS, INTERVALS_MAX * usualIntervalMs);
  return lastEventAtMs - sinceMs >= LEARNING_MS && silenceMs > usualMs && silenceMs <= usualMs + DORMANT_MS;
}
