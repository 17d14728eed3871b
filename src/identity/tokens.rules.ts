/**
 * Login and session tokens: random base62 texts of which only hashes are stored. A record's name is derived from its token, so
 * that it is found by id, and no search decides who a caller is:
 *
 *   qs_SECRET   a program's session      qb_SECRET   a browser's session, as its cookie
 *
 * SECRET has 43 digits. Nothing stored or logged can be turned into a token.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** 62^43 is just above 2^256: no number of guesses finds a secret. */
export const SECRET_DIGITS = 43;
export const SECRET_BYTES = 32;
/** 62^22 is above 2^128. */
export const NAME_DIGITS = 22;
export const NAME_BYTES = 16;

const TOKEN = /^(q[sb]_)[0-9A-Za-z]{43}$/;

/** How each kind of session's token begins. */
export const tokenPrefixes = { client: 'qs_', browser: 'qb_' } as const;
export type TokenKind = keyof typeof tokenPrefixes;

/** Whether a text may be a token of this kind. Only such texts are looked up. */
export function isToken(kind: TokenKind, text: string): boolean {
  return TOKEN.exec(text)?.[1] === tokenPrefixes[kind];
}

/** The stored hash of a token. A plain hash suffices: 256 random bits cannot be guessed, however fast the hash is. */
export function tokenHashOf(token: string): string {
  return hashFor('tally-token', token).toString('hex');
}

/** A hash for one purpose: the same text has a different one for each. */
export function hashFor(purpose: `tally-${string}`, text: string): Buffer {
  return createHash('sha256').update(purpose).update(text).digest();
}

/** The stored name of what a text identifies: 22 digits, which do not reveal the text. */
export function nameFor(purpose: `tally-${string}`, text: string): string {
  return base62Of(hashFor(purpose, text).subarray(0, NAME_BYTES), NAME_DIGITS);
}

/** A secret derived from another: 43 digits, which nobody can compute without that one. */
export function derivedSecret(secret: string, purpose: string): string {
  return base62Of(createHmac('sha256', secret).update(purpose).digest(), SECRET_DIGITS);
}

/** Whether two texts are equal, in a time that doesn't depend on how much of them is. */
export function isSameText(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}

/** A verifier's challenge by the method S256 (RFC 7636). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BASE = 62n;

/** The bytes as a big-endian number of exactly `length` digits, without leading digits that don't fit. */
export function base62Of(bytes: Uint8Array, length: number): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex') || '0'}`);
  let text = '';
  for (let digit = 0; digit < length; digit += 1) {
    text = `${DIGITS[Number(rest % BASE)] ?? ''}${text}`;
    rest /= BASE;
  }
  return text;
}
