/** Grants: who becomes an administrator at the next login. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { base62Of } from './base62.ts';

const DAY_MS = 86_400_000;
/** Long enough for a colleague who is away until Monday; a forgotten grant does not wait for the next owner of an address. */
const GRANT_MS = 7 * DAY_MS;
const NAME_BYTES = 16;
const NAME_DIGITS = 22;

export const grantRecordSchema = z.object({
  /** The verified e-mail address in lower case, or the subject: one of them. */
  email: z.string().optional(),
  subject: z.string().optional(),
  grantedBy: z.string(),
  createdAtMs: z.number(),
  expiresAtMs: z.number(),
  /** The first user whom it meant. It counts for no other one from then on. */
  boundTo: z.string().optional(),
});
export type GrantRecord = z.infer<typeof grantRecordSchema>;

/** Who is meant: an e-mail address that the issuer verified, or the subject that it names. */
export type Grantee = { readonly email: string } | { readonly sub: string };

/** The name under which the grant is stored. A hash, because a subject may be longer than an id. */
export function grantNameOf(grantee: Grantee): string {
  const text = 'email' in grantee ? `email:${grantee.email.toLowerCase()}` : `sub:${grantee.sub}`;
  return base62Of(createHash('sha256').update('tally-grant').update(text).digest().subarray(0, NAME_BYTES), NAME_DIGITS);
}

/** A grant from now on. */
export function newGrant(grantee: Grantee, grantedBy: string, nowMs: number): GrantRecord {
  const who = 'email' in grantee ? { email: grantee.email.toLowerCase() } : { subject: grantee.sub };
  return { ...who, grantedBy, createdAtMs: nowMs, expiresAtMs: nowMs + GRANT_MS };
}

/** Whether the grant counts no longer. */
export function isGrantOver({ expiresAtMs }: Pick<GrantRecord, 'expiresAtMs'>, nowMs: number): boolean {
  return nowMs >= expiresAtMs;
}

/** The grants that may be meant for a user. An address counts only if the issuer verified it. */
export function granteesOf({
  email,
  emailVerified,
  subject,
}: {
  readonly email: string;
  readonly emailVerified: boolean;
  readonly subject: string;
}): readonly Grantee[] {
  return [{ sub: subject }, ...(emailVerified ? [{ email }] : [])];
}
