/** Events: the events of the last 24 hours. */
import { z } from 'zod';
import { count, time } from './fields.ts';
import type { Row, RowKey } from './row.ts';

const step = z
  .object({
    at: time.describe('When the step begins.'),
    events: count.describe('How many events arrived, each counted once.'),
    lag_p50_ms: count
      .exactOptional()
      .describe('The time from an event until a search could find the change: half of the events took no longer. Absent: unknown for all.'),
    lag_p95_ms: count.exactOptional().describe('The same for 95 % of the events.'),
  })
  .meta({ id: 'EventStep', description: 'Five minutes across all processes.' });

export const eventRows = {
  'GET /v1/events': {
    operation: 'getEvents',
    summary: 'Shows events and their lag in the last 24 hours.',
    description: 'Once a minute, each process with the role `ingest` stores what arrived. Metrics cover longer periods and single buckets.',
    scope: 'monitor',
    heavy: 'search',
    answer: z.object({
      from: time.describe('When the first step begins.'),
      to: time.describe('Now. The step that contains it is not complete.'),
      step_s: count.describe('How long a step lasts, in seconds.'),
      steps: z.array(step).readonly().describe('In order. Steps in which no process stored anything are missing.'),
    }),
    errors: ['request.overloaded'],
  },
} as const satisfies Record<RowKey, Row>;
export type Events = z.output<(typeof eventRows)['GET /v1/events']['answer']>;
