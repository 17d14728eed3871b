/** One message of the Streamable HTTP transport, without a session: a server lives as long as its answer. */
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { z } from 'zod';
import { RequestError } from '../domain/request-error.ts';
import { createMcpServer, type McpParts } from './server.ts';

/** What the SDK says of a message that it refuses. */
const refusal = z.object({ error: z.object({ message: z.string() }) });

export interface Message {
  readonly body: unknown;
  /** The header MCP-Protocol-Version. */
  readonly protocolVersion: string | undefined;
}

interface Reply {
  readonly status: number;
  readonly text: string;
}

/** The transport reads the headers alone; the message is parsed already. */
const ENDPOINT = 'http://localhost/mcp';

/** Answers the message. Throws `request.invalid` for one that the protocol does not have. A call ends with the parts' signal at the latest. */
export async function answerMessage(parts: McpParts, { body, protocolVersion }: Message): Promise<Reply> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  const server = createMcpServer(parts);
  await server.connect(transport);
  try {
    const headers = {
      'content-type': 'application/json',
      // every answer is JSON, whatever else the caller would take
      accept: 'application/json, text/event-stream',
      ...(protocolVersion !== undefined && { 'mcp-protocol-version': protocolVersion }),
    };
    const response = await transport.handleRequest(new Request(ENDPOINT, { method: 'POST', headers }), { parsedBody: body });
    const text = await response.text();
    if (!response.ok) throw new RequestError('request.invalid', refusal.parse(JSON.parse(text)).error.message);
    return { status: response.status, text };
  } finally {
    await server.close();
  }
}
