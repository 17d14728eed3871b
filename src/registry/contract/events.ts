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
      .describe('From an event until a search found the change: half of the events took no longer. Absent: it is not known of any.'),
    lag_p95_ms: count.exactOptional().describe('The same of 95 % of the events.'),
  })
  .meta({ id: 'EventStep', description: 'Five minutes of all processes.' });

export const eventRows = {
  'GET /v1/events': {
    operation: 'getEvents',
    summary: 'Shows events and their lag in the last 24 hours.',
    description:
      'Each process with the role `ingest` stores once a minute what arrived. The metrics have more than a day, and each bucket.',
    scope: 'monitor',
    heavy: 'search',
    answer: z.object({
      from: time.describe('When the first step begins.'),
      to: time.describe('Now. The step that contains it is not over.'),
      step_s: count.describe('How long a step lasts, in seconds.'),
      steps: z.array(step).readonly().describe('In order. Steps in which no process stored anything are missing.'),
    }),
    errors: ['request.overloaded'],
  },
} as const satisfies Record<RowKey, Row>;
export type Events = z.output<(typeof eventRows)['GET /v1/events']['answer']>;
