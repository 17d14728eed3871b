/**
 * Re-index jobs as stored.
 *
 *   queued ──► running ──► done │ failed
 *      ▲          │ ▲
 *      │          ▼ │
 *      └─resume─ paused          cancelled: from queued, running and paused
 */
import { z } from 'zod';
import { faults, type FaultCode } from '../base/fault.ts';
import { countsSchema, examplesSchema } from './counts.ts';
import type { BucketRecord } from './bucket.ts';

/** The holder of the job. Its name is another one for each claim. */
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
  /** The key after which it occurred; absent: before the job compared anything. */
  after: z.string().exactOptional(),
});

export type JobFault = z.infer<typeof jobFaultSchema>;

/** A part of a job's keys that is not compared yet: those after the cursor, up to `to`. */
const partSchema = z.object({
  /** Keys up to this one, inclusive, are compared and their writes are durable. */
  cursor: z.string(),
  /** Inclusive; absent: to the last key. */
  to: z.string().exactOptional(),
  /** Whether keys after the cursor were written. They are counted, and the scan may not show them yet. */
  readsFirst: z.boolean().exactOptional(),
  /** The fault that ended its last turn, how many turns in a row it ended without progress, since when, and when the next one begins. */
  fault: jobFaultSchema
    .extend({
      attempts: z.number(),
      sinceMs: z.number(),
      dueAtMs: z.number(),
      /** S3 refuses the HEAD of this key, which is the only one of the part. */
      denied: z.string().exactOptional(),
    })
    .exactOptional(),
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
  /** `--fill`: documents that lack a field of the listing, or the enrichment of their bucket, are written too. */
  fill: z.boolean().optional(),
  /** The tags of all objects are read again, where the bucket's documents have tags: only so a change of tags is found. */
  tags: z.boolean().optional(),
  /** `--now`: the job stores no floor and does not wait, so it proves nothing and closes no gap. */
  now: z.boolean().optional(),
  /** Until comparing begins it waits for late events, until this time (rule 8). */
  waitUntilMs: z.number().optional(),
  /**
   * Rule 8: the time at which the floor was stored, by S3's clock or that of the worker, whichever is earlier. Changes before
   * it are covered. Absent for reports and `--now`.
   */
  coversBeforeMs: z.number().optional(),
  /** Its place among the beginnings of jobs of its bucket: gaps that were last reported after an earlier one are covered. Stored with coversBeforeMs. */
  beginOrder: z.number().optional(),
  /** `limit`: tombstones that the job may write in all (absent: no limit). `reserved`: those taken so far. */
  deletions: z.object({ limit: z.number().optional(), reserved: z.number() }).optional(),
  /** Number of live documents under the prefix when the job began; progress is measured against it. */
  documentsAtStart: z.number().optional(),
  /** What is left to compare, in key order. Stored together with counts and examples: at most every five seconds, and when the lease is given back. */
  parts: z.array(partSchema).exactOptional(),
  /** When a process continues it; absent while it is paused and once it has ended. */
  dueAtMs: z.number().optional(),
  /** The process that works on it. */
  lease: leaseSchema.optional(),
  /** Number of leases in a row that ended without progress. */
  fruitless: z.number().optional(),
  /** When comparing began, when the current pause began, and the total length of earlier pauses since comparing began. */
  comparingAtMs: z.number().optional(),
  pausedAtMs: z.number().optional(),
  pausedMs: z.number().optional(),
  /** How many of the deletions that waited a person has allowed to this job. */
  allowDeletes: z.number().optional(),
  /** What is compared and done so far, the requests before comparing included. */
  counts: countsSchema.optional(),
  examples: examplesSchema.optional(),
  /** Why the job could not begin yet, and since when: it begins once the fault is over. */
  waits: jobFaultSchema.extend({ sinceMs: z.number() }).optional(),
  error: jobFaultSchema.optional(),
});
export type JobRecord = z.infer<typeof jobSchema>;

/** Whether the job occupies its bucket, which only one job may do at a time: queued and running apply jobs do; reports and paused jobs do not. */
export function occupiesBucket(job: JobRecord): boolean {
  return job.mode === 'apply' && (job.state === 'queued' || job.state === 'running');
}

/** Whether the job can still be cancelled. */
export function isCancellable(job: Pick<JobRecord, 'state'>): boolean {
  return job.state === 'queued' || job.state === 'running' || job.state === 'paused';
}

/** Whether the job has ended: its state never changes again. */
export function hasEnded(job: Pick<JobRecord, 'state'>): boolean {
  return !isCancellable(job);
}

// ── how a job finds its process ────────────────────────────────────────────────────────────────────────────────────
// A job that has something to do has a time at which it is due. Processes search for what is due, and one of them claims it by
// compare-and-swap:
//
//   due ──claim──► held (a lease; due again in 20 s, which each change moves on) ──given back──► due at its time │ not due any more
//    ▲               │
//    └── unchanged for 60 s: its process is dead, and one more lease ended without progress
//
// No two clocks are compared. A process that finds a lease watches that it does not change, by the watcher's steady clock.

