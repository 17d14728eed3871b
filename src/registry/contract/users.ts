/** Users: people who have logged in, and who is an administrator. */
import { z } from 'zod';
import { roles } from '../../base/actor.ts';
import { hasSecret } from '../../base/secrets.ts';
import { appointmentSchema, roleSources, type UserRecord } from '../../identity/user.rules.ts';
import { columnsOf, type Given } from './command.ts';
import { must, pageOf, time, timeOf, timeOfMaybe, paging } from './fields.ts';
import type { Row, RowKey } from './row.ts';

export const user = z
  .object({
    id: z.string().describe('The ID.'),
    email: z.string().describe("The e-mail address, or the subject and the issuer's host."),
    email_verified: z.boolean().describe('Whether the issuer vouches for the address.'),
    role: z.enum(roles).describe('`admin` includes everything that a `user` may do.'),
    role_source: z
      .enum(roleSources)
      .describe('Where the role comes from: an `appointment`, a `rule` in the settings about claims or addresses, or `none` for users.'),
    appointed_by: z.string().optional().describe('Who appointed the user; only for administrators by appointment.'),
    issuer: z.string().describe("The user's issuer."),
    sub: z.string().describe('The subject: how the issuer names the user.'),
    created_at: time.describe('The first login.'),
    last_login_at: time.describe('The last login.'),
    disabled_at: time.optional().describe('Since when the user has been disabled; absent: not disabled.'),
  })
  .meta({ id: 'User', description: 'A person who has logged in.' });
export type User = z.infer<typeof user>;

/** An id, an address, or a subject: 128 bits in base62, RFC 5321's address, and OpenID Connect's subject. */
const PERSON = /^(?:[0-9A-Za-z]{22}|[\x21-\x3f\x41-\x7e]{1,64}@[A-Za-z0-9.-]{1,189}|sub:[\x21-\x7e]{1,255})$/;

const params = z.object({
  id: z
    .string(must('must be text'))
    .regex(PERSON, 'must be the id of a user, an e-mail address, or sub: with a subject')
    .refine((text) => !hasSecret(text), 'must not contain an API key or a token, because it is shown')
    .describe(
      "A user's ID, as shown in the list. To change the role, also an e-mail address that the issuer has verified, or `sub:` and the subject.",
    ),
});

const EXAMPLE_ID = '0aB1cD2eF3gH4iJ5kL6mN7';

const changeBody = z
  .union(
    [
      z.strictObject({ disabled: z.boolean().describe('Whether the user is refused.') }),
      z.strictObject({ role: z.enum(roles).describe('`admin` appoints the person, `user` revokes an appointment.') }),
    ],
    must('must be {"disabled": true}, {"disabled": false}, {"role": "admin"} or {"role": "user"}'),
  )
  .describe('The change: one of these.');
export type UserChange = z.output<typeof changeBody>;

const appointment = appointmentSchema
  .omit({ bound_to: true })
  .extend({
    created_at: time.describe('When the person was appointed.'),
    expires_at: time.describe('When the appointment expires, unless the person logs in before then.'),
  })
  .meta({ id: 'Appointment', description: 'Makes a person an administrator at their first login.' });
export type AppointmentAnswer = z.infer<typeof appointment>;

const person = z
  .object({
    user: user.optional().describe('The user as of now; absent: no such person has logged in, or they are not admitted.'),
    waiting: appointment.optional().describe("The appointment that waits for the person's login."),
  })
  .meta({ id: 'Person', description: 'A person after a change.' });
export type Person = z.infer<typeof person>;

function reasonText({ role_source: source, appointed_by: by }: User): string | undefined {
  if (source === 'none') return undefined;
  return by === undefined ? source : `${source} by ${by}`;
}

/** The person as the command named them, or by their known address. */
function nameIn({ user: known }: Person, { id }: Given): string {
  return known?.email ?? String(id);
}

function appointedText(changed: Person, given: Given): string {
  const name = nameIn(changed, given);
  return changed.waiting === undefined
    ? `${name} is an administrator now. In a browser it counts from the next login on.`
    : `${name} becomes an administrator at the next login, if it is before ${changed.waiting.expires_at}.`;
}

