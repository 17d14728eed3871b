/** A bucket as the API and commands show it. */
import { z } from 'zod';
import { bucketSources, enrichModes, versioningStatuses, watchedStates } from '../../records/bucket.ts';
import { bucketActs, bucketSeverities, bucketStates } from '../../records/bucket-status.ts';
import { ageOfText } from '../../base/texts.ts';
import { columnsOf } from './command.ts';
import { count, time } from './fields.ts';

/** How far a bucket's index can be relied on. */
export const bucketStatus = z
  .object({
    state: z
      .enum(bucketStates)
      .describe(
        '`ok`: its events are known to arrive, all of it was compared, and no difference is known. Otherwise the worst of: `events_lost`, `paused` (its notification), `waiting` (S3 or the index does not answer for it), `deletions_held` (a person must decide), `differs` (a report found differences, or the index refuses documents), `events_unproven` (its events are not known to arrive), `never_compared`, `gap_open`, `overdue` (the last full comparison is older than two intervals), `degraded` and `unchecked` (its connection).',
      ),
    severity: z
      .enum(bucketSeverities)
      .describe('`bad`: the index differs, or will with the next change. `warning`: it may differ, or may soon.'),
    sentence: z.string().describe('The same in one sentence, without a full stop.'),
    since: time.optional().describe('Since when.'),
    act: z
      .object({
        kind: z.enum(bucketActs).describe('What a person can do about it.'),
        command: z.string().describe('The command that does it.'),
        job_id: z.string().optional().describe('The job that it is about.'),
      })
      .optional()
      .describe('Absent: there is nothing to do, or Tally does it by itself.'),
    differing: count.optional().describe('How many objects differ according to the sentence. Absent: none, or the number is unknown.'),
  })
  .describe("How far the bucket's index can be relied on.");

export const bucket = z
  .object({
    bucket: z.string().describe('The name.'),
    region: z.string().describe('The region, as S3 reports it.'),
    source: z.enum(bucketSources).describe('How its events reach the bucket queue.'),
    topic_arn: z.string().optional().describe('The SNS topic that its events come through.'),
    account: z.string().optional().describe('The account that must own the bucket. Absent: unknown, and not checked.'),
    versioning: z
      .object({ status: z.enum(versioningStatuses).describe('`unknown` until Tally has read it.') })
      .describe('The answer to GetBucketVersioning.'),
    enrich: z.enum(enrichModes).describe('What Tally reads about each object in addition to its events.'),
    status: bucketStatus,
    gaps: count.describe('How many of its gaps are open.'),
    created_at: time.describe('When it was connected.'),
    created_by: z.string().describe('Who connected it.'),
    checked_at: time.describe('When region and versioning were last read.'),
    last_event_at: time.optional().describe('When its last event arrived, to the minute.'),
    last_compared_at: time
      .optional()
      .describe('When the whole bucket was last compared: by a report, or by a re-index that held no deletions back. Absent: never.'),
    wiring: z
      .object({
        state: z
          .enum(watchedStates)
          .describe('`broken`: events are lost. `degraded`: something is missing or not secure. `unknown`: it could not be read.'),
        since: time.describe('Since when.'),
        checked_at: time.describe('When it was last checked.'),
        findings: z
          .array(z.object({ code: z.string(), what: z.string() }))
          .readonly()
          .describe('The first findings. `GET /v1/buckets/{bucket}/doctor` has all of them.'),
      })
      .optional()
      .describe('What the last hourly check found in AWS. Absent: not checked yet.'),
    lifecycle: z
      .object({
        checked_at: time.describe('When its lifecycle rules were read.'),
        rules: z.enum(['known', 'unknown']).describe('`unknown`: the permission to read them is missing.'),
        expiring: count.describe('How many active rules expire current objects.'),
      })
      .optional()
      .describe('Only for buckets whose source does not report expirations.'),
  })
  .meta({ id: 'Bucket', description: 'A connected bucket.' });
export type Bucket = z.infer<typeof bucket>;

/** A bucket as the caller may see it. */
export const shownBucket = bucket
  .pick({ bucket: true, status: true, gaps: true, last_event_at: true, last_compared_at: true })
  .extend(bucket.omit({ bucket: true, status: true, gaps: true, last_event_at: true, last_compared_at: true }).partial().shape)
  .meta({
    id: 'ShownBucket',
    description: "A connected bucket. Non-admins see only the bucket's status.",
  });
export type ShownBucket = z.infer<typeof shownBucket>;

export const unconnectedBucket = z
  .object({
    bucket: z.string(),
    count: count.describe('How many events have arrived.'),
    first_seen_at: time,
    last_seen_at: time,
  })
  .meta({ id: 'UnconnectedBucket', description: 'A bucket whose events arrive although it is not connected. They are not indexed.' });
export type UnconnectedBucket = z.infer<typeof unconnectedBucket>;

export const activity = z
  .object({
    jobs: count.describe('How many jobs have not ended yet.'),
    dead_letters: count
      .optional()
      .describe("Roughly how many messages the dead-letter queues hold, by SQS's last count. Absent: unknown to this process."),
  })
  .meta({ id: 'Activity', description: 'What is running and what is waiting, apart from the buckets themselves.' });
export type Activity = z.infer<typeof activity>;

/** One word if all is well, otherwise a sentence. */
function statusText({ status: { state, sentence } }: Pick<Bucket, 'status'>): string {
  return state === 'ok' ? 'ok' : sentence;
}

/** A bucket as commands show it. */
export const bucketFields = columnsOf<Bucket>({
  bucket: 'bucket',
  region: 'region',
  source: 'source',
  topic: 'topic_arn',
  versioning: ({ versioning }) => versioning.status,
  enrich: 'enrich',
  status: statusText,
});

/** Buckets as a list. */
export const bucketColumns = columnsOf<ShownBucket>({
  BUCKET: 'bucket',
  REGION: 'region',
  SOURCE: 'source',
  VERSIONS: ({ versioning }) => versioning?.status,
  ENRICH: 'enrich',
  'LAST EVENT': (of, nowMs) => ageOfText(of.last_event_at, nowMs),
  COMPARED: (of, nowMs) => ageOfText(of.last_compared_at, nowMs),
  STATUS: statusText,
});

export interface ListedBuckets {
  readonly items: readonly ShownBucket[];
  readonly activity?: Activity;
}

/** More at once don't help: the table has all. */
const ACTS_MAX = 8;

/** What to do about the buckets that aren't well. */
function actHints(items: readonly ShownBucket[]): readonly string[] {
  const commands = items.flatMap(({ status }) => (status.act === undefined ? [] : [`To do: ${status.act.command}`]));
  const left = commands.length - ACTS_MAX;
  return left > 0 ? [...commands.slice(0, ACTS_MAX), `and ${left} more`] : commands;
}

function letterHints(letters = 0): readonly string[] {
  return letters === 0 ? [] : [`Dead letters: ${letters}. To see them: \`tally dead-letters list\``];
}

/** What to do next. */
export function bucketHints({ items, activity: seen }: ListedBuckets): readonly string[] {
  return [...actHints(items), ...letterHints(seen?.dead_letters)];
}
