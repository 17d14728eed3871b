/** The stdio transport: a program has started this process, and writes a message on each line of its stdin. */
import type { Readable, Writable } from 'node:stream';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CancelledNotificationSchema, isJSONRPCRequest, type RequestId } from '@modelcontextprotocol/sdk/types.js';
import { createMcpServer, type McpParts } from './server.ts';

export interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable;
}

/** Arguments of tools are small, but several messages may arrive at once. */
const WAITING_BYTES_MAX = 1_048_576;

/** Answers messages until stdin has ended and each request has its answer, a message is longer than the buffer, or the parts' signal is aborted. */
export async function serveStdio(parts: McpParts, { stdin, stdout }: Streams): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const end = (): void => ended.resolve();
  const server = createMcpServer(parts);
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has callbacks only
  server.onclose = end;
  parts.signal.addEventListener('abort', end, { once: true });
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: WAITING_BYTES_MAX });
  const unanswered = unansweredOf(transport, endIfDone);
  stdin.once('end', endIfDone).once('close', endIfDone);
  await server.connect(transport);
  await ended.promise;
  await server.close();

  function endIfDone(): void {
    if (unanswered.size === 0 && (stdin.readableEnded || stdin.destroyed)) end();
  }
}

/** The requests without an answer. `answered` is called after each answer. A cancelled request gets none. */
function unansweredOf(transport: StdioServerTransport, answered: () => void): ReadonlySet<RequestId> {
  const open = new Set<RequestId>();
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has callbacks only; the server calls this one first
  transport.onmessage = (message) => {
    if (isJSONRPCRequest(message)) open.add(message.id);
    const cancelled = CancelledNotificationSchema.safeParse(message).data?.params.requestId;
    if (cancelled !== undefined) open.delete(cancelled);
  };
  const send = transport.send.bind(transport);
  transport.send = async (message) => {
    await send(message);
    if (!('id' in message) || message.id === undefined || 'method' in message) return;
    open.delete(message.id);
    answered();
  };
  return open;
}
