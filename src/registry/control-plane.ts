/**
 * The listener of the control plane: it checks each request by its row of the contract, finds out who sends it and whether that
 * is permitted, calls the operation, and answers. Without identity it serves this machine only.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  rows,
  rowsOfListener,
  rowsOfControlPlane,
  type AnyOperation,
  type Context,
  type ListenerName,
  type PlacedRow,
  type ControlName,
  type CheckedOperations,
  operationsOf,
} from './contract/contract.ts';
import { openApiOf } from './contract/openapi.ts';
import { type AnyRequest, type Row, checkRequest } from './contract/row.ts';
import { RequestError } from '../base/request-error.ts';
import type { ReadOwnAccess } from '../identity/grants/grants.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { createCallers, type Callers } from './caller.ts';
import { isForAnyPage, requireDirectCaller, requireJsonBody, requireLocalCaller, requireLocalHost, requireOwnSite } from './guard.ts';
import { healthHandlers, type HealthParts } from './health-listener.ts';
import { createLoginHandlers, type LoginParts } from './login-routes.ts';
import { createPanelHandlers, type LoadFiles } from './panel.ts';
import {
  addRoutes,
  requestReader,
  type Handler,
  createServer,
  listenerOf,
  type Address,
  type Listener,
  loggedProblemOf,
} from './server.ts';
import { createOperatorSocket } from './operator-socket.ts';
import type { Actor } from '../base/actor.ts';
import { setImmediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import { inTime } from '../base/in-time.ts';
import { mcpRows } from './contract/mcp.ts';

interface ControlPlaneParts extends HealthParts {
  readonly address: Address;
  readonly operations: CheckedOperations;
  readonly ownAccess: ReadOwnAccess;
  readonly telemetry: Telemetry;
  readonly version: string;
  /** How callers are identified. Absent: they are not authenticated, and only this machine is served. */
  readonly identity?: LoginParts | undefined;
  /** The registry's address for browsers. Default: the address at which the caller reached it. */
  readonly publicUrl?: string | undefined;
  /** The catalog's address. Default: the registry's. */
  readonly catalogUrl?: string | undefined;
  /** Loads the panel's files. Default: no panel. */
  readonly loadPanel: LoadFiles;
  /** Default: {@link OPERATION_TIMEOUT_MS}. */
  readonly operationTimeoutMs?: number;
}

/** How long browsers remember it: a year. */
const HSTS = 'max-age=31536000';

/** The headers of the one document that any page may read. */
const forEveryone = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'cache-control': 'public, max-age=60',
};

/** The control plane's listener, which also serves the operator on a Unix socket. */
export interface ControlPlane extends Listener {
  /** Also listens at the path. Rejects if another process does, and with the file system's error. */
  listenAtSocket(path: string): Promise<void>;
}

