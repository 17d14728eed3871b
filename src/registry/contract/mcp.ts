/** The endpoint for programs that act for people. It speaks the Model Context Protocol. */
import { z } from 'zod';
import { must } from './fields.ts';
import type { Row, RowKey } from './row.ts';

export const mcpRows = {
  'POST /mcp': {
    operation: 'sendMcpMessage',
    summary: 'Answers one message of the Model Context Protocol (Streamable HTTP), through which programs that act for people use tools.',
    description:
      'The tools only read. Each calls operations of this API as the caller, who needs their scopes too; these calls count as additional uses of an API key. There are no sessions and no streams, so this path has no other method. It accepts no session cookie.',
    scope: 'read',
    bearerOnly: true,
    body: z.looseObject({}, must('must be one message')).describe('One message of JSON-RPC 2.0, for example with the method `tools/call`.'),
    answer: z.record(z.string(), z.unknown()).describe("A JSON-RPC 2.0 response: `result` or `error`, with the request's `id`."),
    otherStatuses: { 202: 'The message was a notification, which gets no response.' },
    errors: ['request.invalid'],
    example: { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
  },
} as const satisfies Record<RowKey, Row>;
