/** The export of the records that cannot be rebuilt. */
import { z } from 'zod';
import { exportedKinds } from '../domain/state-export.ts';
import { cursor, limit, must, pageOf } from './fields.ts';
import type { Row, RowKey } from './row.ts';

const exportedRecord = z
  .object({
    id: z.string().describe('The id under which it is stored.'),
    kind: z.enum(exportedKinds).describe('What it is about.'),
    record: z.record(z.string(), z.unknown()).describe('The record as it is stored. API keys have the hash of their secret.'),
  })
  .meta({ id: 'ExportedRecord', description: 'One record of the store, in its stored form, which may change with every version.' });

export const stateRows = {
  'POST /v1/admin/state/export': {
    operation: 'exportState',
    summary: 'Returns the records that cannot be rebuilt: buckets, users, grants and API keys.',
    description:
      '`tally state export` writes all pages to a file. Every page is audited as `StateExport`. An API key cannot do this. Sessions, jobs, gaps and the audit are not exported.',
    scope: 'people',
    body: z.strictObject({ limit, cursor: cursor.exactOptional() }, must('must be an object')),
    answer: pageOf(exportedRecord),
    status: 200,
    errors: ['audit.unavailable'],
    example: { body: { limit: 1_000 } },
  },
} as const satisfies Record<RowKey, Row>;
export type ExportRequest = z.output<(typeof stateRows)['POST /v1/admin/state/export']['body']>;
