import { z } from 'zod';
import { omit } from '../defined.ts';

/**
 * Calendar work as stored: when it is due, and which worker runs it now. Any number of workers may try; one succeeds.
 *
 *   due ──claimed──► running ──ended──► waits until dueAtMs ──► due
 *                       └── its worker died: the claim is not renewed ──► due
 */
export const scheduleSchema = z.object({
  name: z.string(),
  dueAtMs: z.number(),
  /** The lease of the worker that runs it now (pipeline/records/lease.ts). */
  claim: z.object({ holder: z.string(), renewals: z.number() }).optional(),
  lastStartedAtMs: z.number().optional(),
  lastEndedAtMs: z.number().optional(),
  lastError: z.string().optional(),
  /** Number of consecutive runs that failed. */
  failures: z.number().optional(),
  /** Of a sweep over all buckets: the bucket that its last run visited last, if there were more. */
  place: z.string().optional(),
});
export type ScheduleRecord = z.infer<typeof scheduleSchema>;

/** The schedule that closes gaps. It runs every few seconds wherever a re-index worker runs, so its record also shows that one does. */
export const CLOSE_GAPS_NAME = 'close-gaps';

/** What a worker does with a schedule now. */
export type ScheduleAction = { readonly kind: 'claim'; readonly record: ScheduleRecord } | { readonly kind: 'wait' };

/** S3 refuses requests whose time is more than 15 min off, so the clocks of two working workers differ by at most 30 min. */
const SKEW_MAX_MS = 1_800_000;
/** A failed run is retried after one minute, then two, four …, at most one interval. */
const RETRY_MIN_MS = 60_000;

export interface ScheduleLook {
  readonly name: string;
  /** The random name of the claim that this look may lead to. */
  readonly holder: string;
  readonly nowMs: number;
  readonly intervalMs: number;
  /** Whether this worker has watched the current record stay unchanged for the whole life of a lease. */
  readonly isUnchanged: boolean;
}

/** Claims a schedule that is due and that no other worker may still be running. A schedule that never ran is due at once. */
export function claimAction(current: ScheduleRecord | undefined, look: ScheduleLook): ScheduleAction {
  const { name, holder, nowMs } = look;
  if (current !== undefined && !isDue(current, look)) return { kind: 'wait' };
  if (current?.claim !== undefined && !look.isUnchanged) return { kind: 'wait' };
  const claim = { holder, renewals: 0 };
  return { kind: 'claim', record: { ...current, name, dueAtMs: current?.dueAtMs ?? nowMs, claim, lastStartedAtMs: nowMs } };
}

/** A time further ahead than a right clock can have set also counts as due: otherwise one clock in the year 2099 would stop the schedule for good. */
function isDue({ dueAtMs }: ScheduleRecord, { nowMs, intervalMs }: ScheduleLook): boolean {
  return dueAtMs <= nowMs || dueAtMs > nowMs + intervalMs + SKEW_MAX_MS;
}

/** The record after a run: due again one interval after the run began, or earlier if it failed. */
export function endedRecord(
  record: ScheduleRecord,
  { nowMs, intervalMs, error }: { readonly nowMs: number; readonly intervalMs: number; readonly error: string | undefined },
): ScheduleRecord {
  const { claim: _, lastError: __, failures = 0, ...rest } = record;
  if (error === undefined) return { ...rest, dueAtMs: (record.lastStartedAtMs ?? nowMs) + intervalMs, lastEndedAtMs: nowMs };
  const retryMs = Math.min(intervalMs, RETRY_MIN_MS * 2 ** failures);
  return { ...rest, dueAtMs: nowMs + retryMs, lastEndedAtMs: nowMs, lastError: error, failures: failures + 1 };
}

/** The record after its worker was stopped: still due, and free for any worker. */
export function releasedRecord(record: ScheduleRecord): ScheduleRecord {
  return omit(record, 'claim');
}
