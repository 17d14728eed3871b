/** The operations about the process itself. The listeners answer them, without the control plane. */
import { z } from 'zod';
import type { Row, RowKey } from './row.ts';

const check = z
  .object({
    status: z
      .enum(['ok', 'failed', 'warning', 'unknown'])
      .describe('`warning`: the process still works. `unknown`: it has been unable to check since the time in `detail`.'),
    code: z.string().optional(),
    detail: z.string().optional().describe('What happened, and to what.'),
    advice: z.string().optional().describe('What to do about it.'),
  })
  .describe('One check.');

const roleReadiness = z.object({ ready: z.boolean() });

export const readinessReport = z
  .object({
    ready: z.boolean().describe('Whether the process can perform all its roles.'),
    roles: z.partialRecord(z.enum(['ingest', 'reindex', 'http']), roleReadiness).describe('Each role of the process.'),
    checks: z.record(z.string(), check).describe('The checks, by name.'),
  })
  .meta({ id: 'Readiness', description: 'Whether the process can do its work now.' });

/** These operations are also on the health listener, where any caller that can reach it may call them. */
export const healthRows = {
  'GET /livez': {
    operation: 'getLiveness',
    summary: 'Reports that the process is running.',
    scope: 'none',
    answer: z.object({ status: z.literal('ok') }),
  },
  'GET /readyz': {
    operation: 'getReadiness',
    summary: 'Reports whether the process can currently perform its roles, check by check.',
    description: 'The health listener serves this to any caller.',
    scope: 'monitor',
    answer: readinessReport,
    otherStatuses: { 503: 'The process cannot perform all its roles. The body is the same.' },
  },
  'GET /metrics': {
    operation: 'getMetrics',
    summary: "Returns the process's metrics in Prometheus text format.",
    description: 'The health listener serves this to any caller.',
    scope: 'monitor',
    answer: z.string().describe('Metrics in Prometheus text format.'),
    media: 'text/plain',
  },
} as const satisfies Record<RowKey, Row>;

export const documentRows = {
  'GET /config.json': {
    operation: 'getConfig',
    summary: 'Returns the addresses of the registry and the catalog, for client configuration.',
    description: 'Any page may read it. It may be cached for 60 s.',
    scope: 'none',
    answer: z.object({
      registryUrl: z.string().describe("The registry's address: TALLY_PUBLIC_URL, or the address at which the caller reached it."),
      catalogUrl: z.string().describe("The catalog's address: TALLY_CATALOG_URL, by default the registry's."),
      version: z.string().describe('The version of Tally.'),
    }),
  },
  'GET /openapi.json': {
    operation: 'getOpenApi',
    summary: 'Returns this description of the API as an OpenAPI 3.1 document.',
    scope: 'none',
    answer: z.record(z.string(), z.unknown()).describe('An OpenAPI 3.1 document.'),
  },
} as const satisfies Record<RowKey, Row>;
