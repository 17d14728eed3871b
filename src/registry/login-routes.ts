/** Login over HTTP: what browsers and clients send, and the answers and cookies that they receive. The panel has the page of consent. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ApiKey } from './contract/api-keys.ts';
import { rowsOfListener, type Context, type LoginName } from './contract/contract.ts';
import { loginRows, type AuthorizeRequest, type SessionAnswer, type TokenRequest } from './contract/login.ts';
import { BROWSER_MS } from '../identity/session.rules.ts';
import { LOGIN_MS, type LoginRequest } from '../identity/login.rules.ts';
import { nameOfActor, type Actor } from '../base/actor.ts';
import { addressGroupOf } from '../identity/address-group.rules.ts';
import { AUTHENTICATION_FAILED } from '../identity/authorise.rules.ts';
import { scopesOfRole } from '../identity/key-scopes.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { Logins, Origin } from '../identity/logins.ts';
import type { Sessions, StartedSession } from '../identity/sessions.ts';
import type { ReadOwnAccess } from '../identity/grants/operations.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { addressOf, type CallerParts, type Callers, cookieIn, cookieNamesOf, cookieOf } from './caller.ts';
import { LOOPBACK_HOST, requireOwnPage } from './guard.ts';
import { requestReader, type Handler } from './routes.ts';
import { loggedProblemOf } from './server.ts';
import type { Problem } from './contract/problem.ts';

/** What login needs in addition to how callers are identified. */
export interface LoginParts extends CallerParts {
  readonly sessions: Pick<Sessions, 'check' | 'endByCookie'>;
  readonly logins: Logins;
}

interface LoginHandlerParts {
  /** Absent: callers are not authenticated, and no one logs in. */
  readonly identity: LoginParts | undefined;
  readonly callers: Callers;
  readonly telemetry: Telemetry;
  readonly version: string;
  /** The catalog's address, for this request's caller. */
  readonly catalogUrl: (request: FastifyRequest) => string;
  readonly ownAccess: ReadOwnAccess;
  /** Reads one of the actor's keys. */
  readonly readKey: (id: string, context: Context) => Promise<ApiKey>;
  /** Aborted when the listener closes. */
  readonly closing: AbortSignal;
}

/** Reading a key or a login takes milliseconds. */
const READ_MAX_MS = 30_000;
/** A login waits for the issuer at most this long: three requests of 10 s each. */
const ISSUER_MAX_MS = 30_000;
/** A quarter of a listener's connections, so that a hanging issuer leaves room for everyone else. */
const AT_ISSUER_MAX = 64;
/** The most logins of one network, because anyone can make the registry wait for the issuer. */
const AT_ISSUER_OF_NETWORK_MAX = 8;

type Handlers = Readonly<Record<LoginName, Handler>>;

/** Creates the handlers. Without identity only `getSession` answers; all others throw `login.not-configured`. */
export function createLoginHandlers(parts: LoginHandlerParts): Handlers {
  const { identity, callers, version, catalogUrl, ownAccess, readKey, closing } = parts;
  async function sessionOf(actor: Actor, more: Pick<SessionAnswer, 'version' | 'catalog_url'>): Promise<SessionAnswer> {
    const signal = AbortSignal.any([closing, AbortSignal.timeout(READ_MAX_MS)]);
    const answer = sessionAnswer(actor, { ...(await ownAccess(actor, signal)), ...more });
    if (actor.kind !== 'api_key') return answer;
    const key = await readKey(actor.keyId, { actor, signal }).catch((error: unknown) => {
      // it was revoked within the seconds for which this process caches it
      if (error instanceof RequestError && error.code === 'api-key.not-found') throw failedAuthentication();
      throw error;
    });
    return { ...answer, key };
  }
  const getSession: Handler = async (request, reply) =>
    reply.send(await sessionOf(callers.actorOf(request), { version, catalog_url: catalogUrl(request) }));
  if (identity !== undefined) return { ...handlersOf({ ...parts, identity }), getSession };
  const absent: Handler = async () => {
    throw new RequestError(
      'login.not-configured',
      'this registry has no login: TALLY_OIDC_ISSUER is not set, and programs on its machine need none',
    );
  };
  return {
    beginLogin: absent,
    answerLogin: absent,
    getConsent: absent,
    decideLogin: absent,
    createToken: absent,
    logOut: absent,
    getSession,
  };
}

