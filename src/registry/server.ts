/** What all listeners share: limits, headers, problem documents, and routes made of the contract's rows. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest, type RouteOptions } from 'fastify';
import type { PlacedRow } from './contract/contract.ts';
import { type Problem, PROBLEM_MEDIA, statusOf } from './contract/problem.ts';
import { RequestError, type RequestErrorCode } from '../base/request-error.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { requireSingleHeaders, boundConnections } from './guard.ts';
import { pageOfCode } from '../base/doc-pages.ts';
import { FaultError, faults, type FaultCode } from '../base/fault.ts';
import { numericFields } from './contract/json-schema.ts';
import { checkRequest, type AnyRequest } from './contract/row.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Listener {
  /** Resolves to the bound address. Rejects with the system's error (EADDRINUSE …). */
  listen(): Promise<Address>;
  close(): Promise<void>;
}

/** Requests are small: a thousand ids of dead letters are 40 kB. */
const BODY_BYTES_MAX = 65_536;
/**
 * A request is refused if its headers or body don't arrive within this time. It is long, because a caller on an overloaded machine may
 * take many seconds from its connection to its request. In the meantime, idle connections don't block others (guard.ts).
 */
const REQUEST_TIMEOUT_MS = 30_000;
/** How long a refused connection stays open, so that its client can read why. */
const REFUSED_MS = 1_000;
/** How often Node checks for late requests; its default is 30 s. */
const TIMEOUTS_CHECK_MS = 1_000;
/**
 * How long a connection waits for its next request: longer than the 60 s for which load balancers and reverse proxies keep an idle
 * connection by default. A request sent while its connection is being closed is lost, and its caller gets a 502.
 */
const KEEP_ALIVE_MS = 75_000;
/** A silent connection is closed after this time, which is longer than any operation takes. */
const CONNECTION_TIMEOUT_MS = 60_000;
/** Far more than probes, scrapes and operators need. Above it, a waiting connection is closed (guard.ts). */
const CONNECTIONS_MAX = 256;
/** About as long as the callers already waiting take. */
const RETRY_AFTER_S = 1;
/** Bucket names have up to 255 characters. */
const PARAM_LENGTH_MAX = 300;

/** The headers of every answer. Answers are data, which browsers must not render, frame, run or share. */
const safeHeaders = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
};

interface ServerParts {
  readonly telemetry: Telemetry;
  /** The server's operations. */
  readonly rows: readonly Pick<PlacedRow, 'method' | 'path'>[];
  /** Called first. Throws for requests that must not be answered. */
  readonly guard?: (request: FastifyRequest) => void;
  /** The reverse proxies, as CIDRs: the caller is the right-most address of X-Forwarded-For that isn't one of them. */
  readonly trustedProxies?: readonly string[] | undefined;
  /** See REQUEST_TIMEOUT_MS, the default. */
  readonly requestTimeoutMs?: number | undefined;
  /** See BODY_BYTES_MAX, the default. */
  readonly bodyBytesMax?: number;
}

/**
 * Creates a server without routes. It accepts only routes of its rows. Every error becomes a problem document, and
 * unexpected errors are logged.
 */
export function createServer(parts: ServerParts): FastifyInstance {
  const { telemetry, rows: served, guard = () => undefined, trustedProxies = [] } = parts;
  const { requestTimeoutMs = REQUEST_TIMEOUT_MS, bodyBytesMax = BODY_BYTES_MAX } = parts;
  const app = fastify({
    trustProxy: [...trustedProxies],
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: { headersTimeout: requestTimeoutMs, connectionsCheckingInterval: TIMEOUTS_CHECK_MS },
    forceCloseConnections: true,
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    // a path that cannot be decoded reaches neither hooks nor routes
    frameworkErrors: (error, _request, reply) => {
      void reply.headers(safeHeaders);
      sendProblem(reply, problemOf(error));
    },
    clientErrorHandler: ({ code }, socket) => refuseBroken(socket, code),
  });
  boundConnections(app.server, CONNECTIONS_MAX);
  app.removeContentTypeParser('text/plain');
  app.addHook('onRoute', (route) => refuseWithoutRow(served, route));
  const answerUnknown = unknownAnswerer(served);
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers(safeHeaders);
    requireSingleHeaders(request);
    guard(request);
    // before the body is parsed, because for some methods Fastify would report body errors first
    if (!request.is404) return undefined;
    // the unread body makes the connection useless for another request, and it may never end, so the connection must close
    void reply.header('connection', 'close');
    reply.raw.once('finish', () => request.raw.destroy());
    return answerUnknown(request, reply);
  });
  app.setNotFoundHandler(answerUnknown);
  app.setErrorHandler((error, _request, reply) => {
    // the caller caused this error by closing the connection
    return sendProblem(reply, reply.raw.destroyed ? problemOf(error) : loggedProblemOf(error, telemetry));
  });
  return app;
}

