/** The command line: reads arguments, runs one command, says what went wrong, answers the exit code. */
import { Command, CommanderError } from 'commander';
import { FaultError, faults } from '../domain/fault.ts';
import { RequestError } from '../domain/request-error.ts';
import { StartError } from '../domain/start-error.ts';
import { addBucketCommands } from './bucket.ts';
import { createCli, SettingsError, type Cli, type CliDependencies, type Output } from './cli.ts';
import { addConfigCommand } from './config.ts';
import { addDeadLetterCommands } from './dead-letters.ts';
import { exitCodes } from './exit-codes.ts';
import { addExplainCommand } from './explain.ts';
import { addGapsCommand } from './gaps.ts';
import { addJobCommands } from './jobs.ts';
import { linesText } from './output.ts';
import { addSearchCommand } from './search.ts';
import { addServeCommand } from './serve.ts';

/** Runs the command that the arguments (without node and script) name. Never rejects: whatever went wrong is told on stderr and by the exit code. */
export async function runCli(args: readonly string[], dependencies: CliDependencies): Promise<number> {
  const cli = createCli(dependencies);
  try {
    await createProgram(cli, dependencies).parseAsync([...args], { from: 'user' });
    return cli.exitCode;
  } catch (error) {
    return tell(error, dependencies.stderr);
  }
}

function createProgram(cli: Cli, { version, stdout, stderr }: CliDependencies): Command {
  const program = new Command('tally')
    .description('Keeps a search index in exact agreement with object-storage buckets.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .showHelpAfterError('(--help says more)')
    .addHelpText(
      'after',
      `
Settings are environment variables; \`tally config\` shows them all.
Exit codes: 0 done, 1 failed, 64 wrong usage, 69 the index, a queue or S3 is out of reach, 78 invalid settings.

Example:
  tally serve --embedded`,
    );
  addServeCommand(program, cli);
  addConfigCommand(program, cli);
  addBucketCommands(program, cli);
  addSearchCommand(program, cli);
  addExplainCommand(program, cli);
  addGapsCommand(program, cli);
  addDeadLetterCommands(program, cli);
  addJobCommands(program, cli);
  return program;
}

function tell(error: unknown, stderr: Output): number {
  const say = (text: string): unknown => stderr.write(`${linesText(`tally: ${text}`)}\n`);
  // commander has said it already; asking for help is no mistake
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  if (error instanceof SettingsError) {
    say(['the settings are invalid:', ...error.mistakes.map((mistake) => `  ${mistake}`)].join('\n'));
    return exitCodes.config;
  }
  if (error instanceof StartError) {
    say(error.message);
    return exitCodes.config;
  }
  if (error instanceof RequestError) {
    say(error.message);
    return error.code === 'request.invalid' ? exitCodes.usage : exitCodes.failure;
  }
  if (error instanceof FaultError && error.code !== 'internal.unexpected') {
    say(`${error.reason} (${error.code})\n${faults[error.code].advice}`);
    return exitCodes.unavailable;
  }
  say(`something nobody foresaw went wrong: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return exitCodes.failure;
}
