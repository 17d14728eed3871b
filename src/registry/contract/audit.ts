/** The audit: who did what, when, from where, and how it ended. */
import { z } from 'zod';
import { KEY_NAME_LENGTH_MAX } from '../../identity/api-key.rules.ts';
import { auditEvents, auditRecordSchema, exportedAudit, type AuditRecord } from '../../base/audit.ts';
import { columnsOf } from './command.ts';
import { emailText, moment, must, oneOf, pageOf, textOf, paging } from './fields.ts';
import type { Row, RowKey } from './row.ts';

/** In the records' form. Date.parse accepts 31 days in every month. */
const DAY = /^\d{4}\/(0[1-9]|1[0-2])\/(0[1-9]|[12]\d|3[01])$/;
const DAY_MISTAKE = 'must be a day such as 2026/11/21';

/** Parameters and reason come last, because they may be long. */
const columns = columnsOf<AuditRecord>({
  TIME: 'eventtime',
  EVENT: 'eventname',
  OUTCOME: 'outcome',
  WHO: ({ useridentity: { email, sessionContext } }) =>
    sessionContext.auth.keyName === undefined ? email : `${email} (${sessionContext.auth.keyName})`,
  FROM: 'sourceipaddress',
  WHAT: ({ parameters }) => parameters && JSON.stringify(parameters),
  REASON: 'reason',
});

export const auditRows = {
  'GET /v1/admin/audit': {
    operation: 'listAudit',
    summary: 'Lists audit records, newest first.',
    description:
      'An action has two records: one before it (`intended`) and one after it (`done` or `failed`). Lists show a record at most a second after it was stored. Reading the audit is not audited.',
    scope: 'admin',
    query: z.strictObject({
      from: moment
        .exactOptional()
        .describe('Only records since this day (2026-11-21) or time (2026-11-21T08:00:00Z); days begin at 00:00 UTC.'),
      to: moment.exactOptional().describe('Only records before this day or time.'),
      date: z
        .string(must(DAY_MISTAKE))
        .regex(DAY, DAY_MISTAKE)
        .exactOptional()
        .describe('Only records of this day in UTC, such as 2026/11/21.'),
      email: emailText.exactOptional().describe('Only actions of this e-mail address or user@host.'),
      event: oneOf(auditEvents).exactOptional().describe('Only this event.'),
      key: textOf(KEY_NAME_LENGTH_MAX, 1).exactOptional().describe('Only actions with the API key that has this name or fingerprint.'),
      ...paging,
    }),
    answer: pageOf(auditRecordSchema),
    example: { query: { from: '2026-11-21', event: 'BucketRemove' } },
    cli: {
      words: 'admin audit',
      columns,
      none: 'The audit has no such record.',
      jsonl: exportedAudit,
      examples: ['tally admin audit --event BucketRemove', 'tally admin audit --date 2026/11/21 --jsonl'],
    },
  },
} as const satisfies Record<RowKey, Row>;
export type AuditRequest = z.output<(typeof auditRows)['GET /v1/admin/audit']['query']>;
