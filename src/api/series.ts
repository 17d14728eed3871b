/** Series: what happened over the last fortnight, from the registry's own records. */
import { z } from 'zod';
import { bucketStates } from '../domain/bucket-status.ts';
import { bucketName, count, moment, must, time } from './fields.ts';
import type { Row, RowKey } from './row.ts';

/** The longest time, which is as long as the records are kept. */
export const SERIES_HOURS_MAX = 336;

const point = z
  .object({
    at: time.describe('When the step begins.'),
    events: count.describe('How many events arrived, each counted once.'),
    lag_p50_ms: count
      .exactOptional()
      .describe('From an event until a search found the change: half of the events took no longer. Absent: it is not known of any.'),
    lag_p95_ms: count.exactOptional().describe('The same of 95 % of the events.'),
    statuses: z
      .partialRecord(z.enum(bucketStates), count)
      .exactOptional()
      .describe('How many buckets had each status at the end of the step. Absent: it is not known, or the series is not of all buckets.'),
  })
  .meta({ id: 'SeriesPoint', description: 'One step of a series.' });
export type SeriesPoint = z.infer<typeof point>;

export const seriesRows = {
  'GET /v1/series': {
    operation: 'getSeries',
    summary: 'Shows events, their lag and the statuses of the buckets over time.',
    description:
      'Each process records once a minute what arrived, and its 50 busiest buckets; the records are kept for 14 days. A step lasts a minute in a time of up to 3 hours, five minutes up to 26 hours, and an hour otherwise; of one bucket five minutes at least. Steps in which no process recorded anything are missing, and the last one may not be over. Callers who may not read everything are shown the busiest buckets that they may read wholly.',
    scope: 'read',
    query: z.strictObject({
      hours: z
        .int(must(`must be a whole number from 1 to ${SERIES_HOURS_MAX}`))
        .min(1, 'must be at least 1')
        .max(SERIES_HOURS_MAX, `must be at most ${SERIES_HOURS_MAX}`)
        .exactOptional()
        .describe('How many hours before now it begins. Default: 24. Not beside `from` and `to`.'),
      from: moment.exactOptional().describe('The beginning of the time. Default: a day before `to`.'),
      to: moment.exactOptional().describe('The end of the time. Default: now.'),
      bucket: bucketName
        .exactOptional()
        .describe(
          'Only events of this connected bucket, which is counted while it is among the busiest; there are no points for callers who may not read all of it.',
        ),
    }),
    answer: z.object({
      from: time.describe('When the first step begins.'),
      to: time.describe('The end of the time.'),
      step_s: count.describe('How long a step lasts, in seconds.'),
      recording: z.boolean().describe('False: TALLY_SERIES is off, so that nothing is recorded.'),
      points: z.array(point).readonly(),
      busiest: z
        .array(z.object({ bucket: z.string(), events: count }))
        .readonly()
        .describe('The buckets with the most events in the time, at most 50.'),
    }),
    status: 200,
    errors: ['bucket.not-connected', 'request.overloaded'],
    example: { query: { hours: 24 } },
  },
} as const satisfies Record<RowKey, Row>;
export type SeriesRequest = z.output<(typeof seriesRows)['GET /v1/series']['query']>;
export type Series = z.output<(typeof seriesRows)['GET /v1/series']['answer']>;
