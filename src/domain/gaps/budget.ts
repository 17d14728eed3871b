/**
 * The budget for closing a bucket's gaps: LIST requests within any 24 hours. A job that costs more than a whole budget is
 * oversized. Oversized jobs are counted apart, so that they neither wait for the others nor keep them waiting: one may start
 * once no other oversized one counts, and its cost then counts for as many days as it takes budgets.
 */
import { z } from 'zod';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export const gapBudgetSchema = z.object({
  bucket: z.string(),
  /** Jobs that have not ended, with their estimated cost. */
  running: z.array(z.object({ jobId: z.string(), atMs: z.number(), requests: z.number() })),
  /** The cost of ended jobs, by the hour in which they started. Oversized ones have their own sums. */
  spent: z.array(z.object({ atMs: z.number(), requests: z.number(), oversized: z.boolean().optional() })),
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

/** Whether a job of this cost is oversized: it takes more than the budget of a whole day. */
export function isOversized(requests: number, { requestsPerDay }: Pick<Limits, 'requestsPerDay'>): boolean {
  return requests > requestsPerDay;
}

/** Why a job may not start now: what counts against it, and from when it may start as far as is known now. */
export interface Unaffordable {
  readonly spent: number;
  readonly fromMs: number;
}

/** Whether a job of this cost may start now; `never` when the budget is 0. */
export function affordable(budget: GapBudget, requests: number, limits: Limits): 'yes' | 'never' | Unaffordable {
  const { nowMs, requestsPerDay } = limits;
  if (requestsPerDay === 0) return 'never';
  const isOver = isOversized(requests, limits);
  const items = countedNow(budget, limits).filter((item) => item.isOversized === isOver);
  const spent = items.reduce((sum, item) => sum + item.requests, 0);
  let left = spent;
  let fromMs = nowMs;
  for (const { requests: freed, endMs } of items.toSorted((a, b) => a.endMs - b.endMs)) {
    // an oversized job waits until no other one counts
    if (left + requests <= requestsPerDay) break;
    left -= freed;
    fromMs = endMs;
  }
  return fromMs === nowMs ? 'yes' : { spent, fromMs };
}

/** The costs that count against the budget now. */
function countedNow({ running, spent }: GapBudget, limits: Limits) {
  const costs = [
    ...running.map((job) => ({ ...job, isOversized: isOversized(job.requests, limits) })),
    ...spent.map((hour) => ({ ...hour, isOversized: hour.oversized === true })),
  ];
  return costs.map((cost) => ({ ...cost, endMs: endOf(cost, limits.requestsPerDay) })).filter(({ endMs }) => endMs > limits.nowMs);
}

/** Adds a started job with its estimated cost. Returns the same object when the budget already contains the job. */
export function withJob(budget: GapBudget, job: { readonly jobId: string; readonly atMs: number; readonly requests: number }): GapBudget {
  return budget.running.some(({ jobId }) => jobId === job.jobId) ? budget : { ...budget, running: [...budget.running, job] };
}

/**
 * Replaces the estimate of an ended job by its actual cost, and removes costs that no longer count. Returns the same object
 * when the budget does not contain the job.
 */
export function withEnded(budget: GapBudget, ended: { readonly jobId: string; readonly requests: number }, limits: Limits): GapBudget {
  const job = budget.running.find(({ jobId }) => jobId === ended.jobId);
  if (job === undefined) return budget;
  const hourMs = Math.floor(job.atMs / HOUR_MS) * HOUR_MS;
  const oversized = isOversized(ended.requests, limits);
  const ofHour = budget.spent.find((each) => each.atMs === hourMs && (each.oversized === true) === oversized);
  const others = budget.spent.filter((each) => each !== ofHour && endOf(each, limits.requestsPerDay) > limits.nowMs);
  return {
    ...budget,
    running: budget.running.filter((each) => each !== job),
    spent: [...others, { atMs: hourMs, requests: (ofHour?.requests ?? 0) + ended.requests, ...(oversized && { oversized }) }],
  };
}

/** When an hour's costs no longer count: a day after the end of the hour, or later if they exceed a day's budget. */
function endOf({ atMs, requests }: { readonly atMs: number; readonly requests: number }, requestsPerDay: number): number {
  const days = Math.max(1, requests / Math.max(1, requestsPerDay));
  return atMs + HOUR_MS + DAY_MS * days;
}
