/**
 * Sessions: what a login leaves behind. One record holds all tokens of one login, its family, so that every change is one
 * compare-and-swap. Of each token it holds a hash.
 *
 *   refresh token:  live ──used──► spent ──30 s──► old
 *                    │               └──used again: another successor; the family has several live tokens then
 *                    └──30 days──► idle, and refused                     old ──used──► the whole family ends
 *
 * A token that is used a second time was copied: either a thief or its owner used it first, and it is not known which. Within 30 s
 * it is rather one of several processes that refreshed at the same moment, or a caller that never received the answer.
 */
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { roles, type Role } from './actor.ts';
import { derivedSecret, familyOf, isSameText, randomName, randomSecret, recordNameOf, tokenHashOf, tokenOf } from './tokens.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** How long an access token is valid: how long a disabled rule of the settings may still count at most. */
export const ACCESS_MS = 10 * MINUTE_MS;
/** A refresh token that is not used for this long is refused. */
const REFRESH_IDLE_MS = 30 * DAY_MS;
/** A login ends after this time, however often it was refreshed. */
const FAMILY_MS = 90 * DAY_MS;
/** A browser's session ends after this time: about a working day. There is no refresh, so that the login rules are applied again. */
export const BROWSER_MS = 12 * 60 * MINUTE_MS;
/** How long a used refresh token has further successors. */
const GRACE_MS = 30_000;
/** The live refresh tokens of one family: more processes than one person runs at once with one login. Further ones share a token. */
const LIVE_MAX = 8;
/** The valid access tokens of one family. Each of the live refresh tokens needs one or two in ten minutes. */
const ACCESS_MAX = 32;
/** The tokens that were used in the last 30 s. Only a program that refreshes without end has more; the oldest are left out then. */
const SPENT_MAX = 64;
const SALT_BYTES = 32;

export const sessionRecordSchema = z.object({
  /** The id of the session, a hash of its family. */
  id: z.string(),
  userId: z.string(),
  kind: z.enum(['client', 'browser']),
  /** The name of the machine, as the client sent it. */
  machine: z.string().optional(),
  /** The role at the login. A browser whose user has another role by now must log in again. */
  role: z.enum(roles),
  /** How often the user had been disabled at the login. */
  disabledCount: z.number().optional(),
  createdAtMs: z.number(),
  /** Of a browser. */
  cookieHash: z.string().optional(),
  live: z.array(z.object({ hash: z.string(), issuedAtMs: z.number() })).readonly(),
  /** Used less than 30 s ago. Successors follow from the used token and the salt, so that they can be given out again. */
  spent: z.array(z.object({ hash: z.string(), usedAtMs: z.number(), salt: z.string(), given: z.number() })).readonly(),
  access: z.array(z.object({ hash: z.string(), expiresAtMs: z.number() })).readonly(),
});
export type SessionRecord = z.infer<typeof sessionRecordSchema>;

export interface TokenPair {
  readonly access: string;
  readonly refresh: string;
}

interface NewSession {
  readonly userId: string;
  readonly role: Role;
  readonly nowMs: number;
  readonly machine?: string | undefined;
  readonly disabledCount?: number | undefined;
}

/** A session of the command line or of a program, and its first tokens. */
export function newClientSession({ machine, ...login }: NewSession): { readonly record: SessionRecord } & TokenPair {
  const family = randomName();
  const refresh = tokenOf('refresh', family, randomSecret());
  const access = tokenOf('access', family, randomSecret());
  const record: SessionRecord = {
    ...baseOf(family, login),
    kind: 'client',
    ...(machine !== undefined && { machine }),
    live: [{ hash: tokenHashOf(refresh), issuedAtMs: login.nowMs }],
    access: [{ hash: tokenHashOf(access), expiresAtMs: login.nowMs + ACCESS_MS }],
  };
  return { record, access, refresh };
}

/** A session of a browser, and its cookie. */
export function newBrowserSession(login: NewSession): { readonly record: SessionRecord; readonly cookie: string } {
  const family = randomName();
  const cookie = tokenOf('cookie', family, randomSecret());
  return { record: { ...baseOf(family, login), kind: 'browser', cookieHash: tokenHashOf(cookie) }, cookie };
}

function baseOf(family: string, { userId, role, nowMs, disabledCount }: NewSession): Omit<SessionRecord, 'kind'> {
  const user = { userId, role, ...(disabledCount !== undefined && { disabledCount }) };
  return { id: recordNameOf('session', family), ...user, createdAtMs: nowMs, live: [], spent: [], access: [] };
}

