/** The audit: who did what, when, from where, and how it ended. */
import { z } from 'zod';
import { KEY_NAME_LENGTH_MAX } from '../../identity/api-key.rules.ts';
import { auditEvents, auditOutcomes, auditRecordSchema, exportedAudit, type AuditRecord } from '../../base/audit.ts';
import { columnsOf } from './command.ts';
import { cursor, emailText, limit, moment, must, oneOf, pageOf, textOf, time } from './fields.ts';
import type { Row, RowKey } from './row.ts';

const { useridentity } = auditRecordSchema.shape;

/** A record in the form in which it is stored, with the names of CloudTrail where it has the same fields. */
export const auditRecord = auditRecordSchema
  .extend({
    id: z.string().describe('The ID. IDs sort by time.'),
    eventtime: time.describe('When the event was recorded.'),
    eventname: z.enum(auditEvents).describe('What happened.'),
    useridentity: useridentity.describe(
      'Who did it: `email` (user@host for a local program; `(not verified)` follows an address that the issuer does not vouch for), `userId`, and in `sessionContext.auth` the `type` (`local`, `session`, `api_key`) and, for an API key, its `keyName` and `keyFingerprint`.',
    ),
    sourceipaddress: z
      .string()
      .exactOptional()
      .describe('The address that the request came from; absent for the operator, who uses the socket.'),
    date: z.string().describe('The day in UTC as `yyyy/mm/dd`, by which exports are partitioned.'),
    outcome: z
      .enum(auditOutcomes)
      .describe(
        '`intended`: the action was about to begin. `done`, `failed`: how it ended. If neither follows with the same `request_id`, the process ended before the action did, and the outcome is unknown.',
      ),
    reason: z.string().exactOptional().describe('Why it failed: the error code and what happened.'),
    request_id: z.string().describe("The request's ID, which both records of an action share."),
    parameters: z
      .record(z.string(), z.unknown())
      .exactOptional()
      .describe('What was requested (such as `bucket`, `id`, `prefix`) and, once done, the result (such as `job_id`).'),
  })
  .meta({ id: 'AuditRecord', description: "One audit record. An administrator's action has two: one before it and one after it." });

/** As the records have it. Date.parse takes 31 days in every month. */
const DAY = /^\d{4}\/(0[1-9]|1[0-2])\/(0[1-9]|[12]\d|3[01])$/;
const DAY_MISTAKE = 'must be a day such as 2026/11/21';

/** What was requested and the reason come last, because they may be long. */
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
      'An action has two records: one before it (`intended`) and one after it (`done` or `failed`). A record is listed within a second after it was stored. Reading the audit is not audited.',
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
      limit,
      cursor: cursor.exactOptional(),
    }),
    answer: pageOf(auditRecord),
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
