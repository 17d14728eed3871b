import { z } from 'zod';
import { faults, type FaultCode } from '../base/fault.ts';
import { leaseSchema } from './claims.ts';
import { countsSchema, examplesSchema } from './counts.ts';

/**
 * Re-index jobs as stored.
 *
 *   queued ──► running ──► done │ failed
 *      ▲          │ ▲
 *      │          ▼ │
 *      └─resume─ paused          cancelled: from queued, running and paused
 */

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
