/** Users: people who have logged in, identified by issuer and subject. Appointments: who becomes an administrator at their next login. */
import { z } from 'zod';
import { roles } from '../base/actor.ts';
import { nameFor } from './tokens.rules.ts';

/** Where a user's role comes from. */
export const roleSources = ['appointment', 'rule', 'none'] as const;
export type RoleSource = (typeof roleSources)[number];

/** A user as stored. */
export const userRecordSchema = z.object({
  userId: z.string(),
  issuer: z.string(),
  /** TALLY_OIDC_ISSUER at the last login: discovery may lead from it to an issuer of another name. */
  issuerSetting: z.string().optional(),
  /** The claim `sub`. */
  subject: z.string(),
  /** The e-mail address, or `sub@issuer-host` if the issuer names none. */
  email: z.string(),
  emailVerified: z.boolean(),
  /** Set if the issuer didn't say at the last login, so that the address counts as verified only while TALLY_OIDC_TRUST_EMAIL is set. */
  emailTrusted: z.literal(true).optional(),
  role: z.enum(roles),
  roleSource: z.enum(roleSources),
  /** Who appointed the user. */
  appointedBy: z.string().optional(),
  /** The claim rules, as written in the settings, that the last login's claims satisfied. */
  matched: z.array(z.string()).readonly(),
  /** The groups in the last login's claims. */
  groups: z.array(z.string()).readonly().optional(),
  /** Set if the issuer sent a link instead of the groups, or more groups than are stored. */
  groupsLeftOut: z.literal(true).optional(),
  createdAtMs: z.number(),
  /** When the claims were last read from the issuer. */
  lastLoginAtMs: z.number(),
  /** Set while the user is disabled. */
  disabledAtMs: z.number().optional(),
  /** How often the user was disabled; absent: never. A session counts only while this is the same as at its login. */
  disabledCount: z.number().optional(),
});
export type UserRecord = z.infer<typeof userRecordSchema>;

/** A user's id. The same subject at another issuer is another user. */
export function userIdOf(issuer: string, subject: string): string {
  return nameFor('tally-user', `${issuer}\0${subject}`);
}

const DAY_MS = 86_400_000;
/** Long enough for a colleague who is away until Monday, and short enough that a forgotten appointment doesn't wait for an address's next owner. */
const WAITS_MS = 7 * DAY_MS;

/** An appointment as stored, and as shown except for whom it is bound to. It has an address or a subject. */
export const appointmentSchema = z.object({
  email: z.string().optional().describe('The verified address in lower case.'),
  sub: z.string().optional().describe('The subject.'),
  appointed_by: z.string().describe('Who appointed the person.'),
  created_at: z.string(),
  expires_at: z.string().describe('When the appointment expires.'),
  /** The first user to whom it applied. From then on, it applies to nobody else. */
  bound_to: z.string().optional(),
});
export type Appointment = z.infer<typeof appointmentSchema>;

/** The person: an e-mail address that the issuer verified, or the issuer's subject. */
export type Appointee = { readonly email: string } | { readonly sub: string };

/** The appointment's stored name: a hash, because a subject may be longer than an id. */
export function appointmentNameOf(appointee: Appointee): string {
  const text = 'email' in appointee ? `email:${appointee.email.toLowerCase()}` : `sub:${appointee.sub}`;
  return nameFor('tally-appointment', text);
}

/** A new appointment. */
export function newAppointment(appointee: Appointee, appointedBy: string, nowMs: number): Appointment {
  const who = 'email' in appointee ? { email: appointee.email.toLowerCase() } : appointee;
  const textOf = (ms: number): string => new Date(ms).toISOString();
  return { ...who, appointed_by: appointedBy, created_at: textOf(nowMs), expires_at: textOf(nowMs + WAITS_MS) };
}

/** Whether the appointment has lapsed. */
export function isAppointmentOver({ expires_at: expiresAt }: Pick<Appointment, 'expires_at'>, nowMs: number): boolean {
  return nowMs >= Date.parse(expiresAt);
}

/** The appointments that may mean a user. An address counts only if the issuer verified it. */
export function appointeesOf({
  email,
  emailVerified,
  subject,
}: {
  readonly email: string;
  readonly emailVerified: boolean;
  readonly subject: string;
}): readonly Appointee[] {
  return [{ sub: subject }, ...(emailVerified ? [{ email }] : [])];
}
