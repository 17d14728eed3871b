/** API keys: those of the caller, and those of all users for administrators. */
import { z } from 'zod';
import { keyScopes } from '../../base/actor.ts';
import {
  EXPIRES_IN_DAYS_DEFAULT,
  EXPIRES_IN_DAYS_MAX,
  isKeyName,
  KEY_NAME_LENGTH_MAX,
  keyStatuses,
  statusAt,
  type KeyRecord,
} from '../../identity/api-key.rules.ts';
import type { KnownUser } from '../../identity/claims.rules.ts';
import { columnsOf } from './command.ts';
import { bodyOf, emailText, id, moment, must, oneOf, pageOf, textOf, time, timeOf, paging } from './fields.ts';
import type { Row, RowKey } from './row.ts';

export const apiKey = z
  .object({
    id: z.string().describe('The ID, for get and revoke.'),
    name: z.string().describe('The name given at creation.'),
    user_email: z.string().describe("The owner's e-mail address."),
    fingerprint: z.string().describe('The beginning and end of the secret, such as `qk_abcd…wxyz`: safe to show, and usable as a filter.'),
    status: z.enum(keyStatuses).describe('As of now. `ACTIVE`: the key can authenticate. `EXPIRED`: it has ended.'),
    created_at: time.describe('When it was created.'),
    expires_at: time.describe('When it ends.'),
    last_used_at: time.nullable().describe('When it was last used, to the minute; null: never.'),
    scopes: z.array(z.enum(keyScopes)).readonly().describe('What it may do, as far as its owner may.'),
  })
  .meta({ id: 'ApiKey', description: 'An API key. It never contains the secret.' });
export type ApiKey = z.infer<typeof apiKey>;

export const anyApiKey = apiKey
  .extend({
    user_id: z
      .string()
      .describe("The owner's ID. It stays the same when the address changes, and distinguishes two owners with one address."),
    user_email_verified: z.boolean().describe("Whether the issuer vouches for the owner's address."),
    owner_disabled: z
      .boolean()
      .describe(
        'Whether the key is refused because of its owner: disabled, admitted by no rule in `TALLY_OIDC_ALLOWED`, or not a user of `TALLY_OIDC_ISSUER` who has logged in.',
      ),
  })
  .meta({ id: 'AnyApiKey', description: "Any user's API key, as administrators see it." });
export type AnyApiKey = z.infer<typeof anyApiKey>;

const createdKey = z.object({
  key: apiKey.describe('The key.'),
  secret: z.string().describe('The secret. No later response contains it.'),
});

const NAME_MISTAKE = `must have 1 to ${KEY_NAME_LENGTH_MAX} printable characters, not only blanks, without control and bidi characters and without an API key`;
const DAYS_MISTAKE = `must be a whole number from 1 to ${EXPIRES_IN_DAYS_MAX}`;
const SCOPES_MISTAKE = `must be a list of ${keyScopes.join(', ')}`;
/** There are three; duplicates count once. */
const SCOPES_MAX = 10;
/** A secret has 52 characters; the rest is for surrounding white space. */
const SECRET_LENGTH_MAX = 1_000;

const newKey = bodyOf({
  name: z
    .string(must(NAME_MISTAKE))
    .refine(isKeyName, NAME_MISTAKE)
    .meta({ minLength: 1, maxLength: KEY_NAME_LENGTH_MAX })
    .describe('What the key is for, such as `nightly export, production, 2026-11`.'),
  expires_in_days: z
    .int(must(DAYS_MISTAKE))
    .min(1, DAYS_MISTAKE)
    .max(EXPIRES_IN_DAYS_MAX, DAYS_MISTAKE)
    .default(EXPIRES_IN_DAYS_DEFAULT)
    .describe('After how many days the key expires.'),
  scopes: z
    .array(z.enum(keyScopes, must(SCOPES_MISTAKE)), must(SCOPES_MISTAKE))
    .min(1, SCOPES_MISTAKE)
    .max(SCOPES_MAX, SCOPES_MISTAKE)
    .readonly()
    .exactOptional()
    .describe('What the key may do; always includes `read`. Absent: what you may do, except `admin`.'),
});

const status = oneOf(keyStatuses).exactOptional().describe('Only keys with this status.');
const params = z.object({ id: id.describe('The ID of the key, as shown in the list.') });

