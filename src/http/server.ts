/** What both listeners share: bounds, headers, problem documents. */
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { RequestError } from '../domain/request-error.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { isUnexpected, problemOf, PROBLEM_TYPE, responseToBroken, type Problem } from './problem.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface Listener {
  /** Resolves to the address that is listened on. Rejects with the system's error (EADDRINUSE …). */
  listen(): Promise<Address>;
  close(): Promise<void>;
}

/** Requests are small: a thousand ids of dead letters are 40 kB. */
const BODY_BYTES_MAX = 65_536;
/** A request is received in this time or refused. */
const REQUEST_TIMEOUT_MS = 30_000;
/** A connection on which nothing moves is closed: longer than any verb takes. */
const CONNECTION_TIMEOUT_MS = 60_000;
/** Far more than probes, scrapes and one operator need. */
const CONNECTIONS_MAX = 256;
/** Bucket names have up to 255 characters. */
const PARAM_LENGTH_MAX = 300;

/** Answers are data: no page shows, frames, runs or reads them. */
const safeHeaders = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
};

/** A server without routes. Every error becomes a problem document; what nobody foresaw is logged. */
export function createServer(telemetry: Telemetry): FastifyInstance {
  const app = fastify({
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    // a path that cannot be decoded reaches no hook and no route
    frameworkErrors: (error, _request, reply) => {
      void reply.headers(safeHeaders);
      sendProblem(reply, problemOf(error));
    },
    clientErrorHandler: ({ code }, socket) => {
      if (socket.writable) socket.end(responseToBroken(code, safeHeaders));
      else socket.destroy();
    },
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  app.removeContentTypeParser('text/plain');
  app.addHook('onRequest', async (_request, reply) => {
    void reply.headers(safeHeaders);
  });
  app.setErrorHandler((error, _request, reply) => {
    // whoever went away has interrupted it himself
    return sendProblem(reply, reply.raw.destroyed ? problemOf(error) : loggedProblemOf(error, telemetry));
  });
  return app;
}

/** The problem document of whatever was thrown; what nobody foresaw is logged. */
export function loggedProblemOf(error: unknown, telemetry: Telemetry): Problem {
  const problem = problemOf(error);
  if (!isUnexpected(problem)) return problem;
  const text = error instanceof Error ? `${error.name}: ${error.message}` : 'not an error';
  telemetry.requestFailed('answer a request', 'internal.unexpected', text);
  return problem;
}

/** Answers what no route answers: 405 with Allow where the path has other methods, else 404. */
export function answerUnknown(app: FastifyInstance, routes: readonly { readonly method: string; readonly path: string }[]): void {
  const patterns = routes.map(({ method, path }) => ({ method, pattern: new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`) }));
  app.setNotFoundHandler((request: FastifyRequest, reply) => {
    const path = request.url.split('?')[0] ?? '';
    const allowed = patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
    if (allowed.length === 0)
      return sendProblem(reply, problemOf(new RequestError('request.not-found', 'there is nothing at this path; see /openapi.json')));
    const withHead = allowed.includes('GET') ? [...allowed, 'HEAD'] : allowed;
    void reply.header('allow', withHead.join(', '));
    return sendProblem(reply, problemOf(new RequestError('request.method-not-allowed', `this path takes ${withHead.join(', ')}`)));
  });
}

function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).type(PROBLEM_TYPE).send(JSON.stringify(problem));
}

/** Listening and closing. */
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