/** Creates the listener of the control plane. */
export function createControlPlane(parts: ControlPlaneParts): ControlPlane {
  const {
    address,
    operations,
    ownAccess,
    readiness,
    metrics,
    telemetry,
    version,
    identity,
    loadPanel,
    operationTimeoutMs = OPERATION_TIMEOUT_MS,
  } = parts;
  const socket = createOperatorSocket();
  const callers = createCallers(identity, (connection) => socket.has(connection));
  const app = createServer({ telemetry, rows, guard: guardOf(parts), trustedProxies: identity?.trustedProxies });
  const runOperation = createRunOperation();
  const closing = new AbortController();
  const readKey = (id: string, context: Context) => operations.getApiKey({ params: { id } }, context);
  let openApi: string | undefined;
  const registryUrl = ({ headers }: FastifyRequest): string => parts.publicUrl ?? identity?.publicUrl() ?? `http://${headers.host ?? ''}`;
  const catalogUrl = (request: FastifyRequest): string => parts.catalogUrl ?? registryUrl(request);

  app.addHook('onRequest', async (request, reply) => {
    // so that the proxy that terminates TLS needn't set it
    if (parts.publicUrl?.startsWith('https:') === true) void reply.header('strict-transport-security', HSTS);
    requireJsonBody(request);
  });
  // on every answer, even errors, because a program's first request may be one that the listener itself answers
  app.addHook('onSend', async (request, reply) => void reply.headers(expiryHeaders(callers.actorOf(request))));
  app.addHook('preClose', async () => closing.abort(new RequestError('request.interrupted', 'the process is stopping')));
  app.addHook('onClose', () => socket.close());
  const own: Readonly<Record<ListenerName, Handler>> = {
    ...healthHandlers({ readiness, metrics }),
    ...createLoginHandlers({ identity, callers, telemetry, version, catalogUrl, ownAccess, readKey, closing: closing.signal }),
    ...createPanelHandlers(loadPanel),
    sendMcpMessage: createMcpHandler({ callers, callOperation, endOfRequest, telemetry, version }),
    getConfig: async (request, reply) =>
      reply.headers(forEveryone).send({ registryUrl: registryUrl(request), catalogUrl: catalogUrl(request), version }),
    getOpenApi: async (_request, reply) => {
      // only on request, because it takes a tenth of a start's CPU time
      openApi ??= openApiOf(rows, version);
      return reply.type('application/json; charset=utf-8').send(openApi);
    },
  };
  const byName: Readonly<Record<ControlName, AnyOperation>> = operations;
  const admit = (request: FastifyRequest, row: PlacedRow): Promise<void> => callers.admit(request, row);
  addRoutes(app, rowsOfListener, ({ operation }) => own[operation], admit);
  addRoutes(app, rowsOfControlPlane, operationHandler, admit);
  return {
    ...listenerOf(app, address),
    listenAtSocket: (path) => socket.listen(path, (request, response) => app.routing(request, response)),
  };

  function endOfRequest(reply: FastifyReply): AbortSignal {
    return AbortSignal.any([closing.signal, endOf(reply, operationTimeoutMs)]);
  }

  async function callOperation(row: PlacedRow<ControlName>, checked: AnyRequest, context: Context): Promise<unknown> {
    return runOperation(row, () => byName[row.operation](checked, { ...context, requestId: randomUUID() }), context.signal);
  }

  function operationHandler(row: PlacedRow<ControlName>): Handler {
    const read = requestReader(row);
    return async (request, reply) => {
      const checked = read(request);
      const answer = await callOperation(row, checked, { actor: callers.actorOf(request), signal: endOfRequest(reply) });
      return reply.code(row.status).send(row.answer === undefined ? undefined : answer);
    };
  }
}

/** The guard of every request. Without identity, nothing else protects the control plane. */
function guardOf({ identity, publicUrl }: Pick<ControlPlaneParts, 'identity' | 'publicUrl'>): (request: FastifyRequest) => void {
  if (identity === undefined) {
    return (request) => {
      requireDirectCaller(request);
      requireLocalCaller(request);
    };
  }
  return (request) => {
    // without a public address, it is on loopback and reached by loopback's names
    if (publicUrl === undefined) requireLocalHost(request);
    if (!isForAnyPage(request)) requireOwnSite(request, identity.publicUrl());
  };
}

/** Returns a signal that is aborted when the operation takes too long or the caller closes the connection. Fastify's `request.signal` is not used, because it is aborted as soon as the body of the request was read. */
function endOf(reply: FastifyReply, timeoutMs: number): AbortSignal {
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(tooSlow(timeoutMs)), timeoutMs);
  reply.raw.once('close', () => {
    clearTimeout(timer);
    end.abort(new RequestError('request.interrupted', 'the caller closed the connection'));
  });
  return end.signal;
}

/** The headers of every answer to this actor: when its key ends, from 14 days before. */
function expiryHeaders(actor: Actor): Readonly<Record<string, string>> {
  if (actor.kind !== 'api_key' || actor.endsSoonAtMs === undefined) return {};
  return { 'tally-key-expires': new Date(actor.endsSoonAtMs).toISOString() };
}