/** A record that processes claim. */
export interface Claimable {
  /** From when on a process may claim it; absent: nothing is to be done. The state index searches by it. */
  readonly dueAtMs?: number | undefined;
  readonly lease?: z.infer<typeof leaseSchema> | undefined;
  /** How many leases in a row ended without progress. */
  readonly fruitless?: number | undefined;
}

/** Three leases or attempts in a row without progress fail the job. */
export const WITHOUT_PROGRESS_MAX = 3;
/** A held job is due again after this time: a renewal that is late shows that its process may be dead. */
const HELD_MS = 20_000;
/** A lease that has not changed for this long is over. What its process does last may take a moment. */
export const WATCH_MS = 60_000;
/** The longest time for which work is put off. A time further ahead was stored by a clock that is fast, and counts as due. */
export const DUE_AHEAD_MAX_MS = 300_000;

/** The lease and its next time: as claimed, or as renewed. */
export function heldBy(worker: string, nowMs: number): { readonly lease: { readonly worker: string }; readonly dueAtMs: number } {
  return { lease: { worker }, dueAtMs: nowMs + HELD_MS };
}

/** Whether a process may claim the record now, by its clock. */
export function isDue({ dueAtMs }: Pick<Claimable, 'dueAtMs'>, nowMs: number): boolean {
  return dueAtMs !== undefined && (dueAtMs <= nowMs || dueAtMs > nowMs + DUE_AHEAD_MAX_MS);
}

/** What identifies one state of a lease: it changes with each renewal. */
export function leaseName({ lease, dueAtMs = 0 }: Claimable): string | undefined {
  return lease && `${lease.worker} ${dueAtMs}`;
}

/** Why a record cannot be claimed; `taken`: it can, with this number of leases without progress. */
export type Claim =
  | { readonly kind: 'taken'; readonly fruitless: number }
  /** It is not due, because another process was faster, or nothing is to be done. */
  | { readonly kind: 'early' }
  | { readonly kind: 'leased' }
  /** Too many leases in a row ended without progress: the job must fail. */
  | { readonly kind: 'poisonous' };

/** Decides whether the record can be claimed. `isOver`: its lease has not changed for WATCH_MS. The lease of a dead process counts here, so work that kills its process is bounded; a lease that was given back does not count. */
export function claimOf(record: Claimable, nowMs: number, isOver: boolean): Claim {
  const { lease, fruitless = 0 } = record;
  if (!isDue(record, nowMs)) return { kind: 'early' };
  if (lease !== undefined && !isOver) return { kind: 'leased' };
  const leases = fruitless + (lease === undefined ? 0 : 1);
  return leases >= WITHOUT_PROGRESS_MAX ? { kind: 'poisonous' } : { kind: 'taken', fruitless: leases };
}

/** The record without its lease and its time: nothing is to be done until someone makes it due again. */
export function asleep<Record extends Claimable>(record: Record): Omit<Record, 'lease' | 'dueAtMs'> {
  const { lease: _, dueAtMs: __, ...rest } = record;
  return rest;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** How long work waits after a fault of S3 or the index. It has just failed, and live events need it first. */
export const FAULT_WAIT_MS = 15_000;
/** After an hour without an answer: an outage of hours costs a few hundred requests, and its end is noticed within five minutes. */
const LONG_WAIT_MS = 300_000;

/** How long to wait before the next attempt at something that has been refused since then: 15 s within the first minute, then a minute, after an hour five. */
export function waitMs(sinceMs: number, nowMs: number): number {
  const refusedMs = nowMs - sinceMs;
  if (refusedMs < MINUTE_MS) return FAULT_WAIT_MS;
  return refusedMs < HOUR_MS ? MINUTE_MS : LONG_WAIT_MS;
}

// ── what a job covers (rule 8): what was reported before it began, and happened before it began ────────────────────────
// Which of two came first, a report or the beginning of a job, is no question of clocks: those of two workers may differ. The record
// of the bucket counts beginnings. A report states the latest one that its worker has read *after* it noticed the loss; a job covers
// it only if the job's own beginning is a later one. So a loss that was noticed after a job began is never covered by that job.
//
// A gap may also stand for changes that come after its report: records that are handed over are reported ahead of time, and AWS
// applies a changed connection for minutes. Their times are those of workers and of SQS, and a listing's is S3's: a job covers what
// happened before it began by the clock of S3 *and* by that of the worker which began it. Where one is wrong, a gap is closed later
// than it could be.

type Counted = Pick<BucketRecord, 'lastBeginOrder' | 'createdAtMs'>;

/** The place of the latest beginning of a job of the bucket among all of them. */
export function lastBeginOf({ lastBeginOrder, createdAtMs }: Counted): number {
  return lastBeginOrder ?? createdAtMs;
}

/**
 * The place of a job that begins now: after all others of the bucket. It is not a plain number, so that it is also later than those of
 * an earlier life of the bucket: deletions that wait for a person may outlive that.
 */
export function nextBeginOf(bucket: Counted, nowMs: number): number {
  return Math.max(lastBeginOf(bucket) + 1, nowMs);
}

/** The moment before which a job sees every change. `observedAtMs`: D of its first page. `sentMs`: when that was requested, by the worker's clock. */
export function coversBefore({ observedAtMs, sentMs }: { readonly observedAtMs: number; readonly sentMs: number }): number {
  return Math.min(observedAtMs, sentMs);
}
