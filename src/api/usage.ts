/** Usage: objects and bytes of a bucket, by folder, class, extension or age, and how they grew. */
import { z } from 'zod';
import { GROWTH_DAYS_MAX, missedReasons } from '../domain/series/growth.ts';
import { bucketName, count, cursor, flag, limit, must, pageOf, time } from './fields.ts';
import type { Row, RowKey } from './row.ts';
import { filterFields } from './search.ts';

/** What objects are grouped by. */
export const usageBy = ['folder', 'class', 'extension', 'age'] as const;

const sums = {
  objects: count.describe('How many objects.'),
  bytes: z.number().min(0).describe('Their bytes, as far as their sizes are known.'),
  oldest: time.exactOptional().describe('When the oldest was last modified; with times=true.'),
  newest: time.exactOptional().describe('When the newest was last modified; with times=true.'),
};

const usageItem = z
  .object({
    name: z
      .string()
      .exactOptional()
      .describe(
        'The whole prefix of the folder, the class, the extension, or the age (1d, 7d, 30d, 90d, 365d, older). Absent: objects that have none.',
      ),
    ...sums,
  })
  .meta({
    id: 'Usage',
    description: 'Objects and bytes of one group. By folder, the group without a name holds the objects of the folder itself.',
  });
export type Usage = z.infer<typeof usageItem>;

const growthItem = z
  .object({
    bucket: z.string(),
    days: z
      .array(
        z.object({
          day: z.iso.date().describe('The day, by UTC.'),
          objects: sums.objects,
          bytes: sums.bytes,
        }),
      )
      .readonly()
      .describe('In order. A day on which nothing was summed is missing.'),
    missed: z
      .array(
        z.object({
          day: z.iso.date().describe('The day, by UTC.'),
          reason: z
            .enum(missedReasons)
            .describe('`too-slow`: the sums took longer than 10 seconds. `index-missing`: the index of the bucket was missing.'),
        }),
      )
      .readonly()
      .describe('In order: the days on which nothing could be summed.'),
  })
  .meta({ id: 'Growth', description: 'The objects and bytes of a bucket day by day.' });

const { bucket: _bucket, deleted: _deleted, deleted_after: _after, deleted_before: _before, ...filters } = filterFields;

export const usageRows = {
  'GET /v1/usage': {
    operation: 'getUsage',
    summary: 'Sums objects and bytes of a bucket, by folder, class, extension or age.',
    description:
      'It takes the filters of a search. Sums are exact (bytes up to 2^53, which are 8 PiB; beyond that to 15 digits) and at most one index refresh behind. One that takes longer than 10 seconds is refused with search.too-wide, never answered in part.',
    scope: 'read',
    query: z.strictObject({
      ...filters,
      bucket: bucketName.describe('The connected bucket.'),
      by: z
        .enum(usageBy, must(`must be one of ${usageBy.join(', ')}`))
        .default('folder')
        .describe(
          'What is grouped by: the next folder below the prefix (the default; at most 8 levels), the storage class, the extension, or the time from the last modification to the start of this hour.',
        ),
      times: flag.exactOptional().describe('`true`: each group has the times of its oldest and newest object.'),
      limit,
      cursor: cursor.exactOptional(),
    }),
    answer: pageOf(usageItem),
    status: 200,
    errors: ['bucket.not-connected', 'bucket.index-missing', 'search.too-wide', 'request.overloaded'],
    example: { query: { bucket: 'photos', prefix: '2026/' } },
  },
  'GET /v1/usage/growth': {
    operation: 'getGrowth',
    summary: 'Shows the objects and bytes of each bucket day by day.',
    description:
      'They are summed once a day from the index and kept for 400 days. Buckets are in the order of their names; those of which the caller may not read everything are left out.',
    scope: 'read',
    query: z.strictObject({
      bucket: bucketName.exactOptional().describe('Only this connected bucket.'),
      days: z
        .int(must(`must be a whole number from 1 to ${GROWTH_DAYS_MAX}`))
        .min(1, 'must be at least 1')
        .max(GROWTH_DAYS_MAX, `must be at most ${GROWTH_DAYS_MAX}`)
        .default(30)
        .describe('How many days it covers, today included.'),
      limit,
      cursor: cursor.exactOptional(),
    }),
    answer: pageOf(growthItem).extend({ recording: z.boolean().describe('False: TALLY_SERIES is off, so that nothing is recorded.') }),
    status: 200,
    errors: ['bucket.not-connected'],
    example: { query: { days: 30 } },
  },
} as const satisfies Record<RowKey, Row>;
export type GrowthRequest = z.output<(typeof usageRows)['GET /v1/usage/growth']['query']>;
export type UsageRequest = z.output<(typeof usageRows)['GET /v1/usage']['query']>;
