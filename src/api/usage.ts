/** Usage: objects and bytes of a bucket, by folder, class, extension or age. */
import { z } from 'zod';
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
} as const satisfies Record<RowKey, Row>;
export type UsageRequest = z.output<(typeof usageRows)['GET /v1/usage']['query']>;
