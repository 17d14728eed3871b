/** Re-index jobs and drift reports: starting, following, pausing, resuming and cancelling them, and deciding about the deletions that they held back. */
import { z } from 'zod';
import { jobModes } from '../../records/job.ts';
import { ageOfText, percentText } from '../../base/texts.ts';
import { columnsOf, type RowCommand } from './command.ts';
import { AWS_REFUSALS, bodyOf, bucketName, id, keyPrefix, must, oneOf, pageOf, yesNo, paging } from './fields.ts';
import { job, type Job } from './job.ts';
import { jobAdvice, jobFields, stateText } from './job-texts.ts';
import type { Row, RowKey } from './row.ts';

const flag = yesNo.default(false);

const reindexBody = bodyOf({
  prefix: keyPrefix.default('').describe('Only keys that begin with this.'),
  mode: oneOf(jobModes).default('apply').describe('`apply` writes the differences, `report` only counts them.'),
  fill: flag.describe(
    "Also write documents that lack a field that listings have, or the bucket's enrichment. Enrichment takes one HEAD per such document; with tags, a HEAD and a tags request for every object.",
  ),
  now: flag.describe('Do not wait for late events. Such a job closes no gap.'),
  repair: flag.describe("First recreate the bucket's notification in AWS. Only for the source notification."),
}).prefault({});
export type ReindexRequest = z.output<typeof reindexBody> & { readonly bucket: string };

/** What a caller asks of a job. */
const changeBody = z
  .union(
    [
      z.strictObject({
        state: z
          .enum(['paused', 'running', 'cancelled'])
          .describe(
            'Pauses a queued or running job: it stops after the current page, and continues from there when resumed (`running`). Or cancels a job that has not ended.',
          ),
      }),
      z.strictObject({
        deletions: z
          .enum(['allowed', 'declined'])
          .describe(
            "What happens to the deletions that the job held back. `allowed`: a new job, returned here, may make that many. `declined`: the documents stay, Tally cancels any job that was allowed to delete them, and the bucket's status is `differs` until another job finds them again.",
          ),
      }),
    ],
    must('must be {"state": "paused"}, "running" or "cancelled"; or {"deletions": "allowed"} or "declined"'),
  )
  .describe('What to do with the job.');
export type JobChange = z.output<typeof changeBody>;

const jobColumns = columnsOf<Job>({
  ID: 'id',
  STATE: stateText,
  DONE: (shown) => percentText(shown.progress),
  MODE: 'mode',
  AGE: (shown, nowMs) => ageOfText(shown.created_at, nowMs),
  BUCKET: 'bucket',
  PREFIX: ({ prefix }) => (prefix === '' ? undefined : prefix),
});

const params = z.object({ id: id.describe('The ID of the job.') });
const JOB = { params: { id: 'job-0mk3x1a2b-0123456789ab' } };

/** A command that changes a job, and then shows it. */
function act(word: string, fixed: JobChange, summary: string, description = ''): RowCommand {
  const examples = [`tally jobs ${word} ${JOB.params.id}`] as const;
  return { words: `jobs ${word} <id>`, summary, description, fixed, columns: jobFields, examples };
}

export const jobRows = {
  'POST /v1/buckets/{bucket}/reindex': {
    operation: 'startReindex',
    summary: 'Starts a re-index or a drift report of the bucket.',
    description: 'Searches keep working, and Tally never writes to the bucket. Only one job with the mode apply runs per bucket.',
    scope: 'operate',
    params: z.object({ bucket: bucketName }),
    body: reindexBody,
    answer: job,
    status: 202,
    errors: [
      'bucket.not-connected',
      'job.conflict',
      'job.limit',
      'job.repair-refused',
      'state.conflict',
      'audit.unavailable',
      ...AWS_REFUSALS,
      'connect.overlap',
      'connect.blocked',
      'connect.plan-needed',
      'connect.paused',
      'connect.changed-meanwhile',
      'connect.busy',
    ],
    example: { params: { bucket: 'photos' }, body: { prefix: '2026/', mode: 'report' } },
  },
  'GET /v1/jobs': {
    operation: 'listJobs',
    summary: 'Lists re-index jobs, newest first.',
    description: 'Unfinished jobs come before all others. Lists omit examples.',
    scope: 'monitor',
    query: z.strictObject({
      bucket: bucketName.exactOptional().describe('Only jobs of this bucket.'),
      ...paging,
    }),
    answer: pageOf(job),
    example: { query: { bucket: 'photos', limit: 10 } },
    cli: {
      words: 'jobs [id]',
      summary: 'Lists re-index jobs, newest first, or shows one job.',
      columns: jobColumns,
      none: 'There are no jobs.',
      examples: ['tally jobs', 'tally jobs --bucket photos'],
    },
  },
  'GET /v1/jobs/{id}': {
    operation: 'getJob',
    summary: 'Shows one re-index job.',
    scope: 'monitor',
    params,
    answer: job,
    errors: ['job.not-found'],
    example: JOB,
    cli: { words: 'jobs [id]', columns: jobFields, hints: jobAdvice, examples: [`tally jobs ${JOB.params.id}`] },
  },
  'PATCH /v1/jobs/{id}': {
    operation: 'changeJob',
    summary: 'Pauses, resumes or cancels a job, or decides about the deletions that it held back.',
    description: 'Whatever the job has written stays.',
    scope: 'operate',
    params,
    body: changeBody,
    answer: job,
    errors: [
      'job.not-found',
      'job.not-pausable',
      'job.not-resumable',
      'job.not-cancellable',
      'job.nothing-waits',
      'job.limit',
      'bucket.not-connected',
      'job.conflict',
      'state.conflict',
      'audit.unavailable',
    ],
    example: { ...JOB, body: { state: 'paused' } },
    cli: [
      act('cancel', { state: 'cancelled' }, 'Cancels a job.', 'Whatever it has written stays.'),
      act('pause', { state: 'paused' }, 'Pauses a job.', 'It stops after the current page, and continues from there when resumed.'),
      act('resume', { state: 'running' }, 'Resumes a paused job.'),
      act(
        'allow',
        { deletions: 'allowed' },
        'Allows the deletions that a job held back.',
        'This starts a new job that deletes that many documents and no more. Look at the bucket first.',
      ),
      act(
        'decline',
        { deletions: 'declined' },
        'Declines the deletions that a job held back.',
        'The documents stay, and Tally cancels any job that was allowed to delete them. The next job that finds them asks again.',
      ),
    ],
  },
} as const satisfies Record<RowKey, Row>;
export type JobsRequest = z.output<(typeof jobRows)['GET /v1/jobs']['query']>;
