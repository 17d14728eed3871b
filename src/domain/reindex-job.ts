import { z } from 'zod';

/** Re-index jobs as stored. The re-index issue makes them run; here they are queued, shown and cancelled. */

export const jobStates = ['queued', 'running', 'paused', 'done', 'failed', 'cancelled'] as const;

export const jobModes = ['apply', 'report'] as const;
export type JobMode = (typeof jobModes)[number];

export const jobSchema = z.object({
  id: z.string(),
  bucket: z.string(),
  prefix: z.string(),
  mode: z.enum(jobModes),
  requestedBy: z.string(),
  state: z.enum(jobStates),
  createdAtMs: z.number(),
  startedAtMs: z.number().optional(),
  finishedAtMs: z.number().optional(),
});
export type JobRecord = z.infer<typeof jobSchema>;

/** Whether the job holds its bucket's one place for an apply job (reports and paused jobs do not). */
export function occupiesBucket(job: JobRecord): boolean {
  return job.mode === 'apply' && (job.state === 'queued' || job.state === 'running');
}

/** Whether the job can still be cancelled. */
export function isCancellable(job: JobRecord): boolean {
  return job.state === 'queued' || job.state === 'running' || job.state === 'paused';
}
