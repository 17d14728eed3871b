/** Messages of the Model Context Protocol over HTTP: each is answered alone, as the caller who sends it. */
import type { FastifyReply } from 'fastify';
import { operationsOf, type Context, type PlacedRow, type ControlName } from '../api/contract.ts';
import { checkRequest, type AnyRequest } from '../api/row.ts';
import { mcpRows } from '../api/mcp.ts';
import { inTime } from '../domain/in-time.ts';
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
    const { body } = checkRequest(row, { body: request.body });
    const signal = endOf(reply);
    const operations = operationsOf((asked) => async (given, context) => {
      await inTime(callers.admit(request, asked), context.signal);
      return callOperation(asked, checkRequest(asked, given), { ...context, actor: callers.actorOf(request) });
    });
    // the SDK's modules are loaded by the first message
    const { answerMessage } = await import('./tools.ts');
    const problemOf = (error: unknown) => loggedProblemOf(error, telemetry);
    const parts = { operations, actor: callers.actorOf(request), version, problemOf, signal };
    const { status, text } = await answerMessage(parts, { body, protocolVersion: versionOf(request.headers) });
    return status === 202 ? reply.code(status).send() : reply.code(status).type('application/json; charset=utf-8').send(text);
  };
}

function versionOf(headers: Readonly<Record<string, string | readonly string[] | undefined>>): string | undefined {
  const version = headers['mcp-protocol-version'];
  return typeof version === 'string' ? version : undefined;
}
