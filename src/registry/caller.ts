/** Callers: who sends a request, and whether they may call the operation. */
import { hostname } from 'node:os';
import type { FastifyRequest } from 'fastify';
import type { PlacedRow } from './contract/contract.ts';
import type { Actor } from '../base/actor.ts';
import { AUTHENTICATION_FAILED, refusalOf, type Refusal } from '../identity/authorise.rules.ts';
import { tokenPrefixes } from '../identity/tokens.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { AuthenticateKey } from '../identity/authenticate-key.ts';
import type { KeyUses, FailedAttempts } from '../identity/audit.ts';
import type { Sessions } from '../identity/logins.ts';
import { requireOwnPage } from './guard.ts';
import { isIP, type Socket } from 'node:net';

/** How callers are identified. */
export interface CallerParts {
  readonly sessions: Pick<Sessions, 'check'>;
  /** Default: no key is valid. */
  readonly authenticateKey?: AuthenticateKey | undefined;
  /** Counts refused tokens; keys count themselves. */
  readonly attempts?: Pick<FailedAttempts, 'failed'> | undefined;
  /** Counts uses of API keys. */
  readonly keyUses?: Pick<KeyUses, 'used'> | undefined;
  /** The reverse proxies, as CIDRs. */
  readonly trustedProxies: readonly string[];
  /** The registry's address for browsers. */
  readonly publicUrl: () => string;
}

export interface Callers {
  /**
   * Finds out who sends the request, and throws unless the operation is permitted to them: `authentication.failed`,
   * `authorization.denied` or `session.required`; `request.invalid` and `request.forbidden-origin` for a cookie that is sent as
   * it must not be. The use of an API key is counted, even a refused one.
   */
  admit(request: FastifyRequest, row: Pick<PlacedRow, 'scope' | 'bearerOnly' | 'operation'>): Promise<void>;
  /** Who sent a request, even a refused one. Without authentication, it is a program on this machine, whose user is unknown. */
  actorOf(request: FastifyRequest): Actor;
}

/** Reading a session and its user takes milliseconds. A hanging store must not hold the request for longer than an operation. */
const READ_MAX_MS = 30_000;

/** Creates the callers. Without `parts` callers are not authenticated. `isOperators`: whether a connection came through the Unix socket. */
export function createCallers(parts: CallerParts | undefined, isOperators: (socket: Socket) => boolean = () => false): Callers {
  const known = new WeakMap<FastifyRequest, Actor>();
  const authenticate = parts === undefined ? undefined : createAuthenticate(parts);

  function located(actor: Actor, request: FastifyRequest): Actor {
    const address = addressOf(request);
    return address === undefined ? actor : { ...actor, address };
  }

  async function actorBehind(request: FastifyRequest, bearerOnly: boolean): Promise<Actor | undefined> {
    if (request.headers.authorization === undefined && isOperators(request.raw.socket)) return { ...localActor(), isOperator: true };
    return authenticate === undefined ? anonymous(request) : authenticate(request, bearerOnly, AbortSignal.timeout(READ_MAX_MS));
  }

  return {
    async admit(request, { scope, bearerOnly, operation }) {
      // anyone may call it, so an ended credential doesn't matter
      if (scope === 'none') return;
      const found = await actorBehind(request, bearerOnly === true);
      const actor = found && located(found, request);
      if (actor !== undefined) known.set(request, actor);
      const refusal = refusalOf(scope, actor);
      if (actor?.kind === 'api_key') parts?.keyUses?.used(actor, operation, refusal?.code);
      if (refusal !== undefined) throw errorOf(refusal);
    },
    actorOf: (request) => known.get(request) ?? located(localActor(), request),
  };
}

function localActor() {
  return { kind: 'local', host: hostname() } as const;
}

/** Without identity: a program on this machine. Undefined if it sends a credential, which this registry cannot check. */
function anonymous({ headers }: FastifyRequest): Actor | undefined {
  return headers.authorization === undefined ? localActor() : undefined;
}

function errorOf({ code, detail }: Refusal): RequestError {
  return new RequestError(code, detail);
}

/** Finds out who sends a request; undefined: it has no credential. Throws if the credential is invalid. */
function createAuthenticate({ sessions, authenticateKey, attempts, publicUrl }: CallerParts) {
  async function byBearer(request: FastifyRequest, header: string, signal: AbortSignal): Promise<Actor | undefined> {
    const token = /^Bearer\s+(\S+)\s*$/i.exec(header)?.[1] ?? '';
    const address = addressOf(request);
    if (!token.startsWith(tokenPrefixes.client)) return authenticateKey?.(token, signal, address);
    const checked = await sessions.check('client', token, signal);
    if (typeof checked !== 'string') return checked;
    attempts?.failed({ address, reason: `session token ${checked}` });
    return undefined;
  }

  return async function authenticate(request: FastifyRequest, bearerOnly: boolean, signal: AbortSignal): Promise<Actor | undefined> {
    const { authorization, cookie: header } = request.headers;
    const cookie = cookieIn(header, cookieNamesOf(publicUrl()).session);
    if (authorization !== undefined && cookie !== undefined) {
      throw new RequestError('request.invalid', 'the request has a bearer token and a session cookie: send only one of them');
    }
    if (authorization !== undefined) {
      const actor = await byBearer(request, authorization, signal);
      if (actor === undefined) throw errorOf(AUTHENTICATION_FAILED);
      return actor;
    }
    if (cookie === undefined || bearerOnly) return undefined;
    requireOwnPage(request, publicUrl());
    // an ended cookie is no attempt to get in: browsers keep sending it until the next login
    const checked = await sessions.check('browser', cookie, signal);
    return typeof checked === 'string' ? undefined : checked;
  };
}

/** Where a request came from: the address that Fastify finds behind the trusted proxies; undefined if the connection is closed. */
export function addressOf({ ip, socket }: Pick<FastifyRequest, 'ip' | 'socket'>): string | undefined {
  // some proxies add the port: 192.0.2.1:4711, [2001:db8::1]:4711
  const found = /^\[([^\]]*)\](?::\d+)?$/.exec(ip)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(ip)?.[1] ?? ip;
  // a proxy that we trust wrote it, so a text that is not an address is a mistake of its settings: the proxy is known at least
  const address = isIP(found) === 0 ? socket.remoteAddress : found;
  // a listener on IPv6 shows an IPv4 address as ::ffff:127.0.0.1
  return address?.replace(/^::ffff:(?=\d+\.)/i, '');
}

export function cookieNamesOf(publicUrl: string): { readonly session: string; readonly login: string } {
  const { protocol, port } = new URL(publicUrl);
  if (protocol === 'https:') return { session: '__Host-tally', login: '__Host-tally-login' };
  return { session: `tally-${port || '80'}`, login: `tally-login-${port || '80'}` };
}

/** The Set-Cookie header of a cookie. Lax: the browser sends it when the issuer sends the browser back, and not with requests of other sites. */
export function cookieOf(publicUrl: string, name: string, value: string, maxAgeMs: number): string {
  const secure = publicUrl.startsWith('https:') ? '; Secure' : '';
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${Math.floor(maxAgeMs / 1_000)}${secure}`;
}

/** A cookie's value; undefined if the request has none, or several of that name, because another site may have set one. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  const values = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}
