/**
 * The command line: reads the arguments, runs one command, reports what failed, and returns the exit code.
 *
 *   arguments ──► a command made from its row (from-rows.ts), or written by hand ──► cli.ts: settings, registry, output
 *             ──► one operation of the contract, by HTTP ──► text or JSON on stdout; hints, progress and errors on stderr
 *
 * A command speaks to a running registry. `serve`, `setup`, `iam-policy` and `config` need none.
 */
import { Command, CommanderError } from 'commander';
import { registryOf, registryOption } from './arguments.ts';
import { addAddCommand } from './bucket.ts';
import { addChangesCommand } from './changes.ts';
import { createCli, type Cli, type CliDependencies } from './cli.ts';
import { addConfigCommand } from './config.ts';
import { failureOf, exitCodes } from './errors.ts';
import { addRowCommands } from './from-rows.ts';
import { addIamPolicyCommand } from './iam-policy.ts';
import { addDriftCommand, addReindexCommand } from './jobs.ts';
import { addLoginCommands } from './login.ts';
import { addSetupCommand } from './setup.ts';
import { addExplainCommand, addSearchCommand, addUsageCommand } from './search.ts';
import { addServeCommand, addMcpCommand } from './serve.ts';
import { printable } from '../base/texts.ts';
import { RequestError } from '../base/request-error.ts';
import { jsonText } from './output.ts';

/** The width of help texts, which fits most terminals and also applies to pipes. */
const HELP_COLUMNS = 80;

/** Runs the command in the arguments (without node and script). Never rejects: failures are reported on stderr and by the exit code. */
export async function runCli(args: readonly string[], dependencies: CliDependencies): Promise<number> {
  const cli = createCli(args, dependencies);
  const complaints: string[] = [];
  let running: Command | undefined;
  const program = createProgram(cli, dependencies, (text) => void complaints.push(text)).hook('preAction', (_, self) => {
    running = self;
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    return cli.exitCode;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.ok;
    const wantsJson = isJsonWanted(args);
    const { exitCode, problem, lines } = failureOf(wantsJson ? error : asTyped(error, running));
    const text = wantsJson ? jsonText(problem, 'compact') : lines.map((line) => `tally: ${printable(line)}`).join('\n');
    // commander's text mentions --help, or is the help itself
    const hasCommanderText = complaints.length > 0 && !wantsJson;
    dependencies.stderr.write(hasCommanderText ? complaints.join('') : `${text}\n`);
    return exitCode;
  }
}

/** A refusal names the API's fields, but a person typed options. */
function asTyped(error: unknown, command: Command | undefined): unknown {
  if (!(error instanceof RequestError) || error.code !== 'request.invalid' || command === undefined) return error;
  const optionOf = (name: string) => command.options.find((option) => option.attributeName() === name)?.long ?? name;
  const message = error.message.replaceAll(/(?<=^|; )\w+(?=: )/g, optionOf);
  return new RequestError(error.code, message, error.extra);
}

/** `complain` receives commander's complaints about the arguments. */
function createProgram(cli: Cli, dependencies: CliDependencies, complain: (text: string) => void): Command {
  const registry = registryOption();
  const program = new Command('tally')
    .description('Keeps a search index in exact agreement with object-storage buckets.')
    .version(dependencies.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .addOption(registry)
    .configureHelp({
      showGlobalOptions: true,
      visibleGlobalOptions: ({ parent }) => (parent === null ? [] : [registry]),
    })
    .hook('preAction', (self) => {
      const url = registryOf(self.opts());
      if (url !== undefined) cli.override({ TALLY_REGISTRY_URL: url });
    })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void dependencies.stdout.write(text),
      writeErr: complain,
      outputError: (text, write) => write(text.replace(/^error: /, 'tally: ')),
      getOutHelpWidth: () => HELP_COLUMNS,
      getErrHelpWidth: () => HELP_COLUMNS,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .showHelpAfterError('(see --help)')
    .addHelpText(
      'after',
      `
Settings are environment variables; \`tally config\` shows them all.

Exit codes: 0 done; 1 failed; 2 drift was found; 3 the job was cancelled;
4 deletions await your decision; 7 some of several buckets failed;
64 wrong usage; 69 cannot reach the index, a queue, S3 or the registry;
78 invalid settings; 130 interrupted.

Example:
  tally serve --embedded`,
    );
  addServeCommand(program, cli);
  addConfigCommand(program, cli);
  addSetupCommand(program, cli);
  addAddCommand(program, cli, dependencies);
  addRowCommands(program, cli, 'bucket');
  addRowCommands(program, cli, 'doctor');
  addIamPolicyCommand(program, cli);
  addSearchCommand(program, cli);
  addUsageCommand(program, cli);
  addChangesCommand(program, cli);
  addExplainCommand(program, cli);
  addMcpCommand(program, cli, dependencies);
  addRowCommands(program, cli, 'gaps');
  addRowCommands(program, cli, 'dead-letters');
  addReindexCommand(program, cli);
  addDriftCommand(program, cli);
  addLoginCommands(program, cli, dependencies);
  addRowCommands(program, cli);
  return program;
}

/** Looks for `--json` itself, because commander may be unable to parse the arguments. */
function isJsonWanted(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}