/** Refuses bytes that are not a request, or a late request. `code` is Node's parser's. */
function refuseBroken(socket: Duplex, code: string | undefined): void {
  if (!socket.writable) return void socket.destroy();
  socket.end(responseToBroken(code, safeHeaders));
  setTimeout(() => socket.destroy(), REFUSED_MS).unref();
}

/** An error's problem document. Unexpected errors are logged. */
export function loggedProblemOf(error: unknown, telemetry: Telemetry): Problem {
  const answer = problemOf(error);
  if (answer.code === UNEXPECTED) telemetry.requestFailed('answer a request', error);
  return answer;
}

/**
 * Refuses a route without a row, so that only paths of the contract are served. Every path with GET also has HEAD.
 */
function refuseWithoutRow(rows: ServerParts['rows'], { method, url }: RouteOptions): void {
  for (const each of [method].flat()) {
    const name = each === 'HEAD' ? 'GET' : each;
    if (!rows.some((row) => row.method === name && row.path === url.replaceAll(/:(\w+)/g, '{$1}'))) {
      throw new TypeError(`${each} ${url} has no row in the contract: add one in src/registry/contract`);
    }
  }
}

/** Answers requests without a route: 405 with Allow if the path has other methods, otherwise 404. */
function unknownAnswerer(served: ServerParts['rows']): (request: FastifyRequest, reply: FastifyReply) => FastifyReply {
  const patterns = served.map(({ method, path }) => ({ method, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }));
  return (request, reply) => {
    const path = request.url.split('?')[0] ?? '';
    const allowed = patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    if (allowed.length === 0) {
      return sendProblem(
        reply,
        problemOf(new RequestError('request.not-found', 'this path does not exist; /openapi.json lists all paths')),
      );
    }
    const methods = (allowed.includes('GET') ? [...allowed, 'HEAD'] : allowed).join(', ');
    void reply.header('allow', methods);
    return sendProblem(reply, problemOf(new RequestError('request.method-not-allowed', `this path accepts only ${methods}`)));
  };
}

function sendProblem(reply: FastifyReply, sent: Problem): FastifyReply {
  if (sent.code === 'request.overloaded') void reply.header('retry-after', RETRY_AFTER_S);
  if (typeof sent['retry_after_s'] === 'number') void reply.header('retry-after', sent['retry_after_s']);
  if (sent.code === 'authentication.failed') void reply.header('www-authenticate', 'Bearer');
  return reply.code(sent.status).type(PROBLEM_TYPE).send(JSON.stringify(sent));
}

/** The URL of an address; an IPv6 host stands in brackets. */
export function urlOf({ host, port }: Address): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Starts and closes the listener. */
export function listenerOf(app: FastifyInstance, { host, port }: Address): Listener {
  return {
    async listen() {
      await app.listen({ host, port });
      const bound = app.server.address();
      return { host, port: bound === null || typeof bound === 'string' ? port : bound.port };
    },
    close: () => app.close(),
  };
}

/** Errors as problem documents (RFC 9457): what happened, to which thing, what to do, and the code. */

const PROBLEM_TYPE = `${PROBLEM_MEDIA}; charset=utf-8`;

const UNEXPECTED = 'internal.unexpected';