/** Limits operations, so that a flood of searches never prevents a process from answering probes or indexing events. */

/** An operation that takes longer is aborted. Searches take milliseconds; reading a thousand dead letters takes some seconds. */
const OPERATION_TIMEOUT_MS = 30_000;

/** The error for an operation that took too long. */
function tooSlow(timeoutMs: number): RequestError {
  return new RequestError('request.timeout', `the response took longer than ${timeoutMs / 1_000} s: try again, or ask for less`);
}

/** Two threads search a SQLite index, each with two searches that take turns. */
const CONCURRENCY = 4;
/** The last in this line waits about a second. */
const WAITING_MAX = 100;

/** Runs the operation of a row, a search when its turn has come. Throws `request.overloaded` if too many wait, and the signal's reason as soon as it is aborted. */
type RunOperation = <Answer>(row: Pick<Row, 'heavy'>, operation: () => Promise<Answer>, signal: AbortSignal) => Promise<Answer>;

/** Creates the turns of one process. */
function createRunOperation(): RunOperation {
  // a sum runs beside the searches that it accompanies
  const turnsOf = { search: new PQueue({ concurrency: CONCURRENCY }), sum: new PQueue({ concurrency: 1 }) };

  async function runInTurn<Answer>(turns: PQueue, search: () => Promise<Answer>, signal: AbortSignal): Promise<Answer> {
    if (turns.size >= WAITING_MAX) {
      throw new RequestError('request.overloaded', `${WAITING_MAX} searches are already waiting: try again in a second`);
    }
    return turns.add(async () => {
      // otherwise each event would wait for all searches that follow one another without a pause
      await setImmediate();
      signal.throwIfAborted();
      return search();
    });
  }

  return ({ heavy }, operation, signal) => inTime(heavy === undefined ? operation() : runInTurn(turnsOf[heavy], operation, signal), signal);
}

/** Messages of the Model Context Protocol over HTTP: each is answered alone, as the caller who sends it. */

const mcpRow = mcpRows['POST /mcp'];

interface McpHandlerParts {
  readonly callers: Pick<Callers, 'admit' | 'actorOf'>;
  /** Calls an operation within the listener's limits. */
  readonly callOperation: (row: PlacedRow<ControlName>, checked: AnyRequest, context: Context) => Promise<unknown>;
  /** Aborted at the end of the request, for all its operations. */
  readonly endOfRequest: (reply: FastifyReply) => AbortSignal;
  readonly telemetry: Telemetry;
  readonly version: string;
}

/**
 * Creates the handler. An operation that a tool calls is treated like a request to it: the caller needs its scope, the use of an
 * API key is counted, and the operation has the same limits.
 */
function createMcpHandler({ callers, callOperation, endOfRequest, telemetry, version }: McpHandlerParts): Handler {
  return async (request, reply) => {
    const { body } = checkRequest(mcpRow, { body: request.body });
    const signal = endOfRequest(reply);
    const operations = operationsOf((asked) => async (given) => {
      await inTime(callers.admit(request, asked), signal);
      return callOperation(asked, checkRequest(asked, given), { actor: callers.actorOf(request), signal });
    });
    // the first message loads the SDK's modules
    const { answerMessage } = await import('./tools.ts');
    const problemOf = (error: unknown) => loggedProblemOf(error, telemetry);
    const { status, text } = await answerMessage({ operations, version, problemOf }, { body, protocolVersion: versionOf(request.headers) });
    return status === 202 ? reply.code(status).send() : reply.code(status).type('application/json; charset=utf-8').send(text);
  };
}

function versionOf(headers: Readonly<Record<string, string | readonly string[] | undefined>>): string | undefined {
  const version = headers['mcp-protocol-version'];
  return typeof version === 'string' ? version : undefined;
}
