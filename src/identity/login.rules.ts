/**
 * Logins in progress. A login takes several requests, which different processes may serve:
 *
 *   begun ──the issuer answered──► asking ──Allow──► allowed ──code redeemed──► redeemed
 *                     └──a browser's own login──► redeemed, with a session          └──redeemed again: its session ends
 *
 * Anyone can begin a login, so a login that has only begun is stored nowhere but in its browser's cookie, signed with the key
 * that all processes share. Once the issuer has answered, there is a record. A login lasts 10 minutes, its code a minute. The
 * cookie starts with the login's secret name; the state, nonce and verifier of the request to the issuer are derived from name
 * and key together, so neither the browser nor the store has them.
 */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { hasSecret } from '../base/secrets.ts';
import { UNPRINTABLE } from '../base/texts.ts';
import { challengeOf, derivedSecret, isSameText, NAME_DIGITS, nameFor, SECRET_DIGITS, tokenHashOf } from './tokens.rules.ts';

/** A second factor may take a person some minutes. */
export const LOGIN_MS = 10 * 60_000;
/** A client is already waiting for the code, and a person needs some seconds to copy it. */
const CODE_MS = 60_000;

export const loginRecordSchema = z.object({
  id: z.string(),
  /** `client`: a program on this machine receives the code. `paste`: a person copies it. `browser`: the login is for a page of the registry. */
  flow: z.enum(['client', 'paste', 'browser']),
  stage: z.enum(['asking', 'allowed', 'redeemed']),
  createdAtMs: z.number(),
  /** For client and paste: the challenge of the verifier that the client keeps. */
  challenge: z.string().optional(),
  redirectUri: z.string().optional(),
  /** What the client wants back with the code. */
  clientState: z.string().optional(),
  machine: z.string().optional(),
  /** For browser: where it goes afterwards. */
  returnTo: z.string().optional(),
  /** Who logged in, from `asking` on. */
  userId: z.string().optional(),
  codeHash: z.string().optional(),
  codeAtMs: z.number().optional(),
  /** For `redeemed`. */
  sessionId: z.string().optional(),
});
export type LoginRecord = z.infer<typeof loginRecordSchema>;

/** What a client or a page asks for. */
export type LoginRequest =
  | {
      readonly flow: 'client';
      readonly challenge: string;
      readonly redirectUri: string;
      readonly clientState: string;
      readonly machine?: string;
    }
  | { readonly flow: 'paste'; readonly challenge: string; readonly machine?: string }
  | { readonly flow: 'browser'; readonly returnTo: string };

/** The stored key that signs logins, shared by all processes. */
export const loginKeySchema = z.object({ key: z.string() });

/** A begun login: its secret name, and what the cookie says about it. */
export interface BegunLogin {
  readonly name: string;
  readonly begun: Omit<LoginRecord, 'stage'>;
}

const begunSchema = loginRecordSchema.pick({
  flow: true,
  createdAtMs: true,
  challenge: true,
  redirectUri: true,
  clientState: true,
  machine: true,
  returnTo: true,
});

/** Browsers keep cookies of up to 4,096 characters, including name and attributes. */
const COOKIE_LENGTH_MAX = 3_800;

/**
 * Begins a login with this secret name of 43 random digits, and returns the cookie, which is all that is kept of it; undefined if
 * what the client sent has no room there.
 */
export function beginLogin(request: LoginRequest, name: string, key: string, nowMs: number): string | undefined {
  const said = `${name}.${Buffer.from(JSON.stringify({ createdAtMs: nowMs, ...request })).toString('base64url')}`;
  const cookie = `${said}.${signatureOf(said, key)}`;
  return cookie.length > COOKIE_LENGTH_MAX ? undefined : cookie;
}

/** The login of a cookie; undefined for a text that was not signed with this key, and for a login that is over. */
export function begunLoginOf(cookie: string, key: string, nowMs: number): BegunLogin | undefined {
  const [name = '', said = '', signature = '', ...rest] = cookie.split('.');
  const id = loginIdOf(name);
  if (id === undefined || rest.length > 0 || !isSameText(signature, signatureOf(`${name}.${said}`, key))) return undefined;
  const begun = { ...begunSchema.parse(JSON.parse(Buffer.from(said, 'base64url').toString())), id };
  return isLoginOver(begun, nowMs) ? undefined : { name, begun };
}

