/**
 * Audit records: who did what, when, from where, and how it ended. Field names are the same in the store, the log, responses
 * and exports. An administrator's action has two records with one request id:
 *
 *   intended ──► done | failed
 *      └── its process was killed, or the store refused the second record: the outcome is unknown
 */
import { z } from 'zod';
import { withoutPasswords } from './passwords.ts';
import { printable } from './printable.ts';
import { nameOfActor, type Actor } from './actor.ts';
import { valueWithoutSecrets, withoutSecrets } from './masked-secrets.ts';

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

/** `intended`: the act was about to begin. */
export const auditOutcomes = ['intended', 'done', 'failed'] as const;

const authSchema = z.object({
  type: z.enum(['local', 'session', 'api_key'] satisfies readonly Actor['kind'][]),
  keyName: z.string().exactOptional(),
  keyFingerprint: z.string().exactOptional(),
});

const parametersSchema = z.record(z.string(), z.unknown());

export const auditRecordSchema = z.object({
  id: z.string(),
  eventtime: z.string(),
  eventname: z.enum(auditEvents),
  useridentity: z.object({ email: z.string(), userId: z.string().exactOptional(), sessionContext: z.object({ auth: authSchema }) }),
  sourceipaddress: z.string().exactOptional(),
  date: z.string(),
  outcome: z.enum(auditOutcomes),
  reason: z.string().exactOptional(),
  request_id: z.string(),
  parameters: parametersSchema.exactOptional(),
});
export type AuditRecord = z.infer<typeof auditRecordSchema>;

/** What was requested, and what came of it: names and values that contain no secret. */
export type AuditParameters = Readonly<Record<string, unknown>>;

export interface AuditFacts {
  readonly event: AuditEvent;
  readonly actor: Actor;
  readonly requestId: string;
  readonly outcome: AuditRecord['outcome'];
  readonly atMs: number;
  /** Why an act failed. */
  readonly reason?: string;
  readonly parameters?: AuditParameters;
}

/** An error text repeats at most a key and a name or two. */
const REASON_LENGTH_MAX = 1_000;

/** Creates a record. `unique`: what keeps its id apart from those of the same moment. */
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

/** The id stays when the address changes, and tells two people apart who state one address. A person whom the issuer did not name has none. */
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

/** The month of a record, as the names of indices have it: `2026.11`. */
export function auditMonthOf({ date }: Pick<AuditRecord, 'date'>): string {
  return date.slice(0, 7).replace('/', '.');
}

/** The month of a moment. */
export function auditMonthAt(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 7).replace('-', '.');
}

/** The first moment after a month (`2026.11`); undefined if the text names no month. */
export function auditMonthEndMs(month: string): number | undefined {
  const [, year, number] = /^(\d{4})\.(0[1-9]|1[0-2])$/.exec(month) ?? [];
  // months count from 0, so this is the month after
  return year === undefined ? undefined : Date.UTC(Number(year), Number(number), 1);
}

/** The record as log lines and exports have it: objects are JSON strings, as Athena reads CloudTrail's columns. */
export function exportedAudit({ useridentity, parameters, ...record }: AuditRecord): Readonly<Record<string, string>> {
  return {
    ...record,
    useridentity: JSON.stringify(useridentity),
    ...(parameters !== undefined && { parameters: JSON.stringify(parameters) }),
  };
}
