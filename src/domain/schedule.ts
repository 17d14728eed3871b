import { z } from 'zod';

/** Calendar work as stored: when it is due again, and who does it now. Any number of workers may try; exactly one does. */
export const scheduleSchema = z.object({
  name: z.string(),
  dueAtMs: z.number(),
  /** Who claimed it; nobody else may before `untilMs`. */
  claim: z.object({ worker: z.string(), untilMs: z.number() }).optional(),
  lastStartedAtMs: z.number().optional(),
  lastEndedAtMs: z.number().optional(),
  lastError: z.string().optional(),
});
export type ScheduleRecord = z.infer<typeof scheduleSchema>;

/** What a worker does about a schedule now. */
export type ScheduleStep = { readonly kind: 'claim'; readonly record: ScheduleRecord } | { readonly kind: 'wait' };

/** Claims what is due and not claimed by a worker that may still be at it. A schedule that never ran is due at once. */
export function claimStep(
  current: ScheduleRecord | undefined,
  { name, worker, nowMs, claimMs }: { readonly name: string; readonly worker: string; readonly nowMs: number; readonly claimMs: number },
): ScheduleStep {
  if (current !== undefined && (current.dueAtMs > nowMs || (current.claim?.untilMs ?? 0) > nowMs)) return { kind: 'wait' };
  const claim = { worker, untilMs: nowMs + claimMs };
  return { kind: 'claim', record: { ...current, name, dueAtMs: current?.dueAtMs ?? nowMs, claim, lastStartedAtMs: nowMs } };
}

/** The record after the work: due again one interval after it began. */
export function endedRecord(
  record: ScheduleRecord,
  { nowMs, intervalMs, error }: { readonly nowMs: number; readonly intervalMs: number; readonly error: string | undefined },
): ScheduleRecord {
  const { claim: _, lastError: __, ...rest } = record;
  const dueAtMs = (record.lastStartedAtMs ?? nowMs) + intervalMs;
  return { ...rest, dueAtMs, lastEndedAtMs: nowMs, ...(error !== undefined && { lastError: error }) };
}
