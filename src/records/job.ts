/**
 * Re-index jobs as stored.
 *
 *   queued ──► running ──► done │ failed
 *      ▲          │ ▲
 *      │          ▼ │
 *      └─resume─ paused          cancelled: from queued, running and paused
 */
import { z } from 'zod';
import { overdueSchema, countsSchema, examplesSchema } from './comparison.ts';
import { omit } from '../base/defined.ts';
import { faults, type FaultCode } from '../base/fault.ts';
import type { BucketRecord } from './bucket.ts';

/** The job's holder, whose name is new for each claim. */
export const leaseSchema = z.object({ worker: z.string() });

export const jobStates = ['queued', 'running', 'paused', 'done', 'failed', 'cancelled'] as const;
export type JobState = (typeof jobStates)[number];

export const jobModes = ['apply', 'report'] as const;
export type JobMode = (typeof jobModes)[number];

/** What a running job is doing: waiting for late events, or comparing. */
export const jobPhases = ['waiting', 'comparing'] as const;

export const jobFaultSchema = z.object({
  code: z.custom<FaultCode>((code) => typeof code === 'string' && code in faults),
  reason: z.string(),
  /** The key after which it occurred; absent if the job had compared nothing. */
  after: z.string().exactOptional(),
});

export type JobFault = z.infer<typeof jobFaultSchema>;

/** A range of a job's keys that is still to be compared: those after the cursor, up to `to`. */
const partSchema = z.object({
  /** Keys up to and including this one are compared, and their writes are durable. */
  cursor: z.string(),
  /** Inclusive; absent: to the last key. */
  to: z.string().exactOptional(),
  /** Whether keys after the cursor were already written, and counted, so that the scan may not show them yet. */
  readsFirst: z.boolean().exactOptional(),
  /** The fault that ended its last turn, how many turns in a row made no progress, since when, and when the next one begins. */
  fault: jobFaultSchema.extend({ attempts: z.number(), sinceMs: z.number(), dueAtMs: z.number() }).exactOptional(),
});
export type Part = z.infer<typeof partSchema>;

export const jobSchema = z.object({
  id: z.string(),
  bucket: z.string(),
  prefix: z.string(),
  mode: z.enum(jobModes),
  /** Who started the job: a caller, `gap` or `schedule`. */
  requestedBy: z.string(),
  state: z.enum(jobStates),
  createdAtMs: z.number(),
  startedAtMs: z.number().optional(),
  finishedAtMs: z.number().optional(),
  /** `--fill`: documents that lack a field of the listing, or their bucket's enrichment, are written too. */
  fill: z.boolean().optional(),
  /** All objects' tags are read again, if the bucket's documents have tags: there is no other way to find changed tags. */
  tags: z.boolean().optional(),
  /** `--now`: the job stores no floor and does not wait, so it closes no gap. */
  now: z.boolean().optional(),
  /** Until when it waits for late events before it compares (rule 8). */
  waitUntilMs: z.number().optional(),
  /**
   * Rule 8: when the floor was stored, by S3's clock or the worker's, whichever is earlier. The job covers changes before this time.
   * Absent for reports and `--now`.
   */
  coversBeforeMs: z.number().optional(),
  /** Its place among the beginnings of its bucket's jobs: it covers gaps last reported after an earlier one. Stored with coversBeforeMs. */
  beginOrder: z.number().optional(),
  /** `limit`: how many tombstones the job may write in all (absent: no limit). `reserved`: how many it has taken. */
  deletions: z.object({ limit: z.number().optional(), reserved: z.number() }).optional(),
  /** How many live documents there were under the prefix when the job began; progress is measured against this. */
  documentsAtStart: z.number().optional(),
  /** What is left to compare, in key order. Stored together with counts and examples: at most every five seconds, and when the lease is given back. */
  parts: z.array(partSchema).exactOptional(),
  /** From when a process may claim it; absent while it is paused and once it has ended. The state index searches by it. */
  dueAtMs: z.number().optional(),
  /** The process that works on it. */
  lease: leaseSchema.optional(),
  /** How many leases in a row ended without progress. */
  fruitless: z.number().optional(),
  /** When comparing began, when the current pause began, and the total length of earlier pauses since comparing began. */
  comparingAtMs: z.number().optional(),
  pausedAtMs: z.number().optional(),
  pausedMs: z.number().optional(),
  /** How many of the held deletions a person has allowed this job to make. */
  allowDeletes: z.number().optional(),
  /** What was compared and done so far, including requests before comparing. */
  counts: countsSchema.optional(),
  examples: examplesSchema.optional(),
  /** What the bucket should no longer hold, found at the end of a comparison of all of it. */
  overdue: overdueSchema.optional(),
  /** Why the job could not begin yet, and since when. It begins once the fault is over. */
  waits: jobFaultSchema.extend({ sinceMs: z.number() }).optional(),
  /** Why it fails once all else is compared: S3 refuses a key that it cannot leave to a gap. */
  refused: jobFaultSchema.exactOptional(),
  error: jobFaultSchema.optional(),
});
export type JobRecord = z.infer<typeof jobSchema>;

/** Whether the job occupies its bucket, as only one job at a time may: queued and running apply jobs do; reports and paused jobs do not. */
export function occupiesBucket(job: JobRecord): boolean {
  return job.mode === 'apply' && (job.state === 'queued' || job.state === 'running');
}

/** Whether the job has ended: its state never changes again, and until then it can be cancelled. */
export function hasEnded({ state }: Pick<JobRecord, 'state'>): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled';
}