function failedAuthentication(): RequestError {
  return new RequestError(AUTHENTICATION_FAILED.code, AUTHENTICATION_FAILED.detail);
}

function handlersOf(parts: LoginHandlerParts & { readonly identity: LoginParts }): Omit<Handlers, 'getSession'> {
  const { identity, callers, telemetry, closing } = parts;
  const { logins, sessions } = identity;
  /** The networks of the callers that wait for the issuer, one entry each. */
  const atIssuer: string[] = [];
  const readers = new Map(rowsOfListener.map((row) => [row.operation, requestReader(row)]));
  const read = (name: LoginName, request: FastifyRequest) => readers.get(name)?.(request) ?? {};
  const cookies = () => cookieNamesOf(identity.publicUrl());
  const set = (reply: FastifyReply, name: string, value: string, maxAgeMs: number): void =>
    void reply.header('set-cookie', cookieOf(identity.publicUrl(), name, value, maxAgeMs));
  const forget = (reply: FastifyReply, name: string): void => set(reply, name, '', 0);

  function originOf(request: FastifyRequest): Origin {
    return { address: addressOf(request), requestId: randomUUID() };
  }

  /** Asks the issuer. Each waiting login holds a connection, and anyone can begin one. Throws `request.overloaded` above the limits. */
  async function askIssuer<Answer>(request: FastifyRequest, ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const network = addressGroupOf(addressOf(request) ?? '');
    const isMany = atIssuer.filter((each) => each === network).length >= AT_ISSUER_OF_NETWORK_MAX;
    if (isMany || atIssuer.length >= AT_ISSUER_MAX) {
      const waiting = isMany ? `${AT_ISSUER_OF_NETWORK_MAX} logins from your address` : `${AT_ISSUER_MAX} logins`;
      throw new RequestError('request.overloaded', `${waiting} are already waiting for the issuer: try again in a second`);
    }
    atIssuer.push(network);
    try {
      return await ask(AbortSignal.any([closing, AbortSignal.timeout(ISSUER_MAX_MS)]));
    } finally {
      atIssuer.splice(atIssuer.indexOf(network), 1);
    }
  }

  /** The cookie of a browser's login. */
  function loginOf({ headers }: FastifyRequest): string {
    return cookieIn(headers.cookie, cookies().login) ?? '';
  }

  /** An invalid code counts as a failed credential. */
  async function sessionFor(
    { code, code_verifier: verifier, redirect_uri: redirectUri }: TokenRequest,
    origin: Origin,
  ): Promise<StartedSession> {
    try {
      return await logins.redeem({ code, verifier, redirectUri }, origin);
    } catch (error) {
      if (error instanceof RequestError && error.code === 'login.invalid-grant') {
        identity.attempts?.failed({ address: origin.address, reason: 'authorization_code not valid' });
      }
      throw error;
    }
  }

  /** Shows people their errors as a text. */
  function forPeople(handler: Handler): Handler {
    return async (request, reply) => {
      try {
        return await handler(request, reply);
      } catch (error) {
        if (!/text\/html/i.test(request.headers.accept ?? '')) throw error;
        const problem = loggedProblemOf(error, telemetry);
        return reply.code(problem.status).type('text/plain; charset=utf-8').send(failureText(problem));
      }
    };
  }

  return {
    beginLogin: forPeople(async (request, reply) => {
      const elsewhere = ownAddress(request, identity.publicUrl());
      if (elsewhere !== undefined) return reply.redirect(elsewhere, 302);
      const { query } = loginRows['GET /login/authorize'];
      const wanted = loginRequestOf(query.parse(read('beginLogin', request).query));
      const { cookie, location } = await askIssuer(request, (signal) => logins.begin(wanted, signal));
      set(reply, cookies().login, cookie, LOGIN_MS);
      return reply.redirect(location, 302);
    }),
    answerLogin: forPeople(async (request, reply) => {
      read('answerLogin', request);
      const query = request.url.includes('?') ? request.url.slice(request.url.indexOf('?')) : '';
      const answered = await askIssuer(request, (signal) => logins.answered(loginOf(request), query, originOf(request), signal));
      switch (answered.kind) {
        case 'asking':
          return reply.redirect('/panel/?page=consent', 303);
        case 'browser':
          // the cookie is replaced, so nobody could end this browser's earlier session
          await sessions.endByCookie(cookieIn(request.headers.cookie, cookies().session) ?? '');
          forget(reply, cookies().login);
          set(reply, cookies().session, answered.cookie, BROWSER_MS);
          return reply.redirect(answered.returnTo, 303);
        case 'failed':
          forget(reply, cookies().login);
          if (answered.redirect === undefined) throw answered.error;
          return reply.redirect(answered.redirect, 303);
      }
    }),
    getConsent: async (request, reply) =>
      reply.send(await logins.consent(loginOf(request), AbortSignal.any([closing, AbortSignal.timeout(READ_MAX_MS)]))),
    async decideLogin(request, reply) {
      requireOwnPage(request, identity.publicUrl());
      const { login, allow } = loginRows['POST /login/consent'].body.parse(read('decideLogin', request).body);
      const decision = await logins.decide(loginOf(request), { token: login, allow }, originOf(request));
      forget(reply, cookies().login);
      return reply.send(decision);
    },
    async createToken(request, reply) {
      const body = loginRows['POST /login/token'].body.parse(read('createToken', request).body);
      const { token, lifeMs } = await sessionFor(body, originOf(request));
      return reply.send({ access_token: token, token_type: 'Bearer', expires_in: lifeMs / 1_000 });
    },
    async logOut(request, reply) {
      const actor = callers.actorOf(request);
      if (actor.kind === 'session') await logins.logOut(actor, originOf(request));
      forget(reply, cookies().session);
      return reply.code(204).send();
    },
  };
}

