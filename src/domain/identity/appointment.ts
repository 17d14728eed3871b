/** Appointments: who becomes an administrator at the next login. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { base62Of } from './tokens.ts';

const DAY_MS = 86_400_000;
/** Long enough for a colleague who is away until Monday; a forgotten appointment does not wait for the next owner of an address. */
const WAITS_MS = 7 * DAY_MS;
const NAME_BYTES = 16;
const NAME_DIGITS = 22;

export const appointmentSchema = z.object({
  /** The verified e-mail address in lower case, or the subject: one of them. */
  email: z.string().optional(),
  subject: z.string().optional(),
  appointedBy: z.string(),
  createdAtMs: z.number(),
  expiresAtMs: z.number(),
  /** The first user whom it meant. It counts for no other one from then on. */
  boundTo: z.string().optional(),
});
export type Appointment = z.infer<typeof appointmentSchema>;

/** Who is meant: an e-mail address that the issuer verified, or the subject that it names. */
export type Appointee = { readonly email: string } | { readonly sub: string };

/** The name under which the appointment is stored. A hash, because a subject may be longer than an id. */
export function appointmentNameOf(appointee: Appointee): string {
  const text = 'email' in appointee ? `email:${appointee.email.toLowerCase()}` : `sub:${appointee.sub}`;
  return base62Of(createHash('sha256').update('tally-appointment').update(text).digest().subarray(0, NAME_BYTES), NAME_DIGITS);
}

/** An appointment from now on. */
export function newAppointment(appointee: Appointee, appointedBy: string, nowMs: number): Appointment {
  const who = 'email' in appointee ? { email: appointee.email.toLowerCase() } : { subject: appointee.sub };
  return { ...who, appointedBy, createdAtMs: nowMs, expiresAtMs: nowMs + WAITS_MS };
}

/** Whether the appointment counts no longer. */
export function isAppointmentOver({ expiresAtMs }: Pick<Appointment, 'expiresAtMs'>, nowMs: number): boolean {
  return nowMs >= expiresAtMs;
}

/** The appointments that may be meant for a user. An address counts only if the issuer verified it. */
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
