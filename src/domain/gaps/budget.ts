/**
 * The budget for closing a bucket's gaps, in LIST requests a day: a leaky bucket with the burst of a day. Each job moves the time
 * until which its requests are paid for by its cost, and no job begins while that time is more than a day ahead. So the requests
 * of a week are those of seven days and of a burst, and every gap comes first at some time, whatever it costs. A job that alone
 * costs more than a day is oversized. Those have a time of their kind, so that small gaps do not wait for them.
 */
import { z } from 'zod';

const DAY_MS = 86_400_000;

/** The times until which the requests are paid for, by what the jobs cost. */
const paidUntilSchema = z.object({ usual: z.number(), oversized: z.number() });
type Meter = keyof z.infer<typeof paidUntilSchema>;

export const gapBudgetSchema = z.object({
  bucket: z.string(),
  paidUntilMs: paidUntilSchema,
  /** Jobs that have not ended, with their estimated cost, which is in `paidUntilMs`. */
  running: z.array(z.object({ jobId: z.string(), atMs: z.number(), requests: z.number() })),
});
export type GapBudget = z.infer<typeof gapBudgetSchema>;

export interface Limits {
  readonly nowMs: number;
  readonly requestsPerDay: number;
}

/** The budget of a bucket without any cost so far. */
export function freshBudget(bucket: string): GapBudget {
  return { bucket, paidUntilMs: { usual: 0, oversized: 0 }, running: [] };
}

/** Whether a job of this cost may start now, or from when; `never` when the budget is 0. */
export function affordable(budget: GapBudget, requests: number, { nowMs, requestsPerDay }: Limits): 'yes' | 'never' | { fromMs: number } {
  if (requestsPerDay === 0) return 'never';
  const fromMs = budget.paidUntilMs[meterOf(requests, requestsPerDay)] - DAY_MS;
  return fromMs <= nowMs ? 'yes' : { fromMs };
}

/** Adds a started job with its estimated cost. Returns the same object when the budget already contains the job. */
export function withJob(budget: GapBudget, job: GapBudget['running'][number], requestsPerDay: number): GapBudget {
  if (budget.running.some(({ jobId }) => jobId === job.jobId)) return budget;
  return { ...charged(budget, job, requestsPerDay), running: [...budget.running, job] };
}

/** Replaces the estimate of an ended job by its actual cost. Returns the same object when the budget does not contain the job. */
export function withEnded(
  budget: GapBudget,
  { jobId, requests }: { readonly jobId: string; readonly requests: number },
  requestsPerDay: number,
): GapBudget {
  const job = budget.running.find((each) => each.jobId === jobId);
  if (job === undefined) return budget;
  const meter = meterOf(job.requests, requestsPerDay);
  const paidUntilMs = { ...budget.paidUntilMs, [meter]: budget.paidUntilMs[meter] - msOf(job.requests, requestsPerDay) };
  const running = budget.running.filter((each) => each !== job);
  return charged({ ...budget, paidUntilMs, running }, { ...job, requests }, requestsPerDay);
}

/** The budget after the requests of a job that began at that time. */
function charged(budget: GapBudget, { atMs, requests }: GapBudget['running'][number], requestsPerDay: number): GapBudget {
  const meter = meterOf(requests, requestsPerDay);
  // what was not used before the job began is not saved up
  const paidUntilMs = Math.max(budget.paidUntilMs[meter], atMs) + msOf(requests, requestsPerDay);
  return { ...budget, paidUntilMs: { ...budget.paidUntilMs, [meter]: paidUntilMs } };
}

function meterOf(requests: number, requestsPerDay: number): Meter {
  return requests > requestsPerDay ? 'oversized' : 'usual';
}

/** For how long the requests use the whole budget. */
export function msOf(requests: number, requestsPerDay: number): number {
  return requestsPerDay === 0 ? 0 : (requests / requestsPerDay) * DAY_MS;
}