/**
 * The same request at the registry's own address, if it came to another name of this machine. Browsers don't send cookies of `localhost`
 * to 127.0.0.1, to which the issuer returns them.
 */
function ownAddress({ headers, url }: FastifyRequest, publicUrl: string): string | undefined {
  const own = new URL(publicUrl);
  const isOther = headers.host !== undefined && headers.host.toLowerCase() !== own.host;
  const isLocal = LOOPBACK_HOST.test(headers.host ?? '');
  // only on the same port: through a tunnel or proxy on another port, the browser would come back here
  const isSamePort = headers.host?.split(':').at(-1) === own.port;
  return own.protocol === 'http:' && isOther && isLocal && isSamePort ? `${own.origin}${url}` : undefined;
}

/** The login that the request means. Throws `request.invalid`. */
function loginRequestOf(query: AuthorizeRequest): LoginRequest {
  const {
    code_challenge: challenge,
    code_challenge_method: method,
    state,
    redirect_uri: redirectUri,
    machine,
    return_to: returnTo,
  } = query;
  if (returnTo !== undefined) {
    if (Object.keys(query).length === 1) return { flow: 'browser', returnTo };
    throw new RequestError(
      'request.invalid',
      'return_to: must be the only parameter; a client sends code_challenge, state and redirect_uri instead',
    );
  }
  if (challenge === undefined || method === undefined) {
    throw new RequestError('request.invalid', 'code_challenge and code_challenge_method=S256: must be given');
  }
  const client = { challenge, ...(machine !== undefined && { machine }) };
  if (query.no_browser === 'true') {
    if (redirectUri === undefined) return { flow: 'paste', ...client };
    throw new RequestError('request.invalid', 'redirect_uri: must not be given with no_browser=true, because a person copies the code');
  }
  if (redirectUri === undefined || state === undefined) {
    throw new RequestError('request.invalid', 'redirect_uri and state: must be given, unless no_browser=true');
  }
  return { flow: 'client', ...client, redirectUri, clientState: state };
}

function sessionAnswer(actor: Actor, more: Pick<SessionAnswer, 'reads' | 'advice' | 'version' | 'catalog_url'>): SessionAnswer {
  const { kind } = actor;
  if (kind === 'local')
    return { user: { id: 'local', email: nameOfActor(actor) }, role: 'admin', scopes: scopesOfRole('admin'), kind, ...more };
  const { userId, email, isUnverified, role } = actor;
  const scopes = kind === 'api_key' ? actor.scopes : scopesOfRole(role);
  return { user: { id: userId, email, email_verified: isUnverified !== true }, role, scopes, kind, ...more };
}

/** What a person sees when a login fails: a text, in which nothing from outside is markup. */
function failureText({ detail, code, advice }: Problem): string {
  const lines = [`The login did not succeed: ${detail} (${code}).`, advice, 'You can close this page and begin the login again.'];
  return `${lines.filter((line) => line !== undefined).join('\n\n')}\n`;
}
