/** Protects against other sites' pages, which can make a browser send requests to the registry. Without authentication, nothing else does. */
import type { FastifyRequest } from 'fastify';
import { RequestError } from '../base/request-error.ts';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressGroupOf } from '../identity/address-group.rules.ts';

/** This machine's host names. Any port is allowed, because a tunnel may use another one. */
export const LOOPBACK_HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/i;

/**
 * Throws `request.forbidden-origin` unless the Host header names loopback. This stops DNS rebinding, in which a foreign name resolves to
 * this machine so that its pages can read the answers.
 */
export function requireLocalHost({ headers }: Pick<FastifyRequest, 'headers'>): void {
  if (LOOPBACK_HOST.test(headers.host ?? '')) return;
  throw new RequestError(
    'request.forbidden-origin',
    'the Host header must be 127.0.0.1, localhost or [::1]: this address serves only this machine',
  );
}

/**
 * Throws `request.forbidden-origin` unless {@link requireLocalHost} is satisfied and the request comes from a program or from
 * a page of the same host and port.
 */
export function requireLocalCaller(request: FastifyRequest): void {
  const host = (request.headers.host ?? '').toLowerCase();
  requireLocalHost(request);
  if (!isForAnyPage(request)) requireSite(request, [`http://${host}`, `https://${host}`]);
}

/** The document that any page may read, so that a catalog's clients find the registry. */
export function isForAnyPage({ routeOptions }: Pick<FastifyRequest, 'routeOptions'>): boolean {
  return routeOptions.url === '/config.json';
}

/**
 * Throws `request.forbidden-origin` for a request from another site's page. Browsers may navigate here from other sites, as from the
 * issuer to the callback.
 */
export function requireOwnSite(request: FastifyRequest, publicUrl: string): void {
  const { headers, method } = request;
  const isVisit = method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  requireSite(request, [new URL(publicUrl).origin], isVisit);
}

/** Programs send neither Origin nor Sec-Fetch-Site; browsers send them with every request that matters. */
function requireSite({ headers }: FastifyRequest, origins: readonly string[], isVisit = false): void {
  if (headers.origin !== undefined && !origins.includes(headers.origin.toLowerCase())) {
    throw new RequestError('request.forbidden-origin', 'requests from web pages of other origins are refused');
  }
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !isVisit) {
    throw new RequestError('request.forbidden-origin', 'cross-site requests are refused');
  }
}

/**
 * Throws `request.forbidden-origin` for a request by cookie that may change something, unless a script of the registry's own
 * page sent it: with the header X-Tally-CSRF, which forms cannot send, and from the same origin as the browser states it.
 */
export function requireOwnPage({ headers, method }: FastifyRequest, publicUrl: string): void {
  if (method === 'GET' || method === 'HEAD') return;
  const isSame = headers['sec-fetch-site'] === 'same-origin' || headers.origin?.toLowerCase() === new URL(publicUrl).origin;
  const isJson = /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '');
  if (isSame && headers['x-tally-csrf'] !== undefined && (isJson || headers['content-type'] === undefined)) return;
  throw new RequestError(
    'request.forbidden-origin',
    "a request with a cookie must come from one of the registry's own pages, with the header X-Tally-CSRF and a JSON body",
  );
}

/** The headers that decide who may do what. Node keeps the first of several, but a proxy in front may have checked another. */
const ONCE: ReadonlySet<string> = new Set(['host', 'authorization', 'origin', 'sec-fetch-site', 'x-tally-csrf', 'content-type']);

/** Throws `request.invalid` if the request has one of these headers more than once. */
export function requireSingleHeaders({ raw: { rawHeaders } }: Pick<FastifyRequest, 'raw'>): void {
  const names = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
  const twice = names.find((name, at) => ONCE.has(name) && names.indexOf(name) !== at);
  if (twice !== undefined) throw new RequestError('request.invalid', `the header ${twice} must not be given more than once`);
}

/** The headers that reverse proxies add: the standard one (RFC 7239), those in use before it, and the one of HTTP itself. */
const OF_PROXIES = new Set(['forwarded', 'via', 'x-real-ip']);

/**
 * Throws `request.forwarded` for a request that came through a reverse proxy. A proxy on this machine may serve callers elsewhere, and
 * with its usual settings would expose a control plane that doesn't authenticate them.
 */
export function requireDirectCaller({ headers }: FastifyRequest): void {
  const header = Object.keys(headers).find((name) => OF_PROXIES.has(name) || name.startsWith('x-forwarded-'));
  if (header === undefined) return;
  throw new RequestError(
    'request.forwarded',
    `the request came through a reverse proxy (header ${header}), and the control plane cannot identify its callers: use a tunnel (ssh -L, kubectl port-forward)`,
  );
}

/**
 * Throws `request.unsupported-media-type` for a body that is not JSON, because other sites' forms can send other types without a
 * preflight request, and `request.invalid` for a GET with a body.
 */
export function requireJsonBody({ headers, method, raw }: FastifyRequest): void {
  const type = headers['content-type'];
  if (method === 'GET' || method === 'HEAD') {
    if (hasBody(raw)) throw new RequestError('request.invalid', `a ${method} request takes no body`);
    return;
  }
  if (type === undefined ? !hasBody(raw) : /^application\/json\s*(;|$)/i.test(type)) return;
  throw new RequestError('request.unsupported-media-type', 'the body must be application/json');
}

/**
 * Bounds a listener's connections, so that idle ones never keep others out. A connection is served from the moment that a request has
 * arrived in full, body included, until its answer is complete; otherwise it waits. A client that sends headers without a body, or
 * doesn't read its answer, waits just like a silent one.
 */

/** A connection's unfinished requests; a client may send several before it reads an answer. */
type Exchanges = Map<IncomingMessage, ServerResponse>;

/**
 * Closes a waiting connection when there are more than `connectionsMax`: among those of the network with the most, the one that has been
 * idle longest. So a network only takes the place of one that has more connections. Behind a reverse proxy, where all come from one
 * address, the oldest is closed.
 */
export function boundConnections(server: Server, connectionsMax: number): void {
  /** In the order of their last beginning or end of a request. */
  const connections = new Map<Socket, Exchanges>();

  function moveToEnd(socket: Socket, change: (exchanges: Exchanges) => void): void {
    const exchanges = connections.get(socket);
    if (exchanges === undefined) return;
    change(exchanges);
    connections.delete(socket);
    connections.set(socket, exchanges);
  }

  server.on('connection', (socket: Socket) => {
    connections.set(socket, new Map());
    socket.once('close', () => connections.delete(socket));
    if (connections.size <= connectionsMax) return;
    const waiting = [...connections].filter(([, exchanges]) => !isServed(exchanges)).map(([each]) => each);
    const ofNetworks = [...Map.groupBy(waiting, ({ remoteAddress = '' }) => addressGroupOf(remoteAddress)).values()];
    ofNetworks.toSorted((a, b) => b.length - a.length)[0]?.[0]?.destroy();
  });
  server.on('request', (request, response) => {
    const { socket } = request;
    moveToEnd(socket, (exchanges) => void exchanges.set(request, response));
    response.once('close', () => moveToEnd(socket, (exchanges) => void exchanges.delete(request)));
  });
}

function isServed(exchanges: Exchanges): boolean {
  return [...exchanges].some(([request, response]) => request.complete && !response.writableEnded);
}

/** Whether a body follows the headers. */
function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
