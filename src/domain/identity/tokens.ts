/**
 * Tokens of logins and sessions: random texts in base62 of which only hashes are stored. A token names its record, so that it
 * is found by id and no search decides who a caller is:
 *
 *   qs_FAMILY SECRET   an access token      qr_FAMILY SECRET   a refresh token      qb_FAMILY SECRET   a cookie of a browser
 *
 * FAMILY are 22 digits, SECRET 43. The record's id is a hash of FAMILY, so what is stored or logged makes no token.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { base62Of } from './base62.ts';

/** 32 random bytes: no number of guesses finds one. 62^43 is just above 2^256. */
const SECRET_BYTES = 32;
export const SECRET_DIGITS = 43;
/** 16 bytes: 62^22 is above 2^128. */
const NAME_BYTES = 16;
export const NAME_DIGITS = 22;

const TOKEN = /^(q[srb]_)([0-9A-Za-z]{22})[0-9A-Za-z]{43}$/;

/** What each prefix stands for. */
export const tokenPrefixes = { access: 'qs_', refresh: 'qr_', cookie: 'qb_' } as const;
export type TokenKind = keyof typeof tokenPrefixes;

/** A new random name, 22 digits. */
export function randomName(): string {
  return base62Of(randomBytes(NAME_BYTES), NAME_DIGITS);
}

/** A new random secret, 43 digits. */
export function randomSecret(): string {
  return base62Of(randomBytes(SECRET_BYTES), SECRET_DIGITS);
}

/** A token of a family. */
export function tokenOf(kind: TokenKind, family: string, secret: string): string {
  return `${tokenPrefixes[kind]}${family}${secret}`;
}

/** The family of a token of this kind; undefined for any other text. */
export function familyOf(kind: TokenKind, text: string): string | undefined {
  const [, prefix, family] = TOKEN.exec(text) ?? [];
  return prefix === tokenPrefixes[kind] ? family : undefined;
}

/** What is stored of a token. A plain hash suffices: 256 random bits cannot be guessed, however fast the hash is. */
export function tokenHashOf(token: string): string {
  return createHash('sha256').update('tally-token').update(token).digest('hex');
}

/** The name under which the record of a secret name is stored: 22 digits. `purpose` keeps records of different kinds apart. */
export function recordNameOf(purpose: 'session' | 'login', name: string): string {
  const hash = createHash('sha256').update(`tally-${purpose}-id`).update(name).digest();
  return base62Of(hash.subarray(0, NAME_BYTES), NAME_DIGITS);
}

/** A further secret that follows from one: 43 digits. Without the first it cannot be computed. */
export function derivedSecret(secret: string, purpose: string): string {
  return base62Of(createHmac('sha256', secret).update(purpose).digest(), SECRET_DIGITS);
}

/** Whether two texts are equal. It takes the same time however much of them is equal. */
export function isSameText(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}

/** The challenge of a verifier by the method S256 (RFC 7636). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}
