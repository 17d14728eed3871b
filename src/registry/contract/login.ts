/** Login, sessions, and who the caller is. The listener answers these operations, without the control plane. */
import { z } from 'zod';
import { keyScopes, roles } from '../../base/actor.ts';
import { isMachineName, isRedirectUri, isReturnTo } from '../../identity/login.rules.ts';
import { apiKey } from './api-keys.ts';
import { flag, bodyOf, must, textOf, yesNo } from './fields.ts';
import type { Row, RowKey } from './row.ts';

/** Longer than any code, token or verifier: RFC 7636 permits 128 characters. */
const SECRET_LENGTH_MAX = 128;
/** Clients put a random text into it. */
const STATE_LENGTH_MAX = 512;
/** Issuers send codes and states of up to some kilobytes. */
const ANSWER_LENGTH_MAX = 4_096;

const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const CODE = '0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX2yZ3aB4c';

const challenge = z.string(must('must be text')).regex(/^[A-Za-z0-9_-]{43}$/, 'must be the base64url of a SHA-256 hash (S256)');
const verifier = z.string(must('must be text')).regex(/^[A-Za-z0-9._~-]{43,128}$/, 'must have 43 to 128 characters of A-Z a-z 0-9 - . _ ~');
const redirectUri = z
  .string(must('must be text'))
  .refine(isRedirectUri, 'must be http://127.0.0.1:PORT/callback or http://[::1]:PORT/callback')
  .meta({
    pattern:
      '^http://(127\\.0\\.0\\.1|\\[::1\\]):([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])/callback$',
  });
const secret = textOf(SECRET_LENGTH_MAX, 1);
const machine = z
  .string(must('must be text'))
  .refine(isMachineName, 'must have 1 to 100 printable characters')
  .meta({ pattern: '^[A-Za-z0-9 ._-]{1,100}$' });
const returnTo = z
  .string(must('must be text'))
  .refine(isReturnTo, 'must be a path of this registry, which begins with one /')
  .meta({ pattern: '^/([!-.0-[\\]-~][!-[\\]-~]{0,1998})?$' });

const token = z
  .object({
    access_token: z.string().describe('Begins with qs_; for `Authorization: Bearer`. It is a secret.'),
    token_type: z.literal('Bearer'),
    expires_in: z.int().describe('The longest the session can last, in seconds.'),
  })
  .meta({ id: 'Token', description: 'A session token.' });

const session = z
  .object({
    user: z
      .object({
        id: z.string().describe('The ID. It stays the same when the address changes.'),
        email: z.string().describe("The e-mail address, or the subject and the issuer's host."),
        email_verified: z
          .boolean()
          .exactOptional()
          .describe('Whether the issuer vouches for the address; absent: callers are not authenticated.'),
      })
      .describe('Who the caller is.'),
    role: z.enum(roles).describe('`admin` includes everything that a `user` may do.'),
    scopes: z.array(z.enum(keyScopes)).readonly().describe('What the caller may do.'),
    kind: z.enum(['session', 'api_key', 'local']).describe('How the caller was identified. `local`: callers are not authenticated.'),
    key: apiKey.exactOptional().describe('The API key used for the request.'),
    reads: z.array(z.string()).readonly().describe('What the caller can read, merged: `BUCKET`, `BUCKET/PREFIX`, or `*` for everything.'),
    advice: z.string().exactOptional().describe('Why that may be less than expected, and whom to ask.'),
    catalog_url: z.string().describe("The catalog's address."),
    version: z.string().describe("The registry's version."),
  })
  .meta({ id: 'Session', description: 'Who the caller is, and what they may do and read.' });
export type SessionAnswer = z.infer<typeof session>;
/** What the caller may read, and why it may be less than expected. */
export type OwnAccess = Pick<SessionAnswer, 'reads' | 'advice'>;