/** A fingerprint has 12 characters. */
const FINGERPRINT_LENGTH_MAX = 100;
const EXAMPLE_ID = 'k0123456789abcdefghijAB';

const keyColumns = columnsOf<ApiKey>({
  id: 'id',
  name: 'name',
  fingerprint: 'fingerprint',
  status: 'status',
  created: 'created_at',
  expires: 'expires_at',
  'last used': (key) => key.last_used_at ?? 'never',
  scopes: (key) => key.scopes.join(', '),
});
const keyFields = { ...keyColumns, owner: 'user_email' };

function ownerText({ user_email: email, user_email_verified: isVerified }: AnyApiKey): string {
  return isVerified ? email : `${email} (not verified)`;
}

/** The message after a key was revoked. */
const KEY_REVOKED = 'Revoked. Every process refuses the key within 5 s.';
const NONE = 'There are no such API keys here.';

export const keyRows = {
  'POST /v1/api-keys': {
    operation: 'createApiKey',
    summary: 'Creates an API key for the caller, and returns its secret once.',
    description:
      'This needs an interactive login: neither an API key nor a local command can create a key. A user has at most 50 `ACTIVE` keys. The secret cannot be read later; if it is lost, create a new key.',
    scope: 'session',
    body: newKey,
    answer: createdKey,
    status: 201,
    errors: ['session.required', 'authorization.denied', 'api-key.limit', 'audit.unavailable'],
    example: { body: { name: 'nightly export, production, 2026-11', expires_in_days: 90 } },
    cli: {
      words: 'keys create <name>',
      options: { expires_in_days: 'days', scopes: 'scope' },
      columns: { secret: 'secret' },
      also: { key: keyFields },
      hints: () => ['Store the secret now: it cannot be shown again.'],
      examples: ['tally keys create "nightly export, production, 2026-11" --days 60 --scope read'],
    },
  },
  'GET /v1/api-keys': {
    operation: 'listApiKeys',
    summary: "Lists the caller's API keys, newest first.",
    description: 'Filters match exactly and can be combined. Revoked keys are not listed.',
    scope: 'self',
    query: z.strictObject({
      name: textOf(KEY_NAME_LENGTH_MAX, 1).exactOptional().describe('Only keys with this name.'),
      fingerprint: textOf(FINGERPRINT_LENGTH_MAX, 1).exactOptional().describe('Only the key with this fingerprint.'),
      status,
    }),
    answer: z.object({ items: z.array(apiKey).readonly() }),
    errors: ['session.required'],
    example: { query: { status: 'ACTIVE' } },
    cli: { words: 'keys list', columns: keyColumns, none: NONE, examples: ['tally keys list --status EXPIRED'] },
  },
  'GET /v1/api-keys/{id}': {
    operation: 'getApiKey',
    summary: "Shows one of the caller's API keys.",
    scope: 'self',
    params,
    answer: apiKey,
    errors: ['api-key.not-found', 'session.required'],
    example: { params: { id: EXAMPLE_ID } },
    cli: { words: 'keys get <id>', columns: keyFields, examples: [`tally keys get ${EXAMPLE_ID}`] },
  },
  'DELETE /v1/api-keys/{id}': {
    operation: 'revokeApiKey',
    summary: "Revokes one of the caller's API keys.",
    description:
      'The process that answers refuses the key at once, all others within 5 s. A request with an API key can revoke only that key.',
    scope: 'self',
    params,
    errors: ['api-key.not-found', 'session.required', 'authorization.denied', 'audit.unavailable'],
    example: { params: { id: EXAMPLE_ID } },
    cli: {
      words: 'keys revoke [id]',
      summary: 'Revokes one of your API keys, or any key whose secret you have.',
      description:
        'It reads the secret from a file, needs no login for it, and prints the same whether or not the key existed. Every process refuses a revoked key within 5 s. Revoking cannot be undone.',
      text: () => KEY_REVOKED,
      examples: [`tally keys revoke ${EXAMPLE_ID}`],
    },
  },
  'POST /v1/api-keys/revoke': {
    operation: 'revokeApiKeyBySecret',
    summary: 'Revokes the API key with this secret. Anyone who has the secret may do this.',
    description: 'For leaked secrets. The response is the same whether or not the key existed.',
    scope: 'none',
    body: bodyOf({ secret: textOf(SECRET_LENGTH_MAX, 1).describe('The secret. Tally ignores white space around it.') }),
    errors: ['audit.unavailable'],
    example: { body: { secret: `qk_${'0'.repeat(49)}` } },
    cli: {
      words: 'keys revoke [id]',
      options: { secret: 'secret-file' },
      text: () => 'If this was the secret of an API key, the key is now revoked. Every process refuses it within 5 s.',
      examples: ['tally keys revoke --secret-file leaked.txt --registry URL'],
    },
  },
  'GET /v1/admin/api-keys': {
    operation: 'listAllApiKeys',
    summary: "Lists all users' API keys, in the order of their IDs.",
    description: 'Filters match exactly and can be combined.',
    scope: 'admin',
    query: z.strictObject({
      email: emailText.exactOptional().describe('Only keys of the user with this e-mail address.'),
      key_name: textOf(KEY_NAME_LENGTH_MAX, 1).exactOptional().describe('Only keys with this name.'),
      status,
      unused_since: moment
        .exactOptional()
        .describe('Only keys last used before this day (2026-11-21) or time, or created before it and never used.'),
      ...paging,
    }),
    answer: pageOf(anyApiKey),
    example: { query: { status: 'ACTIVE', unused_since: '2026-08-01' } },
    cli: {
      words: 'admin keys list',
      options: { key_name: 'name' },
      columns: {
        ...keyColumns,
        owner: (key: AnyApiKey) => `${ownerText(key)}${key.owner_disabled ? ' (disabled)' : ''}`,
        'owner id': 'user_id',
      },
      none: NONE,
      examples: ['tally admin keys list --email bob@example.com', 'tally admin keys list --status ACTIVE --unused-since 2026-08-01'],
    },
  },
  'GET /v1/admin/api-keys/{id}': {
    operation: 'getAnyApiKey',
    summary: "Shows any user's API key.",
    scope: 'admin',
    params,
    answer: anyApiKey,
    errors: ['api-key.not-found'],
    example: { params: { id: EXAMPLE_ID } },
    cli: {
      words: 'admin keys get <id>',
      columns: {
        ...keyFields,
        owner: ownerText,
        'owner id': 'user_id',
        'owner disabled': (key: AnyApiKey) => (key.owner_disabled ? 'yes' : 'no'),
      },
      examples: [`tally admin keys get ${EXAMPLE_ID}`],
    },
  },
  'DELETE /v1/admin/api-keys/{id}': {
    operation: 'revokeAnyApiKey',
    summary: "Revokes any user's API key.",
    description: 'The process that answers refuses the key at once, all others within 5 s.',
    scope: 'admin',
    params,
    errors: ['api-key.not-found', 'audit.unavailable'],
    example: { params: { id: EXAMPLE_ID } },
    cli: {
      words: 'admin keys revoke <id>',
      text: () => KEY_REVOKED,
      examples: [`tally admin keys revoke ${EXAMPLE_ID}`],
    },
  },
} as const satisfies Record<RowKey, Row>;
export type KeysRequest = z.output<(typeof keyRows)['GET /v1/api-keys']['query']>;
export type AllKeysRequest = z.output<(typeof keyRows)['GET /v1/admin/api-keys']['query']>;

/** Converts a key to its form in the API. */
export function keyView(record: KeyRecord, nowMs: number): ApiKey {
  return {
    id: record.id,
    name: record.name,
    user_email: record.userEmail,
    fingerprint: record.fingerprint,
    status: statusAt(record.expiresAtMs, nowMs),
    created_at: timeOf(record.createdAtMs),
    expires_at: timeOf(record.expiresAtMs),
    last_used_at: record.lastUsedAtMs === undefined ? null : timeOf(record.lastUsedAtMs),
    scopes: record.scopes,
  };
}

/** Converts a key to its form for administrators. */
export function anyKeyView(record: KeyRecord, owner: Pick<KnownUser, 'isAllowed' | 'emailVerified'> | undefined, nowMs: number): AnyApiKey {
  return {
    ...keyView(record, nowMs),
    user_id: record.userId,
    user_email_verified: owner?.emailVerified === true,
    owner_disabled: owner?.isAllowed !== true,
  };
}
