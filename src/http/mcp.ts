/** Messages of the Model Context Protocol over HTTP: each is answered alone, as the caller who sends it. */
import type { FastifyReply } from 'fastify';
import { operationsOf, type Context, type PlacedRow, type ControlName } from '../api/contract.ts';
import { checkRequest, type AnyRequest } from '../api/row.ts';
import { mcpRows } from '../api/mcp.ts';
import { inTime } from '../domain/in-time.ts';
import { RequestError } from '../domain/request-error.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { Callers } from './caller.ts';
import type { Handler } from './routes.ts';
import { loggedProblemOf } from './server.ts';

const row = mcpRows['POST /mcp'];

interface McpHandlerParts {
  readonly callers: Pick<Callers, 'admit' | 'actorOf'>;
  /** Calls an operation within the limits of the listener. */
  readonly callOperation: (row: PlacedRow<ControlName>, checked: AnyRequest, context: Context) => Promise<unknown>;
  /** The end of a request, which its operations share. */
  readonly endOf: (reply: FastifyReply) => AbortSignal;
  readonly telemetry: Telemetry;
  readonly version: string;
}

/**
 * Creates the handler. An operation that a tool calls is treated like a request to it: the caller needs its scope, the use of an
 * API key is counted, and the operation has the same limits.
 */
export function createMcpHandler({ callers, callOperation, endOf, telemetry, version }: McpHandlerParts): Handler {
  return async (request, reply) => {
    const message = row.body.parse(checkRequest(row, { body: request.body }).body);
    const signal = endOf(reply);
    const operations = operationsOf((asked) => async (given, context) => {
      await inTime(callers.admit(request, asked), context.signal);
      return callOperation(asked, checkRequest(asked, given), { ...context, actor: callers.actorOf(request) });
    });
    // the tools are made by the first message
    const { answerMessage, protocolVersions } = await import('./tools.ts');
    const named = request.headers['mcp-protocol-version'];
    if (named !== undefined && !protocolVersions.includes(String(named))) {
      throw new RequestError('request.invalid', `Unsupported protocol version: use one of ${protocolVersions.join(', ')}`);
    }
    const problemOf = (error: unknown) => loggedProblemOf(error, telemetry);
    const answer = await answerMessage({ operations, actor: callers.actorOf(request), version, problemOf, signal }, message);
    return answer === undefined ? reply.code(202).send() : reply.type('application/json; charset=utf-8').send(answer);
  };
}
