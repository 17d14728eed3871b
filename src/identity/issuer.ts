/**
 * The issuer, through openid-client. Each login rereads the discovery document and the keys, because logins are rare and keys
 * rotate. The ID token's signature is checked too, although the token comes from the issuer itself over TLS.
 */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  AuthorizationResponseError,
  buildAuthorizationUrl,
  ClientSecretBasic,
  ClientSecretPost,
  clockTolerance,
  type Configuration,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
  type ClientAuth,
} from 'openid-client';
import { FaultError } from '../base/fault.ts';
import type { Claims } from './claims.rules.ts';
import { challengeOf } from './tokens.rules.ts';
import { printable } from '../base/texts.ts';
import { RequestError } from '../base/request-error.ts';
import type { Clock } from '../process/clock.ts';
import type { IssuerSecrets } from './login.rules.ts';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface IssuerRequest extends IssuerSecrets {
  /** Where the issuer sends the browser back: the registry's own address. */
  readonly redirectUri: string;
}

/** What the issuer stated about who logged in, after every check. */
export interface Statement {
  /** The issuer of the token. */
  readonly issuer: string;
  /** They have a `sub`. */
  readonly claims: Claims;
}

export interface Issuer {
  /** The address to which the browser is sent. Throws `issuer.unreachable`. */
  authorizationUrl(request: IssuerRequest, signal: AbortSignal): Promise<string>;
  /**
   * Redeems the answer with which the browser came back. Throws `login.refused` for an answer or a token that is not valid or
   * that refuses the login, `issuer.refused` if the issuer does not accept this registry, and `issuer.unreachable`.
   */
  redeem(request: IssuerRequest, callbackUrl: URL, signal: AbortSignal): Promise<Statement>;
}

/** A person is waiting for it. */
const TIMEOUT_S = 10;
/** Issuers' clocks differ by seconds; most clients accept a minute. */
const CLOCK_TOLERANCE_S = 60;
/** How long the address for browsers is cached, so that nobody can make the registry flood the issuer. */
const DISCOVERY_MS = 5 * 60_000;
/** Enough of an error's text to recognise the problem. */
const TEXT_LENGTH_MAX = 300;

interface IssuerParts {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  readonly scopes: string;
  readonly proxyEnv?: Readonly<Record<string, string>> | undefined;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Creates the issuer. Nothing is requested before the first login. */
export function createIssuer({ issuer, clientId, clientSecret, scopes, proxyEnv, clock }: IssuerParts): Issuer {
  const fetchIssuer = createFetchIssuer(proxyEnv);
  let known: { readonly configuration: Configuration; readonly untilMs: number } | undefined;

  /** Reads the discovery document. The settings permit http for loopback only. */
  async function discover(signal: AbortSignal): Promise<Configuration> {
    const insecure = issuer.startsWith('http:') ? [allowInsecureRequests] : [];
    try {
      return await discovery(new URL(issuer), clientId, { [clockTolerance]: CLOCK_TOLERANCE_S }, clientAuthOf(clientSecret), {
        timeout: TIMEOUT_S,
        execute: [...insecure, enableNonRepudiationChecks],
        [customFetch]: (url, options) => fetchIssuer(url, options, signal),
      });
    } catch (error) {
      signal.throwIfAborted();
      throw unreachable(error);
    }
  }

  async function redeem(request: IssuerRequest, callbackUrl: URL, signal: AbortSignal): Promise<Statement> {
    const configuration = await discover(signal);
    try {
      const tokens = await authorizationCodeGrant(configuration, callbackUrl, {
        pkceCodeVerifier: request.verifier,
        expectedNonce: request.nonce,
        expectedState: request.state,
        idTokenExpected: true,
      });
      const stated = tokens.claims();
      if (stated === undefined || stated.sub === '') throw new RequestError('login.refused', 'the issuer sent no subject');
      const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined;
      const further = hasUserInfo ? await fetchUserInfo(configuration, tokens.access_token, stated.sub) : {};
      return { issuer: stated.iss, claims: claimsOf(stated, further) };
    } catch (error) {
      signal.throwIfAborted();
      throw refusedOr(error);
    }
  }

  return {
    redeem,
    async authorizationUrl({ redirectUri, state, nonce, verifier }, signal) {
      if (known === undefined || clock.monotonicMs() >= known.untilMs) {
        known = { configuration: await discover(signal), untilMs: clock.monotonicMs() + DISCOVERY_MS };
      }
      const parameters = { redirect_uri: redirectUri, scope: scopes, state, nonce, code_challenge: challengeOf(verifier) };
      return buildAuthorizationUrl(known.configuration, { ...parameters, code_challenge_method: 'S256' }).href;
    },
  };
}

/** How this issuer takes the secret: in a header (the default), or in the form. */
function clientAuthOf(secret: string | undefined): ClientAuth {
  if (secret === undefined) return None();
  return (server, ...request) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isForm = !methods.includes('client_secret_basic') && methods.includes('client_secret_post');
    return (isForm ? ClientSecretPost(secret) : ClientSecretBasic(secret))(server, ...request);
  };
}

/** The token's claims, and those that the issuer states elsewhere. An address and its verification come from the same place. */
function claimsOf(token: Claims, further: Claims): Claims {
  const { email, email_verified, ...rest } = further;
  const isAbout =
    email !== undefined && (token['email'] === undefined || (token['email'] === email && token['email_verified'] === undefined));
  if (!isAbout) return { ...rest, ...token };
  // a token's statement about an address that it doesn't name doesn't concern this one, and doesn't count as silence either
  const unsaid = token['email_verified'] === undefined ? undefined : null;
  return { ...rest, ...token, email, email_verified: email_verified ?? unsaid };
}

