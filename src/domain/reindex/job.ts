import { z } from 'zod';
import { faults, type FaultCode } from '../fault.ts';
import { leaseSchema } from './claims.ts';
import { countsSchema, examplesSchema } from './counts.ts';
import { passedPagesSchema } from './passed-pages.ts';

/**
 * Re-index jobs as stored.
 *
 *   queued ──► running ──► done │ failed
 *      ▲          │ ▲
 *      │          ▼ │ (resume; the limit released)
 *      └─resume─ paused          cancelled: from queued, running and paused
 */

export const jobStates = ['queued', 'running', 'paused', 'done', 'failed', 'cancelled'] as const;
export type JobState = (typeof jobStates)[number];

export const jobModes = ['apply', 'report'] as const;
export type JobMode = (typeof jobModes)[number];

/** What a running job is doing: waiting for late events, or comparing. */
export const jobPhases = ['waiting', 'comparing'] as const;

export const pauseReasons = ['requested', 'deletion-limit'] as const;

export const jobFaultSchema = z.object({
  code: z.custom<FaultCode>((code) => typeof code === 'string' && code in faults),
  reason: z.string(),
  /** The range in which the fault occurred. */
  range: z.string().exactOptional(),
});

export type JobFault = z.infer<typeof jobFaultSchema>;

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
  /** The job is done although deletions are held back, instead of pausing then: Tally's jobs are, since no person waits for them. */
  holds: z.boolean().optional(),
  /** `--now`: the job stores no floor and does not wait, so it proves nothing and closes no gap. */
  now: z.boolean().optional(),
  /** The gaps that the job closes when it is done. */
  gapIds: z.array(z.string()).optional(),
  /** `waiting`: the job waits for late events until waitUntilMs (rule 8). */
  phase: z.enum(jobPhases).optional(),
  waitUntilMs: z.number().optional(),
  /**
   * Rule 8: the time at which the floor was stored, by S3's clock or that of the worker, whichever is earlier. Changes before
   * it are covered. Absent for reports and `--now`.
   */
  coversBeforeMs: z.number().optional(),
  /** Its place among the beginnings of jobs of its bucket: gaps that were last reported after an earlier one are covered. Stored with coversBeforeMs. */
  beginOrder: z.number().optional(),
  pausedBecause: z.enum(pauseReasons).optional(),
  /** `limit`: tombstones that the job may write in all (absent: no limit). `reserved`: those taken so far. `waiting`: all phantoms that it holds back, once everything is compared. */
  deletions: z.object({ limit: z.number().optional(), reserved: z.number(), waiting: z.number() }).optional(),
  /** Number of live documents under the prefix when the job began; progress is measured against it. */
  documentsAtStart: z.number().optional(),
  /** Number of ranges cut so far: records `range:<job>:0` … `range:<job>:<n−1>`. */
  rangesCut: z.number().optional(),
  /** Number of ranges that were done when the job ended. */
  rangesDone: z.number().optional(),
  /** When a worker takes its next step, or looks whether its ranges are in order; absent while it is paused and once it has ended. */
  dueAtMs: z.number().optional(),
  /** The worker that takes a step. */
  lease: leaseSchema.optional(),
  /** Number of consecutive steps that ended with a fault of the job itself, or with their process. */
  fruitless: z.number().optional(),
  /** Pages without keys that were passed at the beginning of the listing, before the first range begins. */
  passed: passedPagesSchema.optional(),
  /** Number of LIST requests before the first range began. */
  listRequestsAtStart: z.number().optional(),
  /** Where the first ranges end, except the last one. Their records are made from this. Not shown to users. */
  cuts: z.array(z.string()).optional(),
  /** When comparing began, when the current pause began, and the total length of earlier pauses since comparing began. */
  comparingAtMs: z.number().optional(),
  pausedAtMs: z.number().optional(),
  pausedMs: z.number().optional(),
  /** `--allow-deletes`: number of tombstones that are allowed in any case. */
  allowDeletes: z.number().optional(),
  /** Sums over all ranges. Stored when the job ends; before that they are computed when the job is read. Examples are stored in a separate record. */
  counts: countsSchema.optional(),
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

/** The examples of an ended job. They are stored separately, because jobs are listed often and examples are rarely read. */
export const jobExamplesSchema = z.object({ jobId: z.string(), examples: examplesSchema });

/** A part of a job's keys: (from, to], compared up to the cursor. */
export const rangeSchema = z.object({
  jobId: z.string(),
  number: z.number(),
  /** Exclusive; empty: from the first key. */
  from: z.string(),
  /** Inclusive; absent: to the last key. */
  to: z.string().optional(),
  /** Keys up to this one, inclusive, are compared and their writes are durable. */
  cursor: z.string(),
  /** Whether keys after the cursor were written. They are counted, and the scan may not show them yet. */
  readsFirst: z.boolean().optional(),
  /** Pages without keys that were passed after the cursor. */
  passed: passedPagesSchema.optional(),
  done: z.boolean(),
  /** Stored together with the cursor: at most every five seconds while a turn runs, and at its end. */
  counts: countsSchema,
  /** The cursor before the first deletion that the limit held back. */
  heldBack: z.string().optional(),
  /** Whether all of its keys are counted, because it is compared again for the deletions that were held back. */
  isCounted: z.boolean().optional(),
  examples: examplesSchema.optional(),
  /** When a worker compares more of it; absent once it is done, and while its job is paused. */
  dueAtMs: z.number().optional(),
  lease: leaseSchema.optional(),
  /** Number of consecutive leases that ended without progress. Three fail the job. */
  fruitless: z.number(),
  error: jobFaultSchema.optional(),
  /** Since when its turns have ended without progress because S3 or the index refuses. */
  waitingSinceMs: z.number().optional(),
  /** The parts that were split off last. Their range records are made from this if they do not exist yet. */
  splits: z.array(z.object({ number: z.number(), from: z.string(), to: z.string().optional() })).optional(),
});
export type RangeRecord = z.infer<typeof rangeSchema>;
