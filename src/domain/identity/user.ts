/** Users: people who have logged in, by the issuer and the subject that it names. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { roles } from './actor.ts';
import { base62Of } from './tokens.ts';

/** 16 bytes of a hash: 62^22 is above 2^128. */
const ID_BYTES = 16;
const ID_DIGITS = 22;

/** Where the role of a user comes from. */
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
  /** The e-mail address, or `sub@issuer-host` where the issuer names none. */
  email: z.string(),
  emailVerified: z.boolean(),
  /** Set if the issuer said at the last login that the address is not verified. */
  emailDenied: z.literal(true).optional(),
  /** Set if the issuer said nothing about it at the last login, so that it counts as verified only while TALLY_OIDC_TRUST_EMAIL is set. */
  emailTrusted: z.literal(true).optional(),
  role: z.enum(roles),
  roleSource: z.enum(roleSources),
  /** Who appointed the user. */
  appointedBy: z.string().optional(),
  /** The rules on claims, as the settings write them, that the claims of the last login satisfied. */
  matched: z.array(z.string()).readonly(),
  /** The groups that the claims of the last login stated. */
  groups: z.array(z.string()).readonly().optional(),
  /** Set if the issuer sent a link in place of the groups, or more than are stored. */
  groupsLeftOut: z.literal(true).optional(),
  createdAtMs: z.number(),
  /** When the claims were last read from the issuer. */
  rolesSeenAtMs: z.number(),
  lastLoginAtMs: z.number(),
  /** Set while the user is disabled. */
  disabledAtMs: z.number().optional(),
  /** How often the user was disabled; absent: never. A session counts only while it is as it was at the login. */
  disabledCount: z.number().optional(),
});
export type UserRecord = z.infer<typeof userRecordSchema>;

/** The id of a user. The same subject of another issuer is another user. */
export function userIdOf(issuer: string, subject: string): string {
  const hash = createHash('sha256').update('tally-user').update(issuer).update('\0').update(subject).digest();
  return base62Of(hash.subarray(0, ID_BYTES), ID_DIGITS);
}
