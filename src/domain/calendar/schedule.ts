import { z } from 'zod';

/**
 * Calendar work as stored: when it is due again, and who does it now. Any number of workers may try; one does.
 *
 *   due ──claimed──► running ──ended──► waits until dueAtMs ──► due
 *                       └── its worker died: over once the claim is ──► due
 */
export const scheduleSchema = z.object({
  name: z.string(),
  dueAtMs: z.number(),
  /** Who claimed it, and when by that worker's clock the claim ends. */
  claim: z.object({ worker: z.string(), untilMs: z.number() }).optional(),
  lastStartedAtMs: z.number().optional(),
  lastEndedAtMs: z.number().optional(),
  lastError: z.string().optional(),
  /** Runs in a row that failed. */
  failures: z.number().optional(),
  /** The job that the last run began. */
  jobId: z.string().optional(),
});
export type ScheduleRecord = z.infer<typeof scheduleSchema>;

/** What a worker does about a schedule now. */
export type ScheduleStep = { readonly kind: 'claim'; readonly record: ScheduleRecord } | { readonly kind: 'wait' };

/** S3 refuses requests whose time is more than 15 min off, so the clocks of two workers that can work differ by less than this. */
const SKEW_MAX_MS = 1_800_000;
/** A run that failed is tried again after a minute, then two, four …, at most one interval. */
const RETRY_MIN_MS = 60_000;

export interface ScheduleLook {
  readonly name: string;
  readonly worker: string;
  readonly nowMs: number;
  readonly intervalMs: number;
  readonly claimMs: number;
  /** For how long this worker has seen the claim as it is now: by that it knows without any wall clock when it is over. */
  readonly watchedMs: number;
}

/**
 * Claims what is due and not claimed by a worker that may still be at it. A schedule that never ran is due at once. A
 * claim under the own name is what an earlier look left behind: this worker runs one at a time.
 */
export function claimStep(current: ScheduleRecord | undefined, look: ScheduleLook): ScheduleStep {
  const { name, worker, nowMs, claimMs } = look;
  if (current !== undefined && (!isDue(current, look) || isClaimed(current, look))) return { kind: 'wait' };
  const claim = { worker, untilMs: nowMs + claimMs };
  return { kind: 'claim', record: { ...current, name, dueAtMs: current?.dueAtMs ?? nowMs, claim, lastStartedAtMs: nowMs } };
}

/** Further ahead than it can have been set by a clock that is right: else one clock of the year 2099 would stop it for ever. */
function isDue({ dueAtMs }: ScheduleRecord, { nowMs, intervalMs }: ScheduleLook): boolean {
  return dueAtMs <= nowMs || dueAtMs > nowMs + intervalMs + SKEW_MAX_MS;
}

function isClaimed({ claim, lastStartedAtMs = 0 }: ScheduleRecord, { worker, nowMs, claimMs, watchedMs }: ScheduleLook): boolean {
  if (claim === undefined || claim.worker === worker) return false;
  const lengthMs = Math.max(claimMs, claim.untilMs - lastStartedAtMs);
  return watchedMs < lengthMs && Math.abs(nowMs - claim.untilMs) < lengthMs + SKEW_MAX_MS;
}

/** The record after the work: due again one interval after it began; sooner if it failed. */
export function endedRecord(
  record: ScheduleRecord,
  { nowMs, intervalMs, error }: { readonly nowMs: number; readonly intervalMs: number; readonly error: string | undefined },
): ScheduleRecord {
  const { claim: _, lastError: __, failures = 0, ...rest } = record;
  if (error === undefined) return { ...rest, dueAtMs: (record.lastStartedAtMs ?? nowMs) + intervalMs, lastEndedAtMs: nowMs };
  const retryMs = Math.min(intervalMs, RETRY_MIN_MS * 2 ** failures);
  return { ...rest, dueAtMs: nowMs + retryMs, lastEndedAtMs: nowMs, lastError: error, failures: failures + 1 };
}

/** The record after a stop: still due, and free for any worker. */
export function releasedRecord(record: ScheduleRecord): ScheduleRecord {
  const { claim: _, ...rest } = record;
  return rest;
}
