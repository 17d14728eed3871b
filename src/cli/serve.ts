import type { Command } from 'commander';
import { withExamples } from './arguments.ts';
import type { Cli, Streams } from './cli.ts';
import { problemOf, exitCodes } from './errors.ts';

/** `tally serve [--embedded]`: runs the roles of TALLY_ROLES until SIGTERM or SIGINT. */
export function addServeCommand(program: Command, cli: Cli): void {
  const command = program
    .command('serve')
    .summary('run until SIGTERM or SIGINT')
    .description('Runs the roles of TALLY_ROLES until SIGTERM or SIGINT.')
    .option('--embedded', 'with built-in SQS, SNS, S3 and a SQLite index (TALLY_EMBEDDED=true): nothing else is needed');
  withExamples(
    command,
    'tally serve --embedded',
    'TALLY_QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/123456789012/events \\\n    TALLY_INDEX_URL=https://user:pass@host:9200 tally serve',
  ).action(async ({ embedded }: { readonly embedded?: true }) => {
    await cli.serve(cli.settings(embedded === true ? { TALLY_EMBEDDED: 'true' } : {}));
  });
}

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
        const { serveStdio } = await import('../http/tools.ts');
        await serveStdio({ operations: control, actor, version, problemOf, signal }, streams());
        if (signal.aborted) cli.endWith(exitCodes.interrupted);
      }),
    );
  });
}
