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
  /** When a cost was last added, by the clock of the process that did it. */
  chargedAtMs: z.number(),
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
  return { bucket, paidUntilMs: { usual: 0, oversized: 0 }, chargedAtMs: 0, running: [] };
}

/** Whether a job of this cost may start now, or from when; `never` when the budget is 0. */
export function affordable(budget: GapBudget, requests: number, { nowMs, requestsPerDay }: Limits): 'yes' | 'never' | { fromMs: number } {
  if (requestsPerDay === 0) return 'never';
  const fromMs = byClock(budget, nowMs).paidUntilMs[meterOf(requests, requestsPerDay)] - DAY_MS;
  return fromMs <= nowMs ? 'yes' : { fromMs };
}

/** Adds a started job with its estimated cost. Returns the same object when the budget already contains the job. */
export function withJob(budget: GapBudget, job: GapBudget['running'][number], limits: Limits): GapBudget {
  if (budget.running.some(({ jobId }) => jobId === job.jobId)) return budget;
  const current = byClock(budget, limits.nowMs);
  return { ...charged(current, job, limits), running: [...current.running, job] };
}

/** Replaces the estimate of an ended job by its actual cost. Returns the same object when the budget does not contain the job. */
export function withEnded(
  budget: GapBudget,
  { jobId, requests }: { readonly jobId: string; readonly requests: number },
  limits: Limits,
): GapBudget {
  const current = byClock(budget, limits.nowMs);
  const job = current.running.find((each) => each.jobId === jobId);
  if (job === undefined) return budget;
  const meter = meterOf(job.requests, limits.requestsPerDay);
  const paidUntilMs = { ...current.paidUntilMs, [meter]: current.paidUntilMs[meter] - msOf(job.requests, limits.requestsPerDay) };
  const running = current.running.filter((each) => each !== job);
  return charged({ ...current, paidUntilMs, running }, { ...job, requests }, limits);
}

/** The budget after the requests of a job that began at that time. */
function charged(budget: GapBudget, { atMs, requests }: GapBudget['running'][number], { nowMs, requestsPerDay }: Limits): GapBudget {
  const meter = meterOf(requests, requestsPerDay);
  // what was not used before the job began is not saved up
  const paidUntilMs = Math.max(budget.paidUntilMs[meter], Math.min(atMs, nowMs)) + msOf(requests, requestsPerDay);
  return { ...budget, paidUntilMs: { ...budget.paidUntilMs, [meter]: paidUntilMs }, chargedAtMs: nowMs };
}

/** The budget by the clock of this process. A process whose clock is fast has charged it in the future, by which its times are too late. */
function byClock(budget: GapBudget, nowMs: number): GapBudget {
  const fastMs = Math.max(0, budget.chargedAtMs - nowMs);
  if (fastMs === 0) return budget;
  const { usual, oversized } = budget.paidUntilMs;
  const running = budget.running.map((job) => ({ ...job, atMs: Math.min(job.atMs, nowMs) }));
  return { ...budget, paidUntilMs: { usual: usual - fastMs, oversized: oversized - fastMs }, chargedAtMs: nowMs, running };
}

function meterOf(requests: number, requestsPerDay: number): Meter {
  return requests > requestsPerDay ? 'oversized' : 'usual';
}

/** For how long the requests use the whole budget. */
export function msOf(requests: number, requestsPerDay: number): number {
  return requestsPerDay === 0 ? 0 : (requests / requestsPerDay) * DAY_MS;
}
