/**
 * The budget for closing a bucket's gaps: LIST requests within any 24 hours. A job that costs more than a whole budget may
 * start once nothing counts against the budget; its cost then counts for as many days as it takes budgets.
 */
import { z } from 'zod';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export const gapBudgetSchema = z.object({
  bucket: z.string(),
  /** Jobs that have not ended, with their estimated cost. */
  running: z.array(z.object({ jobId: z.string(), atMs: z.number(), requests: z.number() })),
  /** The cost of ended jobs, by the hour in which they started. */
  spent: z.array(z.object({ atMs: z.number(), requests: z.number() })),
});
export type GapBudget = z.infer<typeof gapBudgetSchema>;

export interface Limits {
  readonly nowMs: number;
  readonly requestsPerDay: number;
}

/** The budget of a bucket without any cost so far. */
export function freshBudget(bucket: string): GapBudget {
  return { bucket, running: [], spent: [] };
}

/** Whether `requests` fit into the budget now, or the time from which they will as far as is known now; `never` when the budget is 0. */
export function affordable(
  budget: GapBudget,
  requests: number,
  { nowMs, requestsPerDay }: Limits,
): 'yes' | 'never' | { readonly fromMs: number } {
  if (requestsPerDay === 0) return 'never';
  const items = [...budget.running, ...budget.spent]
    .map((item) => ({ requests: item.requests, endMs: endOf(item, requestsPerDay) }))
    .filter(({ endMs }) => endMs > nowMs)
    .sort((a, b) => a.endMs - b.endMs);
  let left = items.reduce((sum, item) => sum + item.requests, 0);
  let fromMs = nowMs;
  for (const { requests: freed, endMs } of items) {
    if (left + requests <= requestsPerDay) break;
    left -= freed;
    fromMs = endMs;
  }
  return fromMs === nowMs ? 'yes' : { fromMs };
}

/** The requests that count against the budget now. */
export function spentNow(budget: GapBudget, { nowMs, requestsPerDay }: Limits): number {
  return [...budget.running, ...budget.spent]
    .filter((item) => endOf(item, requestsPerDay) > nowMs)
    .reduce((sum, { requests }) => sum + requests, 0);
}

/** Adds a started job with its estimated cost. Returns the same object when the budget already contains the job. */
export function withJob(budget: GapBudget, job: { readonly jobId: string; readonly atMs: number; readonly requests: number }): GapBudget {
  return budget.running.some(({ jobId }) => jobId === job.jobId) ? budget : { ...budget, running: [...budget.running, job] };
}

/**
 * Replaces the estimate of an ended job by its actual cost, and removes costs that no longer count. Returns the same object
 * when the budget does not contain the job.
 */
export function withEnded(
  budget: GapBudget,
  ended: { readonly jobId: string; readonly requests: number },
  { nowMs, requestsPerDay }: Limits,
): GapBudget {
  const job = budget.running.find(({ jobId }) => jobId === ended.jobId);
  if (job === undefined) return budget;
  const hourMs = Math.floor(job.atMs / HOUR_MS) * HOUR_MS;
  const ofHour = budget.spent.find(({ atMs }) => atMs === hourMs);
  const others = budget.spent.filter((each) => each !== ofHour && endOf(each, requestsPerDay) > nowMs);
  return {
    ...budget,
    running: budget.running.filter((each) => each !== job),
    spent: [...others, { atMs: hourMs, requests: (ofHour?.requests ?? 0) + ended.requests }],
  };
}

/** When an hour's costs no longer count: a day after the end of the hour, or later if they exceed a day's budget. */
function endOf({ atMs, requests }: { readonly atMs: number; readonly requests: number }, requestsPerDay: number): number {
  const days = Math.max(1, requests / Math.max(1, requestsPerDay));
  return atMs + HOUR_MS + DAY_MS * days;
}
