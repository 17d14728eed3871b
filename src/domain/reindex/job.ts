import { z } from 'zod';
import { faults, type FaultCode } from '../fault.ts';
import { countsSchema, examplesSchema } from './counts.ts';

/**
 * Re-index jobs as stored.
 *
 *   queued ──► running ──► done │ failed
 *      ▲          │ ▲
 *      │          ▼ │ (resume; the brake released)
 *      └─resume─ paused          cancelled: from queued, running and paused
 */

export const jobStates = ['queued', 'running', 'paused', 'done', 'failed', 'cancelled'] as const;
export type JobState = (typeof jobStates)[number];

export const jobModes = ['apply', 'report'] as const;
export type JobMode = (typeof jobModes)[number];

/** What a running job does at this moment. */
export const jobPhases = ['waiting', 'comparing'] as const;

export const pauseReasons = ['requested', 'brake'] as const;

export const jobFaultSchema = z.object({
  code: z.custom<FaultCode>((code) => typeof code === 'string' && code in faults),
  reason: z.string(),
  /** The range it happened in. */
  range: z.string().exactOptional(),
});

export type JobFault = z.infer<typeof jobFaultSchema>;

export const jobSchema = z.object({
  id: z.string(),
  bucket: z.string(),
  prefix: z.string(),
  mode: z.enum(jobModes),
  /** Who asked: a caller, `gap` or `schedule`. */
  requestedBy: z.string(),
  state: z.enum(jobStates),
  createdAtMs: z.number(),
  startedAtMs: z.number().optional(),
  finishedAtMs: z.number().optional(),
  /** `--fill`: documents that lack a field that LIST gives are written too. */
  fill: z.boolean().optional(),
  /** `--now`: no floor and no wait; such a job certifies nothing and closes no gap. */
  now: z.boolean().optional(),
  /** The gaps that this job closes when it is done. */
  gapIds: z.array(z.string()).optional(),
  /** `waiting`: for late events, until waitUntilMs (rule 8). */
  phase: z.enum(jobPhases).optional(),
  waitUntilMs: z.number().optional(),
  /**
   * Rule 8: the moment (S3's clock) at which the floor was stored; changes made before it are covered. Absent for
   * reports and `--now`.
   */
  coversBeforeMs: z.number().optional(),
  pausedBecause: z.enum(pauseReasons).optional(),
  /** Tombstones that the job may still reserve, and has reserved; `limit` absent: no limit. */
  brake: z.object({ limit: z.number().optional(), reserved: z.number(), waiting: z.number() }).optional(),
  /** Live documents under the prefix when it began: what progress is measured against. */
  documentsAtStart: z.number().optional(),
  /** Ranges cut so far: records `range:<job>:0` … `range:<job>:<n−1>`. */
  rangesCut: z.number().optional(),
  /** How many of them were done when the job ended. */
  rangesDone: z.number().optional(),
  /** When the task that starts it was last sent, and how often again. */
  taskAtMs: z.number().optional(),
  resends: z.number().optional(),
  /** LIST requests made before the first range began. */
  listRequestsAtStart: z.number().optional(),
  /** Where the first ranges end, the last one excepted: what their records are made of. Not part of what is shown. */
  cuts: z.array(z.string()).optional(),
  /** When comparing began, and how long it has been paused since. */
  comparingAtMs: z.number().optional(),
  pausedAtMs: z.number().optional(),
  pausedMs: z.number().optional(),
  /** `--allow-deletes`: tombstones allowed whatever the brake says. */
  allowDeletes: z.number().optional(),
  /** Sums over all ranges; stored when the job ends, else made up on reading. Its examples have a record of their own. */
  counts: countsSchema.optional(),
  error: jobFaultSchema.optional(),
});
export type JobRecord = z.infer<typeof jobSchema>;

/** Whether the job holds its bucket's one place for an apply job (reports and paused jobs do not). */
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

/** The examples of a job that has ended: apart from it, since jobs are listed often and examples are looked at once. */
export const jobExamplesSchema = z.object({ jobId: z.string(), examples: examplesSchema });

/** Who works on a range, and until when nobody else may. */
export const leaseSchema = z.object({ worker: z.string(), untilMs: z.number() });

/** A part of a job's keys: (from, to], compared up to the cursor. */
export const rangeSchema = z.object({
  jobId: z.string(),
  number: z.number(),
  /** Exclusive; empty: from the beginning. */
  from: z.string(),
  /** Inclusive; absent: to the end. */
  to: z.string().optional(),
  /** Keys up to this one, inclusive, are compared and their effects durable. */
  cursor: z.string(),
  done: z.boolean(),
  counts: countsSchema,
  examples: examplesSchema.optional(),
  lease: leaseSchema.optional(),
  /** Leases in a row that ended without progress; three fail the job. */
  fruitless: z.number(),
  error: jobFaultSchema.optional(),
  /** Turns that were stored so far. A task names its turn, so that what is left of an earlier one is known to be stale. */
  turn: z.number(),
  /** When its task was last sent, and how often again since the last turn. */
  taskAtMs: z.number(),
  resends: z.number(),
  /** What was split off last: their records are made from this where they are not there yet. */
  splits: z.array(z.object({ number: z.number(), from: z.string(), to: z.string().optional() })).optional(),
});
export type RangeRecord = z.infer<typeof rangeSchema>;