export const loginRows = {
  'GET /login/authorize': {
    operation: 'beginLogin',
    summary: 'Starts a login in a browser, and redirects it to the issuer.',
    description:
      'A program on this machine sends code_challenge, state and redirect_uri, and receives a code at redirect_uri. With no_browser=true, the consent page shows the code instead. A page of the registry sends only return_to and receives a cookie.',
    scope: 'none',
    query: z.strictObject({
      code_challenge: challenge.exactOptional().describe("The challenge for the client's verifier (RFC 7636)."),
      code_challenge_method: z.literal('S256', must('must be S256')).exactOptional().describe('Always S256.'),
      state: textOf(STATE_LENGTH_MAX, 1).exactOptional().describe('Returned with the code.'),
      redirect_uri: redirectUri
        .exactOptional()
        .describe('Where the client waits for the code: http://127.0.0.1:PORT/callback or http://[::1]:PORT/callback.'),
      no_browser: flag
        .exactOptional()
        .describe('Whether the person copies the code, because the client and the browser run on different machines.'),
      machine: machine.exactOptional().describe("The machine's name, for the consent page."),
      return_to: returnTo.exactOptional().describe('The path that a browser opens after its own login.'),
    }),
    status: 302,
    errors: ['request.invalid', 'login.not-configured', 'request.overloaded', 'issuer.unreachable'],
    example: {
      query: {
        code_challenge: CHALLENGE,
        code_challenge_method: 'S256',
        state: 'af0ifjsldkj',
        redirect_uri: 'http://127.0.0.1:49152/callback',
        machine: 'laptop',
      },
    },
  },
  'GET /login/callback': {
    operation: 'answerLogin',
    summary: 'Receives the browser back from the issuer.',
    description: 'Redirects to the consent page, to the page that started the login, or to the client with an error.',
    scope: 'none',
    query: z.looseObject({
      state: textOf(ANSWER_LENGTH_MAX).exactOptional().describe('What the registry sent to the issuer.'),
      code: textOf(ANSWER_LENGTH_MAX).exactOptional().describe("The issuer's code."),
      error: textOf(ANSWER_LENGTH_MAX).exactOptional().describe('Why the issuer refused the login.'),
    }),
    status: 303,
    errors: [
      'request.invalid',
      'login.not-configured',
      'login.expired',
      'login.refused',
      'request.overloaded',
      'issuer.unreachable',
      'issuer.refused',
    ],
    example: { query: { state: 'af0ifjsldkj', code: 'SplxlOBeZQQYbYS6WxSbIA' } },
  },
  'GET /login/consent': {
    operation: 'showConsent',
    summary: 'Shows the page where a person permits a client to act for them.',
    scope: 'none',
    answer: z.string().describe('A page.'),
    media: 'text/html',
    errors: ['login.not-configured', 'login.expired'],
  },
  'POST /login/consent': {
    operation: 'decideLogin',
    summary: "Receives the consent page's decision.",
    scope: 'none',
    body: bodyOf({
      login: secret.describe('The value from the page.'),
      allow: yesNo.describe('Whether the client receives a code.'),
    }),
    answer: z.object({
      redirect: z.string().optional().describe('Where the browser goes next: to the client.'),
      code: z.string().optional().describe('The code, if a person copies it.'),
    }),
    errors: ['request.invalid', 'login.not-configured', 'login.expired', 'request.forbidden-origin'],
    example: { body: { login: 'shown-by-the-page', allow: true } },
  },
  'POST /login/token': {
    operation: 'createToken',
    summary: 'Exchanges a login code for a session token.',
    description:
      'A code is valid once and for 60 s: redeeming it again ends its session. The session ends after `TALLY_SESSION_DAYS` and cannot be renewed.',
    scope: 'none',
    body: bodyOf({
      grant_type: z.literal('authorization_code', must('must be authorization_code')).describe('Always authorization_code.'),
      code: secret.describe('The code.'),
      code_verifier: verifier.describe('The verifier for the challenge (RFC 7636).'),
      redirect_uri: redirectUri.exactOptional().describe('The same as for the login; absent if the code was copied.'),
    }),
    answer: token,
    errors: ['request.invalid', 'login.not-configured', 'login.invalid-grant'],
    example: {
      body: { grant_type: 'authorization_code', code: CODE, code_verifier: VERIFIER, redirect_uri: 'http://127.0.0.1:49152/callback' },
    },
  },
  'POST /login/logout': {
    operation: 'logOut',
    summary: "Ends the caller's session.",
    scope: 'session',
    errors: ['login.not-configured'],
  },
  'GET /v1/session': {
    operation: 'getSession',
    summary: 'Shows who the caller is, and what they may do and read.',
    scope: 'read',
    answer: session,
  },
} as const satisfies Record<RowKey, Row>;
export type AuthorizeRequest = z.output<(typeof loginRows)['GET /login/authorize']['query']>;
export type TokenRequest = z.output<(typeof loginRows)['POST /login/token']['body']>;
