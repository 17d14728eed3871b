/** The endpoint for programs that act for people. It speaks the Model Context Protocol. */
import { z } from 'zod';
import { must } from './fields.ts';
import type { Row, RowKey } from './row.ts';

/** The longest message id. Callers choose texts or numbers; all known programs' ids are shorter. */
const ID_LENGTH_MAX = 128;
const METHOD_LENGTH_MAX = 128;

export const mcpRows = {
  'POST /mcp': {
    operation: 'sendMcpMessage',
    summary: 'Answers one message of the Model Context Protocol (Streamable HTTP), through which programs that act for people use tools.',
    description:
      'The tools only read. Each calls operations of this API as the caller, who needs their scopes too; these calls count as additional uses of an API key. There are no sessions and no streams, so this path has no other method. A session cookie is not accepted here.',
    scope: 'read',
    bearerOnly: true,
    body: z.strictObject(
      {
        jsonrpc: z.literal('2.0', must('must be 2.0')).describe('Always 2.0.'),
        id: z
          .union(
            [z.string().max(ID_LENGTH_MAX, `must have at most ${ID_LENGTH_MAX} characters`), z.int()],
            must('must be text or a whole number'),
          )
          .exactOptional()
          .describe('The request ID, which the response repeats. Absent: the message is a notification.'),
        method: z
          .string(must('must be text'))
          .max(METHOD_LENGTH_MAX, `must have at most ${METHOD_LENGTH_MAX} characters`)
          .describe('The method, for example `initialize`, `tools/list` or `tools/call`.'),
        params: z.looseObject({}, must('must be an object')).exactOptional().describe("The method's parameters."),
      },
      must('must be one message'),
    ),
    answer: z.record(z.string(), z.unknown()).describe("A JSON-RPC 2.0 response: `result` or `error`, with the request's `id`."),
    otherStatuses: { 202: 'The message was a notification, which gets no response.' },
    emptyStatuses: [202],
    errors: ['request.invalid'],
    example: { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
  },
} as const satisfies Record<RowKey, Row>;