// ── how a job finds its process ────────────────────────────────────────────────────────────────────────────────────
// A job that needs work has a time at which it is due. Processes search for due jobs, and one of them claims it by compare-and-swap:
//
//   due ──claim──► held (a lease; due again in 20 s, which each change moves on) ──given back──► due at its time │ not due any more
//    ▲               │
//    └── unchanged for 60 s: its process is dead, and one more lease ended without progress
//
// No two clocks are compared. A process that finds a lease measures, by its own steady clock, for how long it does not change.

/** After this many leases or attempts in a row without progress, the job fails. */
export const WITHOUT_PROGRESS_MAX = 3;
/** A held job is due again after this time, because a late renewal shows that its process may be dead. */
const HELD_MS = 20_000;
/** A lease that has not changed for this long is over. This allows for what its process may still be doing. */
export const WATCH_MS = 60_000;
/** The longest time for which work is put off. A time further ahead was stored by a fast clock, and counts as due. */
export const DUE_AHEAD_MAX_MS = 300_000;

/** The lease and its next due time, as claimed or renewed. */
export function heldBy(worker: string, nowMs: number): { readonly lease: { readonly worker: string }; readonly dueAtMs: number } {
  return { lease: { worker }, dueAtMs: nowMs + HELD_MS };
}

/** Whether a process may claim the job now, by its clock. */
export function isDue({ dueAtMs }: Pick<JobRecord, 'dueAtMs'>, nowMs: number): boolean {
  return dueAtMs !== undefined && (dueAtMs <= nowMs || dueAtMs > nowMs + DUE_AHEAD_MAX_MS);
}

/** What identifies one state of a lease: it changes with each renewal. */
export function leaseName({ lease, dueAtMs = 0 }: JobRecord): string | undefined {
  return lease && `${lease.worker} ${dueAtMs}`;
}

/** Whether a job can be claimed. `taken`: it can, with this number of leases without progress. */
export type Claim =
  | { readonly kind: 'taken'; readonly fruitless: number }
  /** It is not due, because another process was faster, or there is nothing to do. */
  | { readonly kind: 'early' }
  | { readonly kind: 'leased' }
  /** Too many leases in a row ended without progress: the job must fail. */
  | { readonly kind: 'poisonous' };

/** Decides whether the job can be claimed. `isOver`: its lease has not changed for WATCH_MS. A dead process's lease counts as one without progress, which bounds work that kills its process; a lease that was given back does not count. */
export function claimOf(job: JobRecord, nowMs: number, isOver: boolean): Claim {
  const { lease, fruitless = 0 } = job;
  if (!isDue(job, nowMs)) return { kind: 'early' };
  if (lease !== undefined && !isOver) return { kind: 'leased' };
  const leases = fruitless + (lease === undefined ? 0 : 1);
  return leases >= WITHOUT_PROGRESS_MAX ? { kind: 'poisonous' } : { kind: 'taken', fruitless: leases };
}

/** The job without its lease and its due time: nothing happens until someone makes it due again. */
export function asleep(job: JobRecord): JobRecord {
  return omit(job, 'lease', 'dueAtMs');
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** How long work waits after a fault of S3 or the index, which has just failed and which live events need first. */
export const FAULT_WAIT_MS = 15_000;
/** How long it waits after an hour without an answer: an outage of hours costs a few hundred requests, and its end is noticed within five minutes. */
const LONG_WAIT_MS = 300_000;

/** How long to wait before trying again what has been refused since `sinceMs`: 15 s in the first minute, then a minute, and after an hour five. */
export function waitMs(sinceMs: number, nowMs: number): number {
  const refusedMs = nowMs - sinceMs;
  if (refusedMs < MINUTE_MS) return FAULT_WAIT_MS;
  return refusedMs < HOUR_MS ? MINUTE_MS : LONG_WAIT_MS;
}

// ── what a job covers (rule 8): what was reported, and happened, before it began ───────────────────────────────────────
// Clocks of two workers may differ, so they do not decide whether a report or the beginning of a job came first. Instead, the
// bucket's record counts beginnings. A report states the latest beginning that its worker has read *after* noticing the loss; a job
// covers the report only if its own beginning is later. So no job covers a loss that was noticed after the job began.
//
// A gap may also stand for changes after its report: handed-over records are reported ahead of time, and AWS takes minutes to apply a
// changed connection. Their times are those of workers and of SQS, while a listing's is S3's. So a job covers what happened before it
// began by S3's clock *and* by its worker's. If one of these is wrong, a gap is closed later than it could be.

type Counted = Pick<BucketRecord, 'lastBeginOrder' | 'createdAtMs'>;

/** The place of the bucket's latest beginning of a job. */
export function lastBeginOf({ lastBeginOrder, createdAtMs }: Counted): number {
  return lastBeginOrder ?? createdAtMs;
}

/**
 * The place of a job that begins now, after all others of the bucket. It is at least the present time, so that it is also later than
 * those of the bucket's earlier lives.
 */
export function nextBeginOf(bucket: Counted, nowMs: number): number {
  return Math.max(lastBeginOf(bucket) + 1, nowMs);
}

/** The moment before which a job sees every change. `observedAtMs`: its first page's D. `sentMs`: when that page was requested, by the worker's clock. */
export function coversBefore({ observedAtMs, sentMs }: { readonly observedAtMs: number; readonly sentMs: number }): number {
  return Math.min(observedAtMs, sentMs);
}
