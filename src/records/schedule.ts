import { z } from 'zod';
import { omit } from '../base/defined.ts';

/**
 * Scheduled work as stored: when it is due, and which worker runs it now. Any number of workers may try to claim it; one succeeds.
 *
 *   due ──claimed──► running ──ended──► waits until dueAtMs ──► due
 *                       └── its worker died: the claim is not renewed ──► due
 */
export const scheduleSchema = z.object({
  name: z.string(),
  dueAtMs: z.number(),
  /** The lease of the worker that runs it now (store/lease.ts). */
  claim: z.object({ holder: z.string(), renewals: z.number() }).optional(),
  lastStartedAtMs: z.number().optional(),
  lastEndedAtMs: z.number().optional(),
});
export type ScheduleRecord = z.infer<typeof scheduleSchema>;

/** The schedule that closes gaps. Re-index workers run it every few seconds, so its record also shows that there is one. */
export const CLOSE_GAPS_NAME = 'close-gaps';

/** S3 refuses requests whose time is more than 15 min off, so the clocks of two working workers differ by at most 30 min. */
const SKEW_MAX_MS = 1_800_000;
const RETRY_MS = 60_000;

interface ScheduleTimes {
  readonly nowMs: number;
  readonly intervalMs: number;
}

/**
 * Whether a run may begin. Work that never ran is due at once. A time further ahead than a right clock can have set counts as due too;
 * otherwise a single clock in the year 2099 would stop the schedule for good.
 */
export function isScheduleDue(record: ScheduleRecord | undefined, { nowMs, intervalMs }: ScheduleTimes): boolean {
  return record === undefined || record.dueAtMs <= nowMs || record.dueAtMs > nowMs + intervalMs + SKEW_MAX_MS;
}

/** The record while this holder runs the work. */
export function claimedBy(holder: string, name: string, record: ScheduleRecord | undefined, nowMs: number): ScheduleRecord {
  return { ...record, name, dueAtMs: record?.dueAtMs ?? nowMs, claim: { holder, renewals: 0 }, lastStartedAtMs: nowMs };
}

/** The record after a run, free for any worker: due again one interval after the run began; a minute after its end if it failed; still due if its worker was stopped. */
export function endedRecord(
  record: ScheduleRecord,
  { end, nowMs, intervalMs }: ScheduleTimes & { readonly end: 'done' | 'failed' | 'stopped' },
): ScheduleRecord {
  const free = omit(record, 'claim');
  switch (end) {
    case 'done':
      return { ...free, dueAtMs: (record.lastStartedAtMs ?? nowMs) + intervalMs, lastEndedAtMs: nowMs };
    case 'failed':
      return { ...free, dueAtMs: nowMs + Math.min(intervalMs, RETRY_MS), lastEndedAtMs: nowMs };
    case 'stopped':
      return free;
  }
}
