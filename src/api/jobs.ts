/** Re-index jobs and drift reports: starting, following, pausing, resuming and cancelling them. */
import { z } from 'zod';
import {
  noCounts,
  type DifferenceExample,
  type DifferenceExamples,
  type ExampleKind as StoredExampleKind,
  shownCounts,
  type ShownCounts,
} from '../domain/reindex/counts.ts';
import { jobModes, jobPhases, jobStates, pauseReasons } from '../domain/reindex/job.ts';
import type { JobView } from '../domain/reindex/job-view.ts';
import { bucketName, count, cursor, id, keyPrefix, limit, must, pageOf, time, timeOf, timeOfMaybe } from './fields.ts';
import type { Row, RowKey } from './row.ts';

const jobFault = z.object({
  code: z.string().describe('The fault code.'),
  reason: z.string().describe('What happened.'),
  range: z.string().optional().describe('The number of the range in which it happened.'),
});

const counts = z
  .object({
    listed: count.describe('Objects that the listing named.'),
    scanned: count.describe('Live documents that the scan of the index named.'),
    equal: count.describe('Objects whose document agrees with the bucket, including those that lack optional fields.'),
    lacking_optional_fields: count.describe(
      'Those of the equal ones whose document lacks a field that the listing gives. This is not drift.',
    ),
    lacking_enrichment: count.describe(
      'Those of the equal ones whose document lacks user metadata or tags, which `enrich` of the bucket asks for. This is not drift.',
    ),
    missing: count.describe('Objects that the index did not have.'),
    stale: count.describe('Objects whose document differed from the bucket.'),
    phantom: count.describe('Live documents whose object was not in the bucket.'),
    in_flight: count.describe('Objects that changed while they were compared. This is not drift.'),
    written: count.describe('Documents written, not counting tombstones.'),
    tombstones: count.describe('Documents deleted.'),
    held: count.describe('Deletions that the limit held back.'),
    refused: count.describe('Documents that the index refused because of an error in the document itself. `examples` names them.'),
    bytes_listed: z.number().min(0).describe('The sizes of the objects listed, added up.'),
    list_requests: count.describe('LIST requests sent to S3.'),
    head_requests: count.describe('HEAD requests sent to S3.'),
  })
  .meta({
    id: 'JobCounts',
    description:
      'What the job found and did. listed = equal + missing + stale + in_flight. The counts lack at most what a worker wrote in the five seconds before it was killed, or before the job was cancelled: such keys are counted as equal when they are compared again.',
  });
export type JobCounts = z.infer<typeof counts>;

export const differenceKinds = ['missing', 'stale', 'phantom', 'lacking_optional_fields', 'in_flight'] as const;
export type DifferenceKind = (typeof differenceKinds)[number];

/** What a job keeps examples of. */
export const exampleKinds = [...differenceKinds, 'lacking_enrichment', 'refused'] as const;
export type ExampleKind = (typeof exampleKinds)[number];

const example = z.object({
  key: z.string(),
  fields: z.array(z.string()).readonly().optional().describe('Which fields differ or are lacking.'),
  not_before: time
    .optional()
    .describe('Of a report: both sides agreed before this time, as far as their own times tell. So this is how old the difference can be.'),
  reason: z.string().optional().describe('Why the index refused the document.'),
});
const examples = z.partialRecord(z.enum(exampleKinds), z.array(example).readonly());