function signatureOf(text: string, key: string): string {
  return createHmac('sha256', key).update('tally-login-cookie').update(text).digest('base64url');
}

/** The secret name with which a cookie begins. */
export function loginNameIn(cookie: string): string {
  return cookie.split('.')[0] ?? '';
}

/** The id of the login with this secret name; undefined for a text that cannot be one. */
export function loginIdOf(name: string): string | undefined {
  return name.length === SECRET_DIGITS && /^[0-9A-Za-z]+$/.test(name) ? nameFor('tally-login-id', name) : undefined;
}

/** What the request to the issuer needs, and what its answer is checked against. */
export interface IssuerSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** They follow from the secret name and the key, so any process that receives the cookie has them, and the browser has not. */
export function issuerSecretsOf(name: string, key: string): IssuerSecrets {
  const secretOf = (purpose: string): string => derivedSecret(key, `${purpose}:${name}`);
  return { state: secretOf('state'), nonce: secretOf('nonce'), verifier: secretOf('verifier') };
}

/** What the consent page sends back: it shows that the page was read, and not only its cookie sent. */
export function consentTokenOf(name: string): string {
  return derivedSecret(name, 'consent');
}

/** Whether a login has ended by its age, so that its record can be removed. */
export function isLoginOver({ createdAtMs }: Pick<LoginRecord, 'createdAtMs'>, nowMs: number): boolean {
  return nowMs >= createdAtMs + LOGIN_MS;
}

/** The code of a login: the login's id, which is not secret, and 22 random digits. */
export function codeOf({ id }: Pick<LoginRecord, 'id'>, random: string): string {
  return `${id}${random}`;
}

/** The id of the login that a code belongs to; undefined for a text that cannot be a code. */
export function loginIdOfCode(code: string): string | undefined {
  return code.length === 2 * NAME_DIGITS && /^[0-9A-Za-z]+$/.test(code) ? code.slice(0, NAME_DIGITS) : undefined;
}

export interface Redemption {
  readonly code: string;
  readonly verifier: string;
  readonly redirectUri?: string | undefined;
}

/**
 * Judges a code. `replayed`: it was redeemed before, so that its session must end. `spoilt`: the code was right and the rest
 * was not, so that another program may have it; it must not be redeemed by anyone.
 */
export function judgeCode(
  record: LoginRecord,
  { code, verifier, redirectUri }: Redemption,
  nowMs: number,
): 'ok' | 'unknown' | 'spoilt' | 'replayed' {
  if (record.codeHash === undefined || !isSameText(record.codeHash, tokenHashOf(code))) return 'unknown';
  if (record.stage === 'redeemed') return 'replayed';
  if (record.stage !== 'allowed' || nowMs >= (record.codeAtMs ?? 0) + CODE_MS) return 'unknown';
  if (record.challenge === undefined || !isSameText(record.challenge, challengeOf(verifier))) return 'spoilt';
  return record.redirectUri === redirectUri ? 'ok' : 'spoilt';
}

const PORT_MAX = 65_535;
/** An IP address and not `localhost`, which may lead to another machine (RFC 8252, 8.3). */
const REDIRECT = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):([1-9]\d{0,4})\/callback$/;

/** Whether a client may have its code sent there: to a program on the machine of the browser, at exactly this path. */
export function isRedirectUri(text: string): boolean {
  const [, port] = REDIRECT.exec(text) ?? [];
  return port !== undefined && Number(port) <= PORT_MAX;
}

const RETURN_LENGTH_MAX = 2_000;

/** Whether a browser may be sent there after its login: to a path of this registry. `//host` and `/\host` are other hosts for browsers. */
export function isReturnTo(text: string): boolean {
  return text.length <= RETURN_LENGTH_MAX && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text);
}

const MACHINE_LENGTH_MAX = 100;

/** Whether a text can be the name of a machine: what a person reads on the consent page must not hide or turn its characters. */
export function isMachineName(text: string): boolean {
  return text !== '' && text.length <= MACHINE_LENGTH_MAX && text.search(UNPRINTABLE) === -1 && !hasSecret(text);
}
