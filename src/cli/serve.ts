import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import PQueue from 'p-queue';
import { z } from 'zod';
import { mcpRows } from '../registry/contract/mcp.ts';
import { jsonOf } from '../base/json.ts';
import { withExamples } from './arguments.ts';
import type { Cli, CliDependencies } from './cli.ts';
import { exitCodes, messageOf } from './errors.ts';

/** `tally serve [--embedded]`: runs the roles of TALLY_ROLES until SIGTERM or SIGINT. */
export function addServeCommand(program: Command, cli: Cli): void {
  const command = program
    .command('serve')
    .summary('run until SIGTERM or SIGINT')
    .description('Runs the roles of TALLY_ROLES until SIGTERM or SIGINT.')
    .option('--embedded', 'run SQS, SNS, S3 and a SQLite index inside this process (TALLY_EMBEDDED=true)');
  withExamples(
    command,
    'tally serve --embedded',
    'TALLY_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/123456789012/events \\\n    TALLY_INDEX_URL=https://user:pass@host:9200 tally serve',
  ).action(async ({ embedded }: { readonly embedded?: true }) => {
    await cli.serve(cli.settings(embedded === true ? { TALLY_EMBEDDED: 'true' } : {}));
  });
}

/** How many messages are answered at a time: more than a program waits for. */
const AT_ONCE = 8;
/** https://www.jsonrpc.org/specification#error_object */
const INTERNAL_ERROR = -32_603;

const withId = z.object({ id: z.union([z.string(), z.number()]) });

/** `tally mcp`: passes a program's messages to the registry, which has the tools, and returns its answers. */
export function addMcpCommand(program: Command, cli: Cli, { registryOf, streams }: CliDependencies): void {
  const command = program
    .command('mcp')
    .summary('serve tools to a program that acts for you (MCP)')
    .description(
      'Serves tools to a program that acts for you, over the Model Context Protocol on stdin and stdout, until stdin ends. Such programs start this command themselves. The tools only read, with your access: they find, describe and count objects, list buckets and changes, and say how far the index agrees with S3.',
    );
  withExamples(command, 'tally mcp', 'TALLY_API_KEY_FILE=key.txt tally mcp --registry https://registry.example.com').action(async () => {
    const registry = await registryOf(cli.settings());
    const { askRegistry } = await import('./client/registry.ts');
    const row = { ...mcpRows['POST /mcp'], method: 'POST', path: '/mcp', status: 200 } as const;
    const { stdin, stdout } = streams();
    const turns = new PQueue({ concurrency: AT_ONCE });
    await cli.interruptible(async (signal) => {
      const pass = async (line: string): Promise<void> => {
        const body = jsonOf(line);
        const answer = await askRegistry(registry, row, { body }, signal).catch((error: unknown) => errorAnswer(body, error));
        if (answer !== undefined && !signal.aborted) stdout.write(`${JSON.stringify(answer)}\n`);
      };
      for await (const line of createInterface({ input: stdin, signal })) if (line.trim() !== '') void turns.add(() => pass(line));
      await turns.onIdle();
      if (signal.aborted) cli.endWith(exitCodes.interrupted);
    });
  });
}

/** The answer to a program whose request the registry refused; a notification gets none. */
function errorAnswer(message: unknown, error: unknown): object | undefined {
  const request = withId.safeParse(message).data;
  return request && { jsonrpc: '2.0', id: request.id, error: { code: INTERNAL_ERROR, message: messageOf(error) } };
}