export const job = z
  .object({
    id: z.string(),
    bucket: z.string(),
    prefix: z.string().describe('Only keys with this prefix are compared; empty: all keys.'),
    mode: z.enum(jobModes).describe('`apply` writes the differences, `report` only counts them.'),
    requested_by: z.string().describe('Who requested it: a caller, `gap` or `schedule`.'),
    state: z.enum(jobStates),
    created_at: time,
    started_at: time.optional(),
    finished_at: time.optional(),
    fill: z
      .boolean()
      .optional()
      .describe('Documents that lack a field that a listing gives, or the enrichment of the bucket, are written too.'),
    now: z.boolean().optional().describe('The job did not wait for late events; it closes no gap.'),
    gap_ids: z.array(z.string()).readonly().optional().describe('The gaps that it closes when it is done.'),
    phase: z.enum(jobPhases).optional().describe('What a running job does: it waits for late events, or it compares.'),
    waits_until: time.optional().describe('When the wait for late events ends.'),
    covers_before: time.optional().describe('Changes made before this time are covered once the job is done.'),
    paused_because: z.enum(pauseReasons).optional(),
    paused_ms: z.number().optional().describe('How long it has been paused in all since comparing began.'),
    deletions: z
      .object({
        limit: count.optional().describe('How many documents it may delete; absent: there is no limit.'),
        reserved: count.describe('How many of them it has reserved.'),
        waiting: count.describe('How many deletions wait in all, of a job that the deletion limit has paused.'),
      })
      .optional()
      .describe('How many documents the job may delete, and how many it has.'),
    allow_deletes: count.optional().describe('How many deletions the request allowed whatever the deletion limit says.'),
    comparing_at: time.optional().describe('When comparing began.'),
    counts: counts.optional(),
    examples: examples
      .optional()
      .describe('The first differences of each kind, and the first refused documents, at most 100 each. Lists leave them out.'),
    error: jobFault.optional().describe('Why the job failed.'),
    last_fault: jobFault.optional().describe('The latest fault of one of its ranges, which is tried again.'),
    progress: z.number().min(0).max(1).optional().describe('0 to 1; absent while it is not known.'),
    objects_per_s: z.number().optional().describe('Objects listed per second of comparing, without pauses.'),
    ranges: z
      .object({
        cut: count.describe('Ranges in all.'),
        done: count.describe('Ranges done.'),
        leased: count.describe('Ranges that workers compare now.'),
      })
      .describe('The parts that the keys were cut into.'),
    cursor: z.string().optional().describe('All keys up to this one are compared.'),
    cost_usd: z.number().optional().describe('What S3 charges for the requests of the job so far: an estimate.'),
  })
  .meta({ id: 'Job', description: 'A re-index job.' });
export type Job = z.infer<typeof job>;

/** The largest limit: more than any bucket holds, and far below the largest exact integer. */
const DELETES_MAX = 1_000_000_000_000;
const deletionsMax = z.int(must('must be a whole number')).min(0, 'must be at least 0').max(DELETES_MAX, `must be at most ${DELETES_MAX}`);
const flag = z.boolean(must('must be true or false')).default(false);

const reindexBody = z
  .strictObject(
    {
      prefix: keyPrefix.default('').describe('Only keys that begin with this.'),
      mode: z
        .enum(jobModes, must(`must be one of ${jobModes.join(', ')}`))
        .default('apply')
        .describe('`apply` writes the differences, `report` only counts them.'),
      fill: flag.describe(
        'Write documents that lack a field that a listing gives, or the enrichment of the bucket, too. Enrichment takes a HEAD for each of them; with tags, a HEAD and a request for the tags of every object.',
      ),
      now: flag.describe('Do not wait for late events. Such a job closes no gap.'),
      repair: flag.describe('Make the notification of the bucket in AWS again first. Only for the source notification.'),
      allow_deletes: deletionsMax
        .exactOptional()
        .describe('Let the job delete up to this many documents in all, even where its deletion limit would stop it earlier.'),
    },
    must('must be an object'),
  )
  .prefault({});
export type ReindexRequest = z.output<typeof reindexBody> & { readonly bucket: string };

/** What a caller wants of a job. */
const changeBody = z
  .union(
    [
      z.strictObject({
        state: z.literal('running').describe('Resumes a paused job.'),
        allow_deletes: deletionsMax
          .exactOptional()
          .describe(
            'Let the job delete up to this many documents in all, those included that it has deleted already. A job that its deletion limit holds needs it.',
          ),
      }),
      z.strictObject({
        state: z
          .enum(['paused', 'cancelled'])
          .describe(
            'Pauses a job that is queued or running: it stops after the page that it is comparing, and continues from there. Or cancels a job that has not ended.',
          ),
      }),
    ],
    must('must be {"state": "paused"}, {"state": "cancelled"} or {"state": "running"}, which may have allow_deletes'),
  )
  .describe('The state that is wanted.');
export type JobChange = z.output<typeof changeBody>;

const params = z.object({ id: id.describe('The id of the job.') });
const JOB = { params: { id: 'job-0mk3x1a2b-0123456789ab' } };