/** Fastify's own errors by their codes, in words that repeat no text of the request. */
const frameworkErrors: ReadonlyMap<unknown, readonly [RequestErrorCode, string]> = new Map([
  ['FST_ERR_BAD_URL', ['request.invalid', 'the path is not percent-encoded UTF-8']],
  ['FST_ERR_MAX_PARAM_LENGTH', ['request.not-found', 'nothing has a name as long as the one in the path']],
  ['FST_ERR_CTP_BODY_TOO_LARGE', ['request.too-large', 'the body is too large for this operation']],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', ['request.unsupported-media-type', 'the body must be application/json']],
  ['FST_ERR_CTP_EMPTY_JSON_BODY', ['request.invalid', 'the body is empty although its content type is application/json']],
  ['FST_ERR_CTP_INVALID_JSON_BODY', ['request.invalid', 'the body is not valid JSON, or has a field __proto__']],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', ['request.invalid', "the body's length differs from Content-Length"]],
] satisfies [string, [RequestErrorCode, string]][]);

/** Returns an error's problem document, without details if the error is unexpected. */
function problemOf(error: unknown): Problem {
  if (error instanceof RequestError) return { ...error.extra, ...problem(statusOf(error.code), error.code, error.message) };
  if (error instanceof FaultError) return problemOfFault(error);
  const [code, detail] = (error instanceof Error && 'code' in error && frameworkErrors.get(error.code)) || [];
  return code === undefined || detail === undefined ? unexpected() : problem(statusOf(code), code, detail);
}

/** The raw response to bytes that are not an HTTP request, or to a late one. `code` is Node's parser's. The connection closes afterwards. */
function responseToBroken(code: string | undefined, headers: Readonly<Record<string, string>>): string {
  const broken = brokenRequests.get(code) ?? problem(400, 'request.invalid', 'the bytes received are not an HTTP request');
  const body = JSON.stringify(broken);
  const own = { 'content-type': PROBLEM_TYPE, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries({ ...headers, ...own }).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${broken.status} ${broken.title}`, ...lines, '', body].join('\r\n');
}

const brokenRequests: ReadonlyMap<string | undefined, Problem> = new Map([
  ['HPE_HEADER_OVERFLOW', problem(431, 'request.too-large', 'the headers are larger than 16 KiB')],
  ['ERR_HTTP_REQUEST_TIMEOUT', problem(408, 'request.timeout', 'the request was not received in time')],
]);

function problemOfFault({ code, reason }: FaultError): Problem {
  if (code === UNEXPECTED) return unexpected();
  return { ...problem(statusOf(code), code, reason), advice: faults[code].advice };
}

function unexpected(): Problem {
  return problem(500, UNEXPECTED, "An unexpected error occurred. The daemon's log has the details.");
}

function problem(status: number, code: RequestErrorCode | FaultCode, detail: string): Problem {
  return { type: pageOfCode(code), title: STATUS_CODES[status] ?? 'Error', status, detail, code };
}

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Adds a route for each row. `admit` throws, before the body is read, for callers who may not use it. */
export function addRoutes<Name extends string>(
  app: FastifyInstance,
  rows: readonly PlacedRow<Name>[],
  handlerOf: (row: PlacedRow<Name>) => Handler,
  admit: (request: FastifyRequest, row: PlacedRow<Name>) => Promise<void> = async () => undefined,
): void {
  for (const row of rows) {
    app.route({
      method: row.method,
      url: row.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      onRequest: (request) => admit(request, row),
      handler: handlerOf(row),
    });
  }
}

/** Creates the function that reads a request as its row documents it. It throws as {@link checkRequest} does. */
export function requestReader(row: PlacedRow): (request: FastifyRequest) => AnyRequest {
  // computed at the first request, because computing all rows' fields would take a tenth of a start's CPU time
  let numbers: ReadonlySet<string> | undefined;
  return ({ params, query, body }) => {
    numbers ??= numericFields(row.query);
    return checkRequest(row, { params, query: withNumbers(query, numbers), body });
  };
}

/** Converts a URL's texts to numbers. A text that isn't a whole number stays unchanged, and the check refuses it. */
function withNumbers(query: unknown, numbers: ReadonlySet<string>): unknown {
  if (typeof query !== 'object' || query === null || numbers.size === 0) return query;
  return Object.fromEntries(
    Object.entries(query).map(([name, value]: [string, unknown]) => [
      name,
      numbers.has(name) && typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value,
    ]),
  );
}
