/** The stdio transport: a program has started this process, and writes a message on each line of its stdin. */
import type { Readable, Writable } from 'node:stream';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { createMcpServer, type McpParts } from './server.ts';

export interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable;
}

/** Arguments of tools are small, but several messages may arrive at once. */
const WAITING_BYTES_MAX = 1_048_576;

/** Answers messages until stdin ends, a message is longer than the buffer, or the parts' signal is aborted. */
export async function serveStdio(parts: McpParts, { stdin, stdout }: Streams): Promise<void> {
  const ended = Promise.withResolvers<void>();
  const end = (): void => ended.resolve();
  const server = createMcpServer(parts);
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK has callbacks only
  server.onclose = end;
  stdin.once('end', end).once('close', end);
  parts.signal.addEventListener('abort', end, { once: true });
  await server.connect(new StdioServerTransport(stdin, stdout, { maxBufferSize: WAITING_BYTES_MAX }));
  await ended.promise;
  await server.close();
}
