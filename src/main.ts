/** The edge of the process: arguments, environment, standard streams, exit code. Modules that a command does not need are not loaded. tally.js starts it. */
import { readFileSync, statSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { setFlagsFromString } from 'node:v8';
import packageJson from '../package.json' with { type: 'json' };
import { systemClock } from './process/clock.ts';
import type { Client } from './cli/client/client.ts';
import type { Registry } from './cli/client/registry.ts';
import type { CliDependencies } from './cli/cli.ts';
import { SettingsError, exitCodes } from './cli/errors.ts';
import { runCli } from './cli/run-cli.ts';
import { type Settings, localRegistry } from './settings/settings.ts';
import { browserOf } from './cli/client/login.ts';

let isServing = false;

/**
 * By default V8 lets the heap grow to four times the memory in use before it collects garbage. Growing by 70 % of that memory
 * saves more than a third of all memory, and costs some per cent of the CPU (docs/operate/sizing-cost.md).
 */
const HEAP_GROWTH = '--heap-growing-percent=70';

/** Takes every permission from the group and from others: files get the mode 0600 and folders 0700. */
const PRIVATE_UMASK = 0o077;

const exitNow = (code: number): void => process.exit(code);

const serve: CliDependencies['serve'] = async (settings, environment) => {
  isServing = true;
  // what is stored here names objects that not everyone on this machine may know: only the owner reads it, whatever the umask
  process.umask(process.umask() | PRIVATE_UMASK);
  const { createApp } = await import('./serve.ts');
  const { StartError } = await import('./serve/listening.ts');
  const { exitOnUncaught, runUntilStopped } = await import('./serve/lifecycle.ts');
  setFlagsFromString(HEAP_GROWTH);
  exitOnUncaught({ exitNow, write: (line) => void process.stderr.write(line) });
  const app = createApp(settings, environment, (text) => void process.stdout.write(text));
  const say = (message: string): void => void process.stderr.write(`tally: ${message}\n`);
  try {
    return await runUntilStopped({ signals: process, app, shutdownTimeoutMs: settings.TALLY_SHUTDOWN_TIMEOUT_MS, exitNow, say });
  } catch (error) {
    if (error instanceof StartError) throw new SettingsError([error.message]);
    throw error;
  }
};

async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // the terminal would keep Ctrl-C for itself
  terminal.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    return await terminal.question(question);
  } finally {
    terminal.close();
  }
}

async function confirm(question: string): Promise<boolean> {
  return (await ask(`${question} [y/N] `)).trim().toLowerCase().startsWith('y');
}

async function openClient(): Promise<Client> {
  const { createClient } = await import('./cli/client/client.ts');
  const { clientFolder } = await import('./cli/client/store.ts');
  const { isAnswered } = await import('./registry/operator-socket.ts');
  return createClient({ folder: clientFolder(process.env, homeFolder()), isAnswered: (socket) => isAnswered(socket) });
}

/** Empty for a user without a home. */
function homeFolder(): string {
  try {
    return homedir();
  } catch {
    return '';
  }
}

/** The registry that the settings name, that of the login, or the one of this machine. */
async function registryOf(settings: Settings): Promise<Registry> {
  const { TALLY_REGISTRY_URL: registryUrl, TALLY_API_KEY: apiKey } = settings;
  const local = localRegistry(settings, process.getuid?.() ?? 0);
  return (await openClient()).registryOf({ registryUrl, apiKey, local });
}

// the reader of the output (head, less) has closed it; a serving process continues without one
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (isServing) return;
  exitNow(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.failure);
});

const exitCode = await runCli(process.argv.slice(2), {
  version: packageJson.version,
  env: process.env,
  readFile: (path) => ({ mode: statSync(path).mode, text: readFileSync(path, 'utf8') }),
  stdout: process.stdout,
  stderr: process.stderr,
  streams: () => ({ stdin: process.stdin, stdout: process.stdout }),
  clock: systemClock,
  terminal: process.stderr.isTTY && process.env['TERM'] !== 'dumb' ? { columns: () => process.stderr.columns || 80 } : undefined,
  signals: process,
  confirm: process.stdin.isTTY && process.stderr.isTTY ? confirm : undefined,
  ask: process.stdin.isTTY && process.stderr.isTTY ? ask : undefined,
  openBrowser: browserOf(process.env, process.platform),
  machine: hostname(),
  openClient,
  registryOf,
  openControl: async (settings) => {
    const registry = await registryOf(settings);
    const { createRegistryOperations } = await import('./cli/client/registry.ts');
    return createRegistryOperations(registry);
  },
  openSetup: async (settings, aws) => {
    const { openSetup } = await import('./serve/core.ts');
    return openSetup(settings, aws);
  },
  readText: (path, bytesMax) => (statSync(path).size > bytesMax ? undefined : readFileSync(path, 'utf8')),
  serve,
});

// end only after all output was written; the callback also runs when the pipe is closed
process.stdout.write('', () => exitNow(exitCode));