export const userRows = {
  'GET /v1/admin/users': {
    operation: 'listUsers',
    summary: 'Lists the people who have logged in, and those who will become administrators at their first login.',
    scope: 'people',
    query: z.strictObject(paging),
    answer: pageOf(user).extend({
      waiting: z.array(appointment).readonly().describe('The appointments that wait for a login; only on the first page.'),
    }),
    example: { query: { limit: 20 } },
    cli: {
      words: 'admin users list',
      columns: columnsOf<User>({
        ID: 'id',
        EMAIL: (of) => (of.email_verified ? of.email : `${of.email} (not verified)`),
        ROLE: 'role',
        'BECAUSE OF': reasonText,
        'LAST LOGIN': 'last_login_at',
        DISABLED: 'disabled_at',
      }),
      also: {
        waiting: columnsOf<AppointmentAnswer>({
          'ADMINISTRATOR AT THE FIRST LOGIN': ({ email, sub = '' }) => email ?? `sub:${sub}`,
          'APPOINTED BY': 'appointed_by',
          SINCE: 'created_at',
          ENDS: 'expires_at',
        }),
      },
      none: 'No one has logged in.',
      examples: ['tally admin users list'],
    },
  },
  'PATCH /v1/admin/users/{id}': {
    operation: 'changeUser',
    summary: "Disables or enables a user, or changes a person's role.",
    description:
      "Tally refuses a disabled user's sessions at once; the process that answers refuses their API keys at once, all others within 5 s. A person who has logged in with the verified address or the subject becomes an administrator at once, but must log in again in a browser. For anyone else, the appointment waits for the first login, for at most 7 days. A role from a rule in the settings stays. The last administrator who has logged in cannot be disabled or dismissed. An API key cannot do this.",
    scope: 'people',
    params,
    body: changeBody,
    answer: person,
    errors: ['user.not-found', 'user.role-by-rule', 'user.last-administrator', 'audit.unavailable'],
    example: { params: { id: 'alice@example.com' }, body: { role: 'admin' } },
    cli: [
      {
        words: 'admin appoint <id>',
        summary: 'Makes a person an administrator.',
        description:
          'For people who have logged in, this takes effect at once. For anyone else, the appointment waits for the first login, for at most 7 days.',
        fixed: { role: 'admin' },
        text: appointedText,
        examples: ['tally admin appoint alice@example.com', 'tally admin appoint sub:248289761001'],
      },
      {
        words: 'admin dismiss <id>',
        summary: "Revokes a person's appointment as an administrator.",
        fixed: { role: 'user' },
        text: (changed: Person, given) => `${nameIn(changed, given)} is not an administrator, and will not become one at login.`,
        examples: ['tally admin dismiss alice@example.com'],
      },
      {
        words: 'admin users disable <id>',
        summary: 'Disables a user.',
        description: "The user cannot log in, and Tally refuses the user's sessions and API keys within 5 s.",
        fixed: { disabled: true },
        text: (changed: Person, given) => `${nameIn(changed, given)} is disabled.`,
        examples: [`tally admin users disable ${EXAMPLE_ID}`],
      },
      {
        words: 'admin users enable <id>',
        summary: 'Enables a disabled user.',
        description: 'The user must log in again.',
        fixed: { disabled: false },
        text: (changed: Person, given) => `${nameIn(changed, given)} is enabled.`,
        examples: [`tally admin users enable ${EXAMPLE_ID}`],
      },
    ],
  },
} as const satisfies Record<RowKey, Row>;
export type UsersRequest = z.output<(typeof userRows)['GET /v1/admin/users']['query']>;
export type UsersAnswer = z.output<(typeof userRows)['GET /v1/admin/users']['answer']>;

/** Converts a stored user to its form in the API. */
export function userView(record: UserRecord): User {
  return {
    id: record.userId,
    email: record.email,
    email_verified: record.emailVerified,
    role: record.role,
    role_source: record.roleSource,
    appointed_by: record.roleSource === 'appointment' ? record.appointedBy : undefined,
    issuer: record.issuer,
    sub: record.subject,
    created_at: timeOf(record.createdAtMs),
    last_login_at: timeOf(record.lastLoginAtMs),
    disabled_at: timeOfMaybe(record.disabledAtMs),
  };
}
