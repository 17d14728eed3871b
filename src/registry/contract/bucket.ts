/** A bucket as the API and commands show it. */
import { z } from 'zod';
import { bucketSources, enrichModes, versioningStatuses, watchedStates } from '../../records/bucket.ts';
import { bucketActs, bucketSeverities, bucketStates } from '../../records/bucket-status.ts';
import { ageOfText } from '../../base/texts.ts';
import { columnsOf } from './command.ts';
import { clock, count, time } from './fields.ts';

/** How far the index of a bucket can be relied on. */
export const bucketStatus = z
  .object({
    state: z
      .enum(bucketStates)
      .describe(
        '`ok`: nothing is known to the contrary, its events are known to arrive, and all of it was compared. Of several others the worst: `events_lost`, `paused` (its notification), `waiting` (S3 or the index does not answer for it), `deletions_held` (a person decides), `differs` (a report found differences, or the index refuses documents), `events_unproven` (none has arrived, and its parts in AWS were not found), `never_compared`, `gap_open`, `quiet` (no event for three times as long as is usual for the bucket), `overdue` (the last whole compare is older than two intervals), `degraded` and `unchecked` (its connection).',
      ),
    severity: z
      .enum(bucketSeverities)
      .describe('`bad`: the index differs, or does so with each further change. `warning`: it may differ, or may soon.'),
    sentence: z.string().describe('The same in one sentence, without its full stop.'),
    since: time.optional().describe('Since when.'),
    act: z
      .object({
        kind: z.enum(bucketActs).describe('What a person does about it.'),
        command: z.string().describe('The command that does it.'),
        job_id: z.string().optional().describe('The job that it is about.'),
      })
      .optional()
      .describe('Absent: there is nothing to do, or Tally does it by itself.'),
    differing: count.optional().describe('How many objects the sentence says to differ. Absent: none, or their number is not known.'),
  })
  .describe('How far the index of the bucket can be relied on.');

export const bucket = z
  .object({
    bucket: z.string().describe('The name.'),
    region: z.string().describe('The region, as S3 reports it.'),
    source: z.enum(bucketSources).describe('How its events reach the bucket queue.'),
    topic_arn: z.string().optional().describe('The SNS topic that its events come through.'),
    account: z.string().optional().describe('The account that must own the bucket. Absent: it is not known, and not checked.'),
    versioning: z
      .object({
        status: z.enum(versioningStatuses).describe('`unknown` until it could be read.'),
        observed_at: time.optional().describe('When it was read, by the clock of S3.'),
      })
      .describe('The answer to GetBucketVersioning.'),
    enrich: z.enum(enrichModes).describe('What is read of each object besides its events.'),
    floor: clock.describe(
      'Native events at or below this clock (microseconds since 1970) do not write directly; 0 until the first re-index.',
    ),
    status: bucketStatus,
    gaps: count.describe('How many of its gaps are not closed.'),
    created_at: time.describe('When it was connected.'),
    created_by: z.string().describe('Who connected it.'),
    checked_at: time.describe('When region and versioning were last read.'),
    last_event_at: time.optional().describe('When its last event arrived, to the minute.'),
    usual_interval_ms: count
      .optional()
      .describe('The longest usual interval between two of its events, to the minute. Absent: fewer than two have arrived.'),
    last_compared_at: time
      .optional()
      .describe('When a compare of the whole bucket has last ended: a report, or a re-index that held no deletion back. Absent: never.'),
    wiring: z
      .object({
        state: z
          .enum(watchedStates)
          .describe(
            '`broken`: events are lost. `degraded`: something is missing or not safe. `unknown`: it could not be read. `paused`: its notification was taken away on request.',
          ),
        since: time.describe('Since when.'),
        checked_at: time.describe('When it was last checked.'),
        findings: z
          .array(z.object({ code: z.string(), what: z.string() }))
          .readonly()
          .describe('The first of what was found. `GET /v1/buckets/{bucket}/doctor` has all.'),
      })
      .optional()
      .describe('What the hourly watch found last in AWS. Absent: it has not looked yet.'),
    lifecycle: z
      .object({
        checked_at: time.describe('When its lifecycle rules were read.'),
        rules: z.enum(['known', 'unknown']).describe('`unknown`: the permission to read them is missing.'),
        expiring: count.describe('How many rules in force expire present objects.'),
      })
      .optional()
      .describe('Only for buckets whose source does not report expirations.'),
  })
  .meta({ id: 'Bucket', description: 'A connected bucket.' });
export type Bucket = z.infer<typeof bucket>;

/** A bucket as its caller may see it. */
export const shownBucket = bucket
  .pick({ bucket: true, status: true, gaps: true, last_event_at: true, last_compared_at: true })
  .extend(bucket.omit({ bucket: true, status: true, gaps: true, last_event_at: true, last_compared_at: true }).partial().shape)
  .meta({
    id: 'ShownBucket',
    description: 'A connected bucket. Callers who are no administrators see how far its index can be relied on, and no more.',
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
    jobs: count.describe('How many jobs have not ended.'),
    dead_letters: count
      .optional()
      .describe('How many messages the dead-letter queues hold, about, as SQS counted them last. Absent: not known to this process.'),
  })
  .meta({ id: 'Activity', description: 'What is at work and what waits besides the buckets themselves.' });
export type Activity = z.infer<typeof activity>;

/** One word where all is well, and one sentence where it is not. */
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

/** Buckets as a list of them. */
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

/** More than these do not help at once: the table has all. */
const ACTS_MAX = 8;

/** What to do about the buckets that are not well. */
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
