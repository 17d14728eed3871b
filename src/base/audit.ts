/**
 * Audit records: who did what, when, from where, and how it ended. Field names are the same in the store, the log, responses
 * and exports. An administrator's action has two records with one request id:
 *
 *   intended ──► done | failed
 *      └── no second record: its process was killed, or the store refused the record, so the outcome is unknown
 */
import { z } from 'zod';
import { withoutPasswords, valueWithoutSecrets, withoutSecrets } from './secrets.ts';
import { printable } from './texts.ts';
import { nameOfActor, type Actor } from './actor.ts';

/** Everything that is audited. The list is closed: queries and alerts depend on the names. */
export const auditEvents = [
  'Login',
  'LoginFailed',
  'Logout',
  'ApiKeyCreate',
  'ApiKeyUse',
  'ApiKeyRevoke',
  'ApiKeyRevokeBySecret',
  'AuthenticationFailed',
  'BucketConnect',
  'BucketChange',
  'BucketRemove',
  'BucketPause',
  'BucketResume',
  'BucketTokenRotate',
  'ReindexStart',
  'ReindexPause',
  'ReindexResume',
  'ReindexCancel',
  'ReindexAllow',
  'ReindexDecline',
  'DeadLettersReplay',
  'DeadLettersDiscard',
  'SweepDelete',
  'UserGrant',
  'UserGrantWithdraw',
  'GrantAdd',
  'GrantRemove',
  'UserDisable',
  'UserEnable',
] as const;

export type AuditEvent = (typeof auditEvents)[number];

/** `intended`: the action was about to begin. */
export const auditOutcomes = ['intended', 'done', 'failed'] as const;

const authSchema = z.object({
  type: z.enum(['local', 'session', 'api_key'] satisfies readonly Actor['kind'][]),
  keyName: z.string().exactOptional(),
  keyFingerprint: z.string().exactOptional(),
});

const parametersSchema = z.record(z.string(), z.unknown());

/** A record as it is stored and shown, with the names of CloudTrail where it has the same fields. */
export const auditRecordSchema = z
  .object({
    id: z.string().describe('The ID. IDs sort by time.'),
    eventtime: z.string().meta({ format: 'date-time', description: 'When the event was recorded.' }),
    eventname: z.enum(auditEvents).describe('What happened.'),
    useridentity: z
      .object({ email: z.string(), userId: z.string().exactOptional(), sessionContext: z.object({ auth: authSchema }) })
      .describe(
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
    parameters: parametersSchema
      .exactOptional()
      .describe('What was requested (such as `bucket`, `id`, `prefix`) and, once done, the result (such as `job_id`).'),
  })
  .meta({ id: 'AuditRecord', description: "One audit record. An administrator's action has two: one before it and one after it." });
export type AuditRecord = z.infer<typeof auditRecordSchema>;

/** What was requested, and what resulted from it: names and values that contain no secret. */
export type AuditParameters = Readonly<Record<string, unknown>>;

export interface AuditFacts {
  readonly event: AuditEvent;
  readonly actor: Actor;
  readonly requestId: string;
  readonly outcome: AuditRecord['outcome'];
  readonly atMs: number;
  /** Why an action failed. */
  readonly reason?: string;
  readonly parameters?: AuditParameters;
}

/** An error text repeats at most a key and a name or two. */
const REASON_LENGTH_MAX = 1_000;

/** Creates a record. `unique` makes its id differ from the ids of records of the same moment. */
export function auditRecordOf(
  { event, actor, requestId, outcome, atMs, reason, parameters = {} }: AuditFacts,
  unique: string,
): AuditRecord {
  const eventtime = new Date(atMs).toISOString();
  return {
    id: `${auditIdAt(atMs)}-${unique}`,
    eventtime,
    eventname: event,
    useridentity: { email: nameOfActor(actor), ...idOf(actor), sessionContext: { auth: authOf(actor) } },
    ...(actor.address !== undefined && { sourceipaddress: actor.address }),
    date: eventtime.slice(0, 10).replaceAll('-', '/'),
    outcome,
    ...(reason !== undefined && { reason: printable(withoutSecrets(withoutPasswords(reason)), REASON_LENGTH_MAX) }),
    request_id: requestId,
    ...(Object.keys(parameters).length > 0 && { parameters: parametersSchema.parse(valueWithoutSecrets(parameters)) }),
  };
}

/** The user id stays the same when the e-mail address changes, and differs for two people with one address. It is absent if the issuer gave the person none. */
function idOf(actor: Actor): { readonly userId?: string } {
  return actor.kind === 'local' || actor.userId === '' ? {} : { userId: actor.userId };
}

function authOf(actor: Actor): z.infer<typeof authSchema> {
  if (actor.kind !== 'api_key') return { type: actor.kind };
  return { type: actor.kind, keyName: actor.keyName, keyFingerprint: actor.keyFingerprint };
}

const MOMENT_DIGITS = 9;
/** The last moment that has this many digits is in the year 5188. */
const MOMENT_MAX_MS = 36 ** MOMENT_DIGITS - 1;

/** How the ids of a moment begin. All ids of earlier moments sort before it, and all others after it. */
export function auditIdAt(atMs: number): string {
  const moment = Math.min(MOMENT_MAX_MS, Math.max(0, Math.floor(atMs)));
  return `audit-${moment.toString(36).padStart(MOMENT_DIGITS, '0')}`;
}

/** The month of a record, as it appears in the names of indices: `2026.11`. */
export function auditMonthOf({ date }: Pick<AuditRecord, 'date'>): string {
  return date.slice(0, 7).replace('/', '.');
}

/** The first moment after a month (`2026.11`); undefined if the text names no month. */
export function auditMonthEndMs(month: string): number | undefined {
  const [, year, number] = /^(\d{4})\.(0[1-9]|1[0-2])$/.exec(month) ?? [];
  // months count from 0, so this is the month after
  return year === undefined ? undefined : Date.UTC(Number(year), Number(number), 1);
}

/** Formats the record for log lines and exports: objects become JSON strings, as Athena reads CloudTrail's columns. */
export function exportedAudit({ useridentity, parameters, ...record }: AuditRecord): Readonly<Record<string, string>> {
  return {
    ...record,
    useridentity: JSON.stringify(useridentity),
    ...(parameters !== undefined && { parameters: JSON.stringify(parameters) }),
  };
}