export const jobRows = {
  'POST /v1/buckets/{bucket}/reindex': {
    operation: 'startReindex',
    summary: 'Starts a re-index or a drift report of the bucket.',
    description: 'Searches work throughout, and the bucket is never written to. One job with the mode apply runs per bucket.',
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
      'connect.denied',
      'connect.overlap',
      'connect.blocked',
      'connect.plan-needed',
      'connect.paused',
      'connect.changed-meanwhile',
      'connect.busy',
      'connect.unavailable',
      'connect.credentials',
      'connect.quota',
    ],
    example: { params: { bucket: 'photos' }, body: { prefix: '2026/', mode: 'report' } },
  },
  'GET /v1/jobs': {
    operation: 'listJobs',
    summary: 'Lists re-index jobs, the oldest first.',
    description: 'Examples are left out.',
    scope: 'monitor',
    query: z.strictObject({ limit, cursor: cursor.exactOptional() }),
    answer: pageOf(job),
    status: 200,
    errors: [],
    example: { query: { limit: 10 } },
  },
  'GET /v1/jobs/{id}': {
    operation: 'getJob',
    summary: 'Shows one re-index job.',
    scope: 'monitor',
    params,
    answer: job,
    status: 200,
    errors: ['job.not-found'],
    example: JOB,
  },
  'PATCH /v1/jobs/{id}': {
    operation: 'changeJob',
    summary: 'Pauses, resumes or cancels a job.',
    description: 'What it has written stays.',
    scope: 'operate',
    params,
    body: changeBody,
    answer: job,
    status: 200,
    errors: [
      'job.not-found',
      'job.not-pausable',
      'job.not-resumable',
      'job.not-cancellable',
      'job.conflict',
      'state.conflict',
      'audit.unavailable',
    ],
    example: { ...JOB, body: { state: 'paused' } },
  },
} as const satisfies Record<RowKey, Row>;
export type JobsRequest = z.output<(typeof jobRows)['GET /v1/jobs']['query']>;

/** Converts a job to its form in the API. */
export function jobView(shown: JobView): Job {
  const { deletions } = shown;
  return {
    id: shown.id,
    bucket: shown.bucket,
    prefix: shown.prefix,
    mode: shown.mode,
    requested_by: shown.requestedBy,
    state: shown.state,
    created_at: timeOf(shown.createdAtMs),
    started_at: timeOfMaybe(shown.startedAtMs),
    finished_at: timeOfMaybe(shown.finishedAtMs),
    fill: shown.fill,
    now: shown.now,
    gap_ids: shown.gapIds,
    phase: shown.phase,
    waits_until: timeOfMaybe(shown.waitUntilMs),
    covers_before: timeOfMaybe(shown.coversBeforeMs),
    paused_because: shown.pausedBecause,
    paused_ms: shown.pausedMs,
    deletions: deletions && { limit: deletions.limit, reserved: deletions.reserved, waiting: deletions.waiting },
    allow_deletes: shown.allowDeletes,
    comparing_at: timeOfMaybe(shown.comparingAtMs),
    counts: shown.counts && countsView(shown.counts),
    examples: shown.examples && examplesView(shown.examples),
    error: shown.error,
    last_fault: shown.lastFault,
    progress: shown.progress,
    objects_per_s: shown.objectsPerSecond,
    ranges: shown.ranges,
    cursor: shown.cursor,
    cost_usd: shown.costUsd,
  };
}

function countsView(stored: ShownCounts): JobCounts {
  return {
    listed: stored.listed,
    scanned: stored.scanned,
    equal: stored.equal + stored.incomplete,
    lacking_optional_fields: stored.incomplete,
    lacking_enrichment: stored.unenriched,
    missing: stored.missing,
    stale: stored.stale,
    phantom: stored.phantom,
    in_flight: stored.inFlight,
    written: stored.written,
    tombstones: stored.tombstones,
    held: stored.held,
    refused: stored.refused,
    bytes_listed: stored.bytesListed,
    list_requests: stored.listRequests,
    head_requests: stored.headRequests,
  };
}

/** The counts of a job that has not compared anything. */
export const zeroCounts: JobCounts = countsView(shownCounts(noCounts));

function examplesView(stored: DifferenceExamples): Job['examples'] {
  const shown: { [Kind in ExampleKind]?: readonly z.infer<typeof example>[] } = {};
  for (const kind of exampleKinds) {
    const alike = stored[storedNames[kind]];
    if (alike !== undefined) shown[kind] = alike.map(exampleView);
  }
  return shown;
}

const storedNames = {
  missing: 'missing',
  stale: 'stale',
  phantom: 'phantom',
  lacking_optional_fields: 'incomplete',
  in_flight: 'inFlight',
  lacking_enrichment: 'unenriched',
  refused: 'refused',
} as const satisfies Record<ExampleKind, StoredExampleKind>;

function exampleView({ notBeforeMs, ...same }: DifferenceExample): z.infer<typeof example> {
  return { ...same, ...(notBeforeMs !== undefined && { not_before: timeOf(notBeforeMs) }) };
}
