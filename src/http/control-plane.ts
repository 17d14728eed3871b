/** The control plane: parse, authorise, call, answer. Until callers are authenticated it serves this machine only. */
import type { FastifyReply } from 'fastify';
import { RequestError } from '../domain/request-error.ts';
import type { Control } from '../pipeline/control/control.ts';
import { inTime } from '../pipeline/serving/in-time.ts';
import type { Clock } from '../pipeline/ports/clock.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { Readiness } from '../pipeline/serving/readiness.ts';
import { requireJsonBody, requireLocalCaller } from './guard.ts';
import { addHealthRoutes, healthPaths, type MetricsSource } from './health-routes.ts';
import { createJobEvents } from './job-events.ts';
import { openApiOf } from './openapi.ts';
import type { Route } from './route.ts';
import { createRoutes } from './routes.ts';
import { answerUnknown, createServer, listenerOf, type Address, type Listener } from './server.ts';

interface ControlPlaneParts {
  readonly address: Address;
  readonly control: Control;
  readonly readiness: Readiness;
  readonly metrics: MetricsSource;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly version: string;
  /** Default: {@link VERB_TIMEOUT_MS}. */
  readonly verbTimeoutMs?: number;
}

/** A verb ends in this time: searches take milliseconds, browsing a thousand dead letters some seconds. */
const VERB_TIMEOUT_MS = 30_000;

/** Creates the listener of the control plane. */
export function createControlPlane(parts: ControlPlaneParts): Listener {
  const { address, control, readiness, metrics, telemetry, clock, version, verbTimeoutMs = VERB_TIMEOUT_MS } = parts;
  const app = createServer(telemetry);
  const closing = new AbortController();
  const routes = createRoutes(control);
  const jobEvents = createJobEvents({ jobs: control.jobs, clock, telemetry, closing: closing.signal });
  const described = [...routes, jobEvents.route];
  const openApi = openApiOf(described, version);

  app.addHook('onRequest', async (request) => {
    requireLocalCaller(request);
    requireJsonBody(request);
  });
  app.addHook('preClose', async () => {
    closing.abort(new RequestError('request.interrupted', 'the process stops'));
    await jobEvents.drain();
  });
  addHealthRoutes(app, { readiness, metrics });
  app.get('/config.json', (request, reply) => reply.send({ registryUrl: `http://${request.headers.host ?? ''}`, version }));
  app.get('/openapi.json', (_request, reply) => reply.send(openApi));
  for (const route of routes) app.route({ method: route.method, url: route.path, handler: handlerOf(route) });
  app.get(jobEvents.route.path, (request, reply) => jobEvents.answer(request, reply));
  answerUnknown(app, [...described, ...[...healthPaths, '/config.json', '/openapi.json'].map((path) => ({ method: 'GET', path }))]);

  function handlerOf(route: Route): Parameters<typeof app.route>[0]['handler'] {
    return async (request, reply) => {
      const signal = AbortSignal.any([closing.signal, endOf(reply, verbTimeoutMs)]);
      const answer = await inTime(route.run(request, signal), signal);
      return reply.code(route.status).send(route.status === 204 ? undefined : answer);
    };
  }

  return listenerOf(app, address);
}

/** Aborted when the verb has taken its time, or nobody waits for its answer any longer. Not Fastify's `request.signal`: that one is aborted as soon as the request's body was read. */
function endOf(reply: FastifyReply, timeoutMs: number): AbortSignal {
  const end = new AbortController();
  const slow = new RequestError('request.timeout', `it took longer than ${timeoutMs / 1_000} s: try again, or ask for less`);
  const timer = setTimeout(() => end.abort(slow), timeoutMs);
  reply.raw.once('close', () => {
    clearTimeout(timer);
    end.abort(new RequestError('request.interrupted', 'the caller has gone'));
  });
  return end.signal;
}