function unreachable(error: unknown): Error {
  return (
    faultIn(error) ?? new FaultError('issuer.unreachable', `the discovery document cannot be used: ${textOf(error)}`, { cause: error })
  );
}

/** What went wrong: at the issuer, with this registry, or with the login. The issuer's texts are shown without characters that act on terminals. */
function refusedOr(error: unknown): Error {
  if (error instanceof RequestError) return error;
  if (error instanceof AuthorizationResponseError) {
    // the browser brought it: anyone can write such an answer, so no other text of it is repeated
    return refused(`the issuer refused the login: ${ANSWER.test(error.error) ? error.error : 'an unknown error'}`);
  }
  if (error instanceof ResponseBodyError) {
    if (error.error === 'invalid_grant') return refused(`the issuer no longer accepts its code: ${describe(error)}`);
    return new FaultError('issuer.refused', `the issuer refused the registry: ${describe(error)}`, { cause: error });
  }
  if (error instanceof WWWAuthenticateChallengeError) {
    const reasons = error.cause.flatMap(({ parameters }) => parameters.error ?? []);
    const text = printable([`status ${error.status}`, ...reasons].join(', '), TEXT_LENGTH_MAX);
    return new FaultError('issuer.refused', `the issuer refused the registry: ${text}`, { cause: error });
  }
  return faultIn(error) ?? refused(`the issuer's token is not valid: ${textOf(error)}`);
}

/** As all errors are that RFC 6749 and OpenID Connect define. */
const ANSWER = /^[a-z_]{1,40}$/;

function refused(text: string): RequestError {
  return new RequestError('login.refused', text);
}

function describe({ error, error_description: text }: { readonly error: string; readonly error_description?: string }): string {
  return printable(text === undefined ? error : `${error} (the issuer says: ${text})`, TEXT_LENGTH_MAX);
}

/** openid-client's codes for an issuer that did not answer like one. */
const UNREACHABLE: ReadonlySet<unknown> = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
]);

/** openid-client wraps our fetch's faults. */
function faultIn(error: unknown): FaultError | undefined {
  if (error instanceof FaultError) return error;
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && UNREACHABLE.has(error.code)) {
    return new FaultError('issuer.unreachable', `the issuer did not answer as expected: ${textOf(error)}`, { cause: error });
  }
  return faultIn(error.cause);
}

/** The innermost error's text, which names the claim or the answer without repeating values. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error), TEXT_LENGTH_MAX);
  if (error.cause instanceof Error) return textOf(error.cause);
  const status = error.cause instanceof Response ? ` (status ${error.cause.status})` : '';
  return printable(error.message, TEXT_LENGTH_MAX) + status;
}

/** Requests to the issuer: through the environment's proxy, without redirects, and with bounded answers. */

/** Discovery documents, key sets and tokens have a few kilobytes; tokens with many groups, a few hundred. */
const ANSWER_BYTES_MAX = 1_048_576;

interface FetchOptions {
  readonly body?: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly method: string;
  readonly signal?: AbortSignal | null | undefined;
}

/** Sends a request. Throws `issuer.unreachable`. */
type FetchIssuer = (url: string, options: FetchOptions, signal: AbortSignal) => Promise<Response>;

function createFetchIssuer(proxyEnv: Readonly<Record<string, string>> | undefined): FetchIssuer {
  const options = proxyEnv === undefined ? {} : { proxyEnv };
  const agents = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) };
  return async function fetchIssuer(url, { body, headers, method, signal }, ended) {
    const { protocol } = new URL(url);
    const send = protocol === 'https:' ? httpsRequest : httpRequest;
    const signals = AbortSignal.any([ended, ...(signal === undefined || signal === null ? [] : [signal])]);
    try {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        const sent = send(
          url,
          { method, headers, signal: signals, agent: protocol === 'https:' ? agents['https:'] : agents['http:'] },
          resolve,
        );
        sent.on('error', reject);
        sent.end(formOf(body));
      });
      return await responseOf(answer);
    } catch (error) {
      ended.throwIfAborted();
      if (error instanceof FaultError) throw error;
      throw new FaultError('issuer.unreachable', `${method} ${originOf(url)}: ${reasonOf(error)}`, { cause: error });
    }
  };
}

/** openid-client sends only forms. */
function formOf(body: unknown): string | undefined {
  return body instanceof URLSearchParams || typeof body === 'string' ? String(body) : undefined;
}

async function responseOf(answer: IncomingMessage): Promise<Response> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of answer) {
    if (!(chunk instanceof Uint8Array)) continue;
    sizeBytes += chunk.byteLength;
    if (sizeBytes > ANSWER_BYTES_MAX) {
      answer.destroy();
      throw new FaultError('issuer.unreachable', `the issuer sent more than ${ANSWER_BYTES_MAX} bytes`);
    }
    chunks.push(chunk);
  }
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(answer.headersDistinct)) for (const value of values) headers.append(name, value);
  const status = answer.statusCode ?? 500;
  // such a response cannot have a body
  const body = [204, 205, 304].includes(status) ? null : Buffer.concat(chunks);
  return new Response(body, { status, headers });
}

/** Without the query, which may hold secrets. */
function originOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'no answer in time';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
