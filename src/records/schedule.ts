import { z } from 'zod';
import { omit } from '../base/defined.ts';

/**
 * Scheduled work as stored: when it is due, and whether a worker runs it now. Any number of workers may try to claim it; one succeeds.
 *
 *   due ──claimed──► running ──ended──► waits until dueAtMs ──► due
 *                       └── longer than a run may take: its worker died ──► due
 */
export const scheduleSchema = z.object({
  name: z.string(),
  dueAtMs: z.number(),
  /** A worker has claimed it, and its run has not ended. */
  running: z.literal(true).optional(),
  lastStartedAtMs: z.number().optional(),
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

interface Look extends ScheduleTimes {
  readonly runMaxMs: number;
  /** For how long this worker has seen the record unchanged, by its own steady clock. */
  readonly watchedMs: number;
}

/**
 * Whether a run may begin. Work that never ran is due at once. A time further ahead than a right clock can have set counts as due too;
 * otherwise a single clock in the year 2099 would stop the schedule permanently. A run counts as over once it has lasted longer than it may:
 * this worker has watched it for so long, or, since workers come and go, the clocks say so by more than they may differ.
 */
export function isScheduleDue(record: ScheduleRecord | undefined, { nowMs, intervalMs, runMaxMs, watchedMs }: Look): boolean {
  if (record === undefined) return true;
  const { dueAtMs, running, lastStartedAtMs = nowMs } = record;
  if (running === true) return watchedMs > runMaxMs || Math.abs(nowMs - lastStartedAtMs) > runMaxMs + SKEW_MAX_MS;
  return dueAtMs <= nowMs || dueAtMs > nowMs + intervalMs + SKEW_MAX_MS;
}

/** The record while a worker runs the work. */
export function startedRecord(name: string, record: ScheduleRecord | undefined, nowMs: number): ScheduleRecord {
  return { ...record, name, dueAtMs: record?.dueAtMs ?? nowMs, running: true, lastStartedAtMs: nowMs };
}

/** The record after a run, free for any worker: due again one interval after the run began; a minute after its end if it failed; still due if its worker was stopped. */
export function endedRecord(
  record: ScheduleRecord,
  { end, nowMs, intervalMs }: ScheduleTimes & { readonly end: 'done' | 'failed' | 'stopped' },
): ScheduleRecord {
  const { lastStartedAtMs = nowMs } = record;
  const dueAtMs = { done: lastStartedAtMs + intervalMs, failed: nowMs + Math.min(intervalMs, RETRY_MS), stopped: nowMs };
  return { ...omit(record, 'running'), dueAtMs: dueAtMs[end] };
}
