/** What a process answers about itself. The listeners answer these, without a verb of the control plane. */
import { z } from 'zod';
import type { Row, RowKey } from './row.ts';

const check = z
  .object({
    status: z.enum(['ok', 'failed', 'warning']),
    code: z.string().optional(),
    detail: z.string().optional().describe('What happened, to which thing.'),
    advice: z.string().optional().describe('What to do about it.'),
  })
  .describe('One check.');

const roleReadiness = z.object({ ready: z.boolean() });

export const readinessReport = z
  .object({
    ready: z.boolean().describe('Whether the process can do all its roles.'),
    roles: z.partialRecord(z.enum(['ingest', 'reindex', 'http']), roleReadiness).describe('Each role of the process.'),
    checks: z.record(z.string(), check).describe('What was looked at, by name.'),
  })
  .meta({ id: 'Readiness', description: 'Whether the process can do its work now.' });

/** These are on the health listener as well, where everybody who can reach it may call them. */
export const healthRows = {
  'GET /livez': {
    operation: 'getLiveness',
    summary: 'Says that the process runs.',
    scope: 'none',
    answer: z.object({ status: z.literal('ok') }),
    status: 200,
    errors: [],
    example: {},
  },
  'GET /readyz': {
    operation: 'getReadiness',
    summary: 'Says whether the process can do its roles now, check by check.',
    description: 'The health listener answers it to everybody.',
    scope: 'monitor',
    answer: readinessReport,
    status: 200,
    otherStatuses: { 503: 'The process cannot do all its roles. The body is the same.' },
    errors: [],
    example: {},
  },
  'GET /metrics': {
    operation: 'getMetrics',
    summary: 'Answers the metrics of the process in the text format of Prometheus.',
    description: 'The health listener answers it to everybody.',
    scope: 'monitor',
    answer: z.string().describe('Metrics in the text format of Prometheus.'),
    status: 200,
    media: 'text/plain',
    errors: [],
    example: {},
  },
} as const satisfies Record<RowKey, Row>;

export const documentRows = {
  'GET /config.json': {
    operation: 'getConfig',
    summary: 'Says where the registry is, as the caller reached it.',
    scope: 'none',
    answer: z.object({
      registryUrl: z.string().describe('The address of the registry.'),
      version: z.string().describe('The version of Tally.'),
    }),
    status: 200,
    errors: [],
    example: {},
  },
  'GET /openapi.json': {
    operation: 'getOpenApi',
    summary: 'Answers this description of the API as an OpenAPI 3.1 document.',
    scope: 'none',
    answer: z.record(z.string(), z.unknown()).describe('An OpenAPI 3.1 document.'),
    status: 200,
    errors: [],
    example: {},
  },
} as const satisfies Record<RowKey, Row>;
