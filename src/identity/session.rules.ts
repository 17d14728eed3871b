/**
 * Sessions: what a login leaves behind. A session has one random token; its record holds the token's hash. It ends by age, by
 * logout, or when its user loses access; nothing renews it.
 */
import { z } from 'zod';
import { roles, type Role } from '../base/actor.ts';
import { isSameText, nameFor, tokenHashOf, tokenPrefixes, type TokenKind } from './tokens.rules.ts';
import type { UserRecord } from './user.rules.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** How long a browser's session lasts: about a working day. */
export const BROWSER_MS = 12 * HOUR_MS;
/** How long a login proves a role from the issuer's claims: as long as in a browser. */
const CLAIMED_ROLE_MS = BROWSER_MS;

export const sessionRecordSchema = z.object({
  /** Derived from the token. */
  id: z.string(),
  userId: z.string(),
  /** `client`: a program sends the token. `browser`: it is a cookie. */
  kind: z.enum(['client', 'browser']),
  /** The name of the machine, as the client sent it. */
  machine: z.string().optional(),
  /** The role at the login. If the user's role has changed since, a browser must log in again. */
  role: z.enum(roles),
  /** How often the user had been disabled before the login. */
  disabledCount: z.number().optional(),
  createdAtMs: z.number(),
  endsAtMs: z.number(),
  tokenHash: z.string(),
});
export type SessionRecord = z.infer<typeof sessionRecordSchema>;

interface NewSession {
  readonly kind: TokenKind;
  /** 43 random digits. */
  readonly secret: string;
  readonly user: Pick<UserRecord, 'userId' | 'role' | 'disabledCount'>;
  readonly machine?: string | undefined;
  readonly nowMs: number;
  /** The longest life of a session, in days. */
  readonly days: number;
}

/** A new session, and its token. */
export function newSession({ kind, secret, user: { userId, role, disabledCount }, machine, nowMs, days }: NewSession): {
  readonly record: SessionRecord;
  readonly token: string;
} {
  const token = `${tokenPrefixes[kind]}${secret}`;
  const record = {
    id: nameFor('tally-session-id', token),
    userId,
    kind,
    ...(machine !== undefined && { machine }),
    role,
    ...(disabledCount !== undefined && { disabledCount }),
    createdAtMs: nowMs,
    endsAtMs: nowMs + (kind === 'browser' ? BROWSER_MS : days * DAY_MS),
    tokenHash: tokenHashOf(token),
  };
  return { record, token };
}

/** Whether the token is the session's, in a time that doesn't depend on how much of it matches. */
export function isTokenOf({ tokenHash }: Pick<SessionRecord, 'tokenHash'>, token: string): boolean {
  return isSameText(tokenHash, tokenHashOf(token));
}

/** Whether the session is too old: past the end fixed at its login, or earlier if sessions last fewer days by now. */
export function isSessionOver(
  { createdAtMs, endsAtMs }: Pick<SessionRecord, 'createdAtMs' | 'endsAtMs'>,
  days: number,
  nowMs: number,
): boolean {
  return nowMs >= Math.min(endsAtMs, createdAtMs + days * DAY_MS);
}

/** Whether the user was not disabled since the login, so that a thief who had the session then does not get it back. */
export function isOfSameTime(session: Pick<SessionRecord, 'disabledCount'>, user: Pick<UserRecord, 'disabledCount'>): boolean {
  return (session.disabledCount ?? 0) === (user.disabledCount ?? 0);
}

/** The role of the session now. What the issuer stated makes an administrator for 12 hours, and the session then is that of a user until the next login. */
export function roleOfSession(
  { createdAtMs }: Pick<SessionRecord, 'createdAtMs'>,
  { role, roleSource }: Pick<UserRecord, 'role' | 'roleSource'>,
  nowMs: number,
): Role {
  return roleSource === 'rule' && nowMs >= createdAtMs + CLAIMED_ROLE_MS ? 'user' : role;
}
