/**
 * The listener of the control plane: it checks each request by its row of the contract, calls the verb, and answers.
 * Until callers are authenticated it serves this machine only.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  rows,
  rowsOfListener,
  rowsOfVerbs,
  type AnyOperation,
  type Context,
  type ListenerName,
  type PlacedRow,
  type VerbName,
  type Verbs,
} from '../api/contract.ts';
import { openApiOf } from '../api/openapi.ts';
import { RequestError } from '../domain/request-error.ts';
import type { Clock } from '../pipeline/ports/clock.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { inTime } from '../pipeline/serving/async.ts';
import { callerOf } from './caller.ts';
import { requireDirectCaller, requireJsonBody, requireLocalCaller } from './guard.ts';
import { healthHandlers, type HealthParts } from './health.ts';
import { createJobEvents } from './job-events.ts';
import { addRoutes, requestReader, type Handler } from './routes.ts';
import { createSearches } from './searches.ts';
import { createServer, listenerOf, type Address, type Listener } from './server.ts';

interface ControlPlaneParts extends HealthParts {
  readonly address: Address;
  readonly verbs: Verbs;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  readonly version: string;
  /** Default: {@link VERB_TIMEOUT_MS}. */
  readonly verbTimeoutMs?: number;
}

/** A verb that takes longer is aborted. Searches take milliseconds; reading a thousand dead letters takes some seconds. */
const VERB_TIMEOUT_MS = 30_000;

/** Creates the listener of the control plane. */
export function createControlPlane(parts: ControlPlaneParts): Listener {
  const { address, verbs, readiness, metrics, telemetry, clock, version, verbTimeoutMs = VERB_TIMEOUT_MS } = parts;
  const app = createServer({ telemetry, rows, guard: requireKnownWay });
  const runSearch = createSearches();
  const closing = new AbortController();
  const getJob = (id: string, context: Context) => verbs.getJob({ params: { id } }, context);
  const jobEvents = createJobEvents({ getJob, clock, telemetry, closing: closing.signal });
  const openApi = openApiOf(rows, version);

  app.addHook('onRequest', async (request) => {
    requireJsonBody(request);
  });
  app.addHook('preClose', async () => {
    closing.abort(new RequestError('request.interrupted', 'the process is stopping'));
    await jobEvents.drain();
  });
  const own: Readonly<Record<ListenerName, Handler>> = {
    ...healthHandlers({ readiness, metrics }),
    watchJob: (request, reply) => jobEvents.answer(request, reply),
    getConfig: async (request, reply) => reply.send({ registryUrl: `http://${request.headers.host ?? ''}`, version }),
    getOpenApi: async (_request, reply) => reply.type('application/json; charset=utf-8').send(openApi),
  };
  const byName: Readonly<Record<VerbName, AnyOperation>> = verbs;
  addRoutes(app, rowsOfListener, ({ operation }) => own[operation]);
  addRoutes(app, rowsOfVerbs, (row) => verbHandler(row, byName[row.operation]));
  return listenerOf(app, address);

  function verbHandler(row: PlacedRow, verb: AnyOperation): Handler {
    const read = requestReader(row);
    return async (request, reply) => {
      const checked = read(request);
      const signal = AbortSignal.any([closing.signal, endOf(reply, verbTimeoutMs)]);
      const run = () => verb(checked, { actor: callerOf(request), requestId: randomUUID(), signal });
      const answer = await inTime(row.operation === 'searchObjects' ? runSearch(run, signal) : run(), signal);
      return reply.code(isPending(row, answer) ? 202 : row.status).send(row.answer === undefined ? undefined : answer);
    };
  }
}

/** Whether the answer says that the request must be sent again, and the row has a status for that. */
function isPending({ otherStatuses = {} }: PlacedRow, answer: unknown): boolean {
  if (!(202 in otherStatuses) || typeof answer !== 'object' || answer === null) return false;
  return 'state' in answer && answer.state === 'applying';
}

function requireKnownWay(request: FastifyRequest): void {
  requireDirectCaller(request);
  requireLocalCaller(request);
}

/** Returns a signal that is aborted when the verb takes too long or the caller closes the connection. Fastify's `request.signal` is not used, because it is aborted as soon as the body of the request was read. */
function endOf(reply: FastifyReply, timeoutMs: number): AbortSignal {
  const end = new AbortController();
  const slow = new RequestError('request.timeout', `the answer took longer than ${timeoutMs / 1_000} s: try again, or ask for less`);
  const timer = setTimeout(() => end.abort(slow), timeoutMs);
  reply.raw.once('close', () => {
    clearTimeout(timer);
    end.abort(new RequestError('request.interrupted', 'the caller closed the connection'));
  });
  return end.signal;
}
