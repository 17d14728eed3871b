/**
 * What gaps may cost a bucket: LIST requests within any 24 hours. A job that alone costs more may begin once nothing is spent,
 * and its cost then counts for as many days as it is budgets.
 */
import { z } from 'zod';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export const gapBudgetSchema = z.object({
  bucket: z.string(),
  /** Jobs that have not ended: what they are expected to cost. */
  running: z.array(z.object({ jobId: z.string(), atMs: z.number(), requests: z.number() })),
  /** What ended jobs cost, by the hour in which they were begun. */
  spent: z.array(z.object({ atMs: z.number(), requests: z.number() })),
});
export type GapBudget = z.infer<typeof gapBudgetSchema>;

export interface Limits {
  readonly nowMs: number;
  readonly requestsPerDay: number;
}

/** A bucket's budget of which nothing is spent. */
export function freshBudget(bucket: string): GapBudget {
  return { bucket, running: [], spent: [] };
}

/** `yes`, or from when on by what is known now; never, where there is no budget at all. */
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

/** What counts now. */
export function spentNow(budget: GapBudget, { nowMs, requestsPerDay }: Limits): number {
  return [...budget.running, ...budget.spent]
    .filter((item) => endOf(item, requestsPerDay) > nowMs)
    .reduce((sum, { requests }) => sum + requests, 0);
}

/** With a job that was begun and its estimate. The very budget where it is known already. */
export function withJob(budget: GapBudget, job: { readonly jobId: string; readonly atMs: number; readonly requests: number }): GapBudget {
  return budget.running.some(({ jobId }) => jobId === job.jobId) ? budget : { ...budget, running: [...budget.running, job] };
}

/** Once a job has ended: with what it really cost in the place of its estimate, and without what no longer counts. The very budget for a job that it does not know. */
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

/** An hour's costs count until a day after its end. */
function endOf({ atMs, requests }: { readonly atMs: number; readonly requests: number }, requestsPerDay: number): number {
  const days = Math.max(1, requests / Math.max(1, requestsPerDay));
  return atMs + HOUR_MS + DAY_MS * days;
}
