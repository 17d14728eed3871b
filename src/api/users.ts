/** Users: people who have logged in, and who is an administrator. */
import { z } from 'zod';
import { roles } from '../domain/identity/actor.ts';
import { hasSecret } from '../domain/masked-secrets.ts';
import type { Appointment } from '../domain/identity/appointment.ts';
import { roleSources, type UserRecord } from '../domain/identity/user.ts';
import { cursor, id, limit, must, pageOf, time, timeOf, timeOfMaybe } from './fields.ts';
import type { Row, RowKey } from './row.ts';

/** The longest address that mail can have (RFC 5321). */
const EMAIL_LENGTH_MAX = 254;
/** OpenID Connect's longest subject. */
const SUB_LENGTH_MAX = 255;
const NO_SECRET = 'must not contain an API key or a token, because it is shown';

export const user = z
  .object({
    id: z.string().describe('The id.'),
    email: z.string().describe('The e-mail address, or the subject and the host of the issuer.'),
    email_verified: z.boolean().describe('Whether the issuer vouches for the address.'),
    role: z.enum(roles).describe('`admin` includes what a `user` may do.'),
    role_source: z
      .enum(roleSources)
      .describe('Where the role comes from: `appointment`, a `rule` of the settings about claims or addresses, or `none` for users.'),
    issuer: z.string().describe('The issuer at which the user logs in.'),
    sub: z.string().describe('The subject: how the issuer names the user.'),
    created_at: time.describe('The first login.'),
    last_login_at: time.describe('The last login.'),
    roles_seen_at: time.describe('When the issuer last stated the claims that the role follows from.'),
    disabled_at: time.optional().describe('Since when the user is disabled; absent: the user is not.'),
  })
  .meta({ id: 'User', description: 'A person who has logged in.' });
export type User = z.infer<typeof user>;

const email = z
  .string(must('must be an e-mail address'))
  .regex(/^[\x21-\x3f\x41-\x7e]+@[A-Za-z0-9.-]+$/, 'must be an e-mail address')
  .max(EMAIL_LENGTH_MAX, `must have at most ${EMAIL_LENGTH_MAX} characters`)
  .refine((text) => !hasSecret(text), NO_SECRET);
const sub = z
  .string(must('must be text'))
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII')
  .max(SUB_LENGTH_MAX, `must have at most ${SUB_LENGTH_MAX} characters`)
  .refine((text) => !hasSecret(text), NO_SECRET);

const appointee = z
  .union(
    [
      z.strictObject({ email: email.describe('The e-mail address, which the issuer must have verified.') }),
      z.strictObject({ sub: sub.describe('The subject: how the issuer names the person.') }),
    ],
    must('must be {"email": "…"} or {"sub": "…"}'),
  )
  .describe('Who becomes an administrator.');
export type AppointmentRequest = z.output<typeof appointee>;

const appointment = z
  .object({
    email: z.string().optional().describe('The address in lower case.'),
    sub: z.string().optional().describe('The subject.'),
    appointed_by: z.string().describe('Who made it.'),
    created_at: time.describe('When it was made.'),
    expires_at: time.describe('It ends then, unless the person has logged in before.'),
    user_id: z.string().optional().describe('The user who has become an administrator by it; absent: it waits for a login.'),
  })
  .meta({ id: 'Appointment', description: 'Makes an administrator of a person.' });
export type AppointmentAnswer = z.infer<typeof appointment>;

const params = z.object({ id: id.describe('The id of the user.') });
const EXAMPLE_ID = '0aB1cD2eF3gH4iJ5kL6mN7';

export const userRows = {
  'GET /v1/admin/users': {
    operation: 'listUsers',
    summary: 'Lists the people who have logged in.',
    scope: 'people',
    query: z.strictObject({ limit, cursor: cursor.exactOptional() }),
    answer: pageOf(user),
    status: 200,
    errors: [],
    example: { query: { limit: 20 } },
  },
  'POST /v1/admin/users/{id}/disable': {
    operation: 'disableUser',
    summary: 'Disables a user.',
    description:
      'Sessions of the user are refused at once, and API keys at once by the process that answers and within 5 s by every other one. The last administrator who has logged in cannot be disabled.',
    scope: 'people',
    params,
    answer: user,
    status: 200,
    errors: ['user.not-found', 'user.last-administrator', 'audit.unavailable'],
    example: { params: { id: EXAMPLE_ID } },
  },
  'POST /v1/admin/users/{id}/enable': {
    operation: 'enableUser',
    summary: 'Enables a user again.',
    scope: 'people',
    params,
    answer: user,
    status: 200,
    errors: ['user.not-found', 'audit.unavailable'],
    example: { params: { id: EXAMPLE_ID } },
  },
  'POST /v1/admin/appointments': {
    operation: 'appointAdmin',
    summary: 'Makes a person an administrator.',
    description:
      'A person who has logged in with the verified address, or with the subject, is an administrator at once; a browser must log in again. For anyone else the appointment waits for the first login, for at most 7 days. An API key cannot do this.',
    scope: 'people',
    body: appointee,
    answer: appointment,
    status: 201,
    errors: ['audit.unavailable'],
    example: { body: { email: 'alice@example.com' } },
  },
  'GET /v1/admin/appointments': {
    operation: 'listAppointments',
    summary: 'Lists the appointments that wait for a login.',
    description: 'A page may have fewer items than its limit, even none, although there is a next page.',
    scope: 'people',
    query: z.strictObject({ limit, cursor: cursor.exactOptional() }),
    answer: pageOf(appointment),
    status: 200,
    errors: [],
    example: { query: { limit: 20 } },
  },
  'POST /v1/admin/appointments/withdraw': {
    operation: 'withdrawAppointment',
    summary: 'Withdraws an appointment that waits for a login, and answers what it was.',
    description: 'A person who has logged in with it is an administrator already, and stays one: disable the user instead.',
    scope: 'people',
    body: appointee.describe('Whose appointment is withdrawn.'),
    answer: appointment,
    status: 200,
    errors: ['appointment.not-found', 'audit.unavailable'],
    example: { body: { email: 'alice@example.com' } },
  },
} as const satisfies Record<RowKey, Row>;
export type UsersRequest = z.output<(typeof userRows)['GET /v1/admin/users']['query']>;
export type AppointmentsRequest = z.output<(typeof userRows)['GET /v1/admin/appointments']['query']>;

/** Converts a stored user to its form in the API. */
export function userView(record: UserRecord): User {
  return {
    id: record.userId,
    email: record.email,
    email_verified: record.emailVerified,
    role: record.role,
    role_source: record.roleSource,
    issuer: record.issuer,
    sub: record.subject,
    created_at: timeOf(record.createdAtMs),
    last_login_at: timeOf(record.lastLoginAtMs),
    roles_seen_at: timeOf(record.rolesSeenAtMs),
    disabled_at: timeOfMaybe(record.disabledAtMs),
  };
}

/** Converts a stored appointment to its form in the API. */
export function appointmentView({ email: address, subject, appointedBy, createdAtMs, expiresAtMs }: Appointment): AppointmentAnswer {
  return { email: address, sub: subject, appointed_by: appointedBy, created_at: timeOf(createdAtMs), expires_at: timeOf(expiresAtMs) };
}
