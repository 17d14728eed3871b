/** The command line: reads arguments, runs one command, says what went wrong, answers the exit code. */
import { Command, CommanderError } from 'commander';
import { registryOf, registryOption } from './arguments.ts';
import { addBucketCommands } from './bucket.ts';
import { createCli, type Cli, type CliDependencies } from './cli.ts';
import { addConfigCommand } from './config.ts';
import { addDeadLetterCommands } from './dead-letters.ts';
import { failureOf } from './errors.ts';
import { exitCodes } from './exit-codes.ts';
import { addExplainCommand } from './explain.ts';
import { addGapsCommand } from './gaps.ts';
import { addDriftCommand } from './jobs/drift.ts';
import { addJobsCommand } from './jobs/jobs.ts';
import { addReindexCommand } from './jobs/reindex.ts';
import { addSearchCommand } from './search.ts';
import { addServeCommand } from './serve.ts';

/** Help is as wide as most terminals, whatever is on the other end of the pipe. */
const HELP_COLUMNS = 80;

/** Runs the command that the arguments (without node and script) name. Never rejects: whatever went wrong is told on stderr and by the exit code. */
export async function runCli(args: readonly string[], dependencies: CliDependencies): Promise<number> {
  const { stdout, stderr } = dependencies;
  const cli = createCli(dependencies);
  const complaints: string[] = [];
  const program = createProgram(cli, {
    version: dependencies.version,
    print: (text) => void stdout.write(text),
    complain: (text) => void complaints.push(text),
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return cli.exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.ok;
    const wantsJson = isJsonWanted(args);
    const { exitCode, text } = failureOf(error, wantsJson);
    // commander's own words come with a hint at --help, or are the help itself
    const isToldByCommander = complaints.length > 0 && !wantsJson;
    stderr.write(isToldByCommander ? complaints.join('') : `${text}\n`);
    return exitCode;
  }
}

interface ProgramOptions {
  readonly version: string;
  readonly print: (text: string) => void;
  readonly complain: (text: string) => void;
}

function createProgram(cli: Cli, { version, print, complain }: ProgramOptions): Command {
  const registry = registryOption();
  const program = new Command('tally')
    .description('Keeps a search index in exact agreement with object-storage buckets.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .addOption(registry)
    .configureHelp({ showGlobalOptions: true, visibleGlobalOptions: ({ parent }) => (parent === null ? [] : [registry]) })
    .hook('preAction', (self) => {
      const url = registryOf(self.opts());
      if (url !== undefined) cli.override({ TALLY_REGISTRY_URL: url });
    })
    .exitOverride()
    .configureOutput({
      writeOut: print,
      writeErr: complain,
      outputError: (text, write) => write(text.replace(/^error: /, 'tally: ')),
      getOutHelpWidth: () => HELP_COLUMNS,
      getErrHelpWidth: () => HELP_COLUMNS,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .showHelpAfterError('(--help says more)')
    .addHelpText(
      'after',
      `
Settings are environment variables; \`tally config\` shows them all.

Exit codes: 0 done; 1 failed; 2 drift was found; 3 the job was cancelled;
4 the job's brake waits for a decision; 64 called in a way it cannot be;
69 the index, a queue, S3 or the registry is out of reach; 78 invalid settings;
130 interrupted.

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
  addReindexCommand(program, cli);
  addDriftCommand(program, cli);
  addJobsCommand(program, cli);
  return program;
}

/** Looked for by hand: the arguments may be such that commander cannot read them. */
function isJsonWanted(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}
