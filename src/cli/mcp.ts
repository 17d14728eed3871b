import { addAbortSignal, type Readable } from 'node:stream';
import type { Command } from 'commander';
import { mcpRows } from '../api/mcp.ts';
import { inTime } from '../domain/in-time.ts';
import type { Message, ToolParts } from '../http/tools.ts';
import { withExamples } from './arguments.ts';
import type { Cli, Streams } from './cli.ts';
import { problemOf } from './errors.ts';
import { exitCodes } from './exit-codes.ts';

export interface McpDependencies {
  readonly version: string;
  /** The streams on which a program speaks with this process. */
  readonly streams: () => Streams;
}

/** `tally mcp`: tools for a program that acts for the person who starts it. */
export function addMcpCommand(program: Command, cli: Cli, { version, streams }: McpDependencies): void {
  const command = program
    .command('mcp')
    .summary('serve tools to a program that acts for you (MCP)')
    .description(
      'Serves tools to a program that acts for you, by the Model Context Protocol on stdin and stdout, until stdin ends. Such programs start it themselves. The tools only read, as you: they find and describe objects, sum them, list buckets and changes, and say how far the index agrees with S3.',
    );
  withExamples(command, 'tally mcp', 'TALLY_API_KEY_FILE=key.txt tally mcp --registry https://registry.example.com').action(async () => {
    await cli.withControl(async (control, { actor }) =>
      cli.interruptible(async (signal) => {
        await serve({ operations: control, actor, version, problemOf, signal }, streams());
        if (signal.aborted) cli.endWith(exitCodes.interrupted);
      }),
    );
  });
}

/** Arguments of tools are small. */
const MESSAGE_LENGTH_MAX = 1_048_576;

/** Answers messages, one a line, until stdin has ended and each request has its answer, a message is too long, or the parts' signal is aborted. A request that is cancelled gets no answer. */
async function serve(parts: ToolParts, { stdin, stdout }: Streams): Promise<void> {
  const { answerMessage } = await import('../http/tools.ts');
  const calls = new Map<unknown, AbortController>();
  const answers: Promise<void>[] = [];
  const write = (found: object | undefined): unknown => found && stdout.write(`${JSON.stringify(found)}\n`);
  async function answer(message: Message): Promise<void> {
    const cancel = new AbortController();
    calls.set(message.id, cancel);
    const signal = AbortSignal.any([parts.signal, cancel.signal]);
    await inTime(answerMessage({ ...parts, signal }, message), signal).then(write, () => undefined);
    calls.delete(message.id);
  }
  try {
    for await (const line of linesIn(stdin, parts.signal)) {
      const message = messageIn(line);
      if (message?.method === 'notifications/cancelled') calls.get(message.params?.['requestId'])?.abort();
      if (message === undefined)
        write({ jsonrpc: '2.0', id: null, error: { code: -32_600, message: 'this is no message of the protocol' } });
      else answers.push(answer(message));
    }
  } catch {
    // a stream that breaks has ended
  }
  await Promise.all(answers);
}

async function* linesIn(stream: Readable, signal: AbortSignal): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of addAbortSignal(signal, stream.setEncoding('utf8'))) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines.filter((line) => line.trim() !== '');
    if (rest.length > MESSAGE_LENGTH_MAX) return;
  }
}

function messageIn(line: string): Message | undefined {
  try {
    return mcpRows['POST /mcp'].body.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
