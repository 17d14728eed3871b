/** A job as the API shows it. */
import { z } from 'zod';
import { countsSchema, examplesSchema, overdueSchema } from '../../records/comparison.ts';
import { jobModes, jobPhases, jobStates } from '../../records/job.ts';
import { count, time } from './fields.ts';

const jobFault = z.object({
  code: z.string().describe('The fault code.'),
  reason: z.string().describe('What happened.'),
  after: z.string().optional().describe('The key after which it happened; absent: before the job compared anything.'),
});

const counts = countsSchema
  .omit({ differed: true })
  .extend({ equal: count.describe('Objects whose document agrees with the bucket, including those that lack optional fields.') })
  .meta({
    id: 'JobCounts',
    description:
      'What the job found and did. listed = equal + missing + stale + in_flight. The counts may miss what a process wrote in the last five seconds before it was killed or the job was cancelled: such keys count as equal when they are compared again.',
  });
export type JobCounts = z.infer<typeof counts>;

export const job = z
  .object({
    id: z.string(),
    bucket: z.string(),
    prefix: z.string().describe('The job compares only keys with this prefix; empty: all keys.'),
    mode: z.enum(jobModes).describe('`apply` writes the differences, `report` only counts them.'),
    requested_by: z.string().describe('Who requested it: a caller, `gap` or `schedule`.'),
    state: z.enum(jobStates),
    created_at: time,
    started_at: time.optional(),
    finished_at: time.optional(),
    fill: z
      .boolean()
      .optional()
      .describe("The job also writes documents that lack a field that listings have, or the bucket's enrichment."),
    now: z.boolean().optional().describe('The job did not wait for late events, so it closes no gap.'),
    phase: z.enum(jobPhases).optional().describe('What a running job is doing: waiting for late events, or comparing.'),
    waits_until: time.optional().describe('When the wait for late events ends.'),
    covers_before: time.optional().describe('The job covers changes made before this time, once it is done.'),
    paused_ms: z.number().optional().describe('How long it has been paused in total since comparing began.'),
    waiting: z
      .object({
        deletions: count.describe('How many there are.'),
        declined_at: time.optional().describe('When a person declined them.'),
      })
      .optional()
      .describe('The deletions that it held back and that still wait for a person to allow or decline them. Absent: none.'),
    comparing_at: time.optional().describe('When comparing began.'),
    counts: counts.optional(),
    examples: examplesSchema
      .optional()
      .describe('The first differences of each kind and the first refused documents, at most 20 each. Lists omit them.'),
    overdue: overdueSchema.optional(),
    error: jobFault.optional().describe('Why the job failed.'),
    last_fault: jobFault.optional().describe('The latest fault of a part of it, which Tally retries.'),
    progress: z.number().min(0).max(1).optional().describe('0 to 1; absent while unknown.'),
    objects_per_s: z.number().optional().describe('Objects listed per second of comparing, without pauses.'),
    cost_usd: z.number().optional().describe("What S3 charges for the job's requests so far; an estimate."),
  })
  .meta({ id: 'Job', description: 'A re-index job.' });
export type Job = z.infer<typeof job>;
