import { z } from 'zod';
import { CLOCKS_DIFFER_MS } from './dirty.ts';

/** When scheduled work is due, as stored. Its lease shows whether a worker is running it. */
export const scheduleSchema = z.object({ name: z.string(), dueAtMs: z.number(), lastStartedAtMs: z.number().optional() });
type ScheduleRecord = z.infer<typeof scheduleSchema>;

/** The schedule that closes gaps. Re-index workers run it every few seconds, so its record also shows that there is one. */
export const CLOSE_GAPS_NAME = 'close-gaps';

/**
 * Whether a run may begin. Work that never ran is due at once. A time further ahead than a right clock can have set counts as due too;
 * otherwise a single clock in the year 2099 would stop the schedule permanently.
 */
export function isScheduleDue(record: ScheduleRecord | undefined, nowMs: number, intervalMs: number): boolean {
  return record === undefined || record.dueAtMs <= nowMs || record.dueAtMs > nowMs + intervalMs + CLOCKS_DIFFER_MS;
}