/** Whether the user is enabled and was not disabled since the login: a thief who had the session then does not get it back. */
export function isOfEnabledUser(
  session: Pick<SessionRecord, 'disabledCount'>,
  user: { readonly disabledAtMs?: number | undefined; readonly disabledCount?: number | undefined },
): boolean {
  return user.disabledAtMs === undefined && (session.disabledCount ?? 0) === (user.disabledCount ?? 0);
}

/** The id of the session that a token belongs to; undefined for any other text. */
export function sessionIdOf(kind: 'access' | 'refresh' | 'cookie', token: string): string | undefined {
  const family = familyOf(kind, token);
  return family === undefined ? undefined : recordNameOf('session', family);
}

/** Whether the session accepts this access token now. */
export function acceptsAccess(record: SessionRecord, token: string, nowMs: number): boolean {
  const hash = tokenHashOf(token);
  return !isOver(record, nowMs) && record.access.some((each) => isSameText(each.hash, hash) && nowMs < each.expiresAtMs);
}

/** Whether the session accepts this cookie now. */
export function acceptsCookie(record: SessionRecord, cookie: string, nowMs: number): boolean {
  return !isOver(record, nowMs) && record.cookieHash !== undefined && isSameText(record.cookieHash, tokenHashOf(cookie));
}

/** Whether the session has ended by its age, so that its record can be removed. */
export function isOver({ kind, createdAtMs }: Pick<SessionRecord, 'kind' | 'createdAtMs'>, nowMs: number): boolean {
  return nowMs >= createdAtMs + (kind === 'browser' ? BROWSER_MS : FAMILY_MS);
}

/**
 * What a refresh token gives. `reused`: the session must end. `idle`: it was not used for too long. `crowded`: more processes
 * than the family has tokens for used it at the same moment, and the one that they share was used already; the session stays.
 */
export type Refreshed =
  | ({ readonly kind: 'refreshed'; readonly record: SessionRecord } & TokenPair)
  | { readonly kind: 'reused' | 'idle' | 'crowded' };

/** Applies a refresh token of this family to its record. Random: each call makes another access token. */
export function refreshed(record: SessionRecord, token: string, nowMs: number): Refreshed {
  if (isOver(record, nowMs)) return { kind: 'idle' };
  const hash = tokenHashOf(token);
  const live = record.live.find((each) => isSameText(each.hash, hash));
  if (live !== undefined && nowMs >= live.issuedAtMs + REFRESH_IDLE_MS) return { kind: 'idle' };
  const recent = record.spent.filter(({ usedAtMs }) => nowMs < usedAtMs + GRACE_MS);
  const spent = live === undefined ? recent.find((each) => isSameText(each.hash, hash)) : newlySpent(hash, nowMs);
  if (spent === undefined) return { kind: 'reused' };
  const others = record.live.filter((each) => each !== live);
  const successor = successorOf(spent, token, others);
  if (successor === undefined) return { kind: 'crowded' };
  const access = tokenOf('access', familyOf('refresh', token) ?? '', randomSecret());
  const valid = record.access.filter(({ expiresAtMs }) => nowMs < expiresAtMs);
  return {
    kind: 'refreshed',
    access,
    refresh: successor.token,
    record: {
      ...record,
      live: successor.isNew ? [...others, { hash: tokenHashOf(successor.token), issuedAtMs: nowMs }] : others,
      spent: [...recent.filter((each) => each !== spent), { ...spent, given: spent.given + (successor.isNew ? 1 : 0) }].slice(-SPENT_MAX),
      access: [...valid, { hash: tokenHashOf(access), expiresAtMs: nowMs + ACCESS_MS }].slice(-ACCESS_MAX),
    },
  };
}

type Spent = SessionRecord['spent'][number];

function newlySpent(hash: string, nowMs: number): Spent {
  return { hash, usedAtMs: nowMs, salt: randomBytes(SALT_BYTES).toString('hex'), given: 0 };
}

/** A new successor while the family may have more live tokens, else one that was given out and is still live. */
function successorOf(
  spent: Spent,
  token: string,
  live: SessionRecord['live'],
): { readonly token: string; readonly isNew: boolean } | undefined {
  if (live.length < LIVE_MAX) return { token: successorToken(spent, token, spent.given), isNew: true };
  const hashes = new Set(live.map(({ hash }) => hash));
  for (let number = spent.given - 1; number >= 0; number -= 1) {
    const given = successorToken(spent, token, number);
    if (hashes.has(tokenHashOf(given))) return { token: given, isNew: false };
  }
  return undefined;
}

function successorToken({ salt }: Spent, token: string, number: number): string {
  return tokenOf('refresh', familyOf('refresh', token) ?? '', derivedSecret(token, `${salt}:${number}`));
}
