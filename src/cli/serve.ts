import type { Command } from 'commander';
import { withExamples } from './arguments.ts';
import type { Cli } from './cli.ts';

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
