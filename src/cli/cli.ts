/** What every command receives: settings, the control plane's operations, and the output streams. */
import { awsEnvironment, parseProxy, type OuterEnvironment } from '../settings/environment.ts';
import { parseSettings, serveMistakes, type Settings, textOfFile, type ReadFile } from '../settings/settings.ts';
import type { Operations } from '../registry/contract/contract.ts';
import type { Client } from './client/client.ts';
import type { Registry } from './client/registry.ts';
import type { Readable, Writable } from 'node:stream';
import type { Setup } from '../connect/setup.ts';
import type { Clock } from '../process/clock.ts';
import { CommandError, SettingsError, exitCodes } from './errors.ts';
import { createProgress, type Progress } from './progress.ts';
import { jsonText, linesText } from './output.ts';
import type { OpenBrowser } from './client/login.ts';

/** A destination of text: a standard stream, or a list in tests. */
export interface Output {
  /** Returns false if the text waits in memory for its reader; `drain` follows. */
  write(text: string): unknown;
  once?(event: 'drain' | 'close', listener: () => void): unknown;
  off?(event: 'drain' | 'close', listener: () => void): unknown;
}

/** The streams on which a program speaks with this process. */
export interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable;
}

/** The source of signals. */
export interface Signals {
  once(signal: 'SIGINT', listener: () => void): unknown;
  off(signal: 'SIGINT', listener: () => void): unknown;
}

export interface CliDependencies {
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads the files that settings name. */
  readonly readFile: ReadFile;
  readonly stdout: Output;
  readonly stderr: Output;
  /** The streams on which a program speaks with this process. */
  readonly streams: () => Streams;
  readonly clock: Clock;
  /** stderr's terminal; absent if stderr is not a terminal on which a line can be redrawn. */
  readonly terminal?: { columns(): number } | undefined;
  /** The source of Ctrl-C, which is the process. */
  readonly signals: Signals;
  /** Asks a yes-or-no question at the terminal; absent if there is no terminal. */
  readonly confirm?: ((question: string) => Promise<boolean>) | undefined;
  /** This machine's name. */
  readonly machine: string;
  /** Asks for a line at the terminal; absent if there is no terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  /** Opens this machine's browser; absent if there is none. */
  readonly openBrowser?: OpenBrowser | undefined;
  /** Opens the registry client, with this user's stored credentials. */
  readonly openClient: () => Promise<Client>;
  /** Finds the registry for commands: the one that the settings name, the login's, or this machine's. */
  readonly registryOf: (settings: Settings) => Promise<Registry>;
  /** Opens its operations. Nothing is sent before the first is called. */
  readonly openControl: (settings: Settings) => Promise<Operations>;
  /** Opens what plans and creates the parts that all buckets share. */
  readonly openSetup: (settings: Settings, environment: OuterEnvironment) => Promise<{ readonly setup: Setup; close(): void }>;
  /** Returns a file's text; undefined if it is longer than `bytesMax`. Throws the file system's error. */
  readonly readText: (path: string, bytesMax: number) => string | undefined;
  /** Serves until a signal stops it; resolves with the exit code. Throws {@link SettingsError} when the operator must correct something first. */
  readonly serve: (settings: Settings, environment: OuterEnvironment) => Promise<number>;
}

/** The option of every command that prints records. */
export interface JsonOption {
  readonly json?: true | undefined;
}

export type Cli = ReturnType<typeof createCli>;

/** Creates what commands need from the arguments and the dependencies. Nothing is opened until a command uses it. */
export function createCli(args: readonly string[], dependencies: CliDependencies) {
  const { env, readFile, stdout, stderr, clock, terminal, signals, confirm, openClient, openControl, serve } = dependencies;
  const nowMs = (): number => clock.nowMs();
  let exitCode = 0;
  let overridden: Readonly<Record<string, string>> = {};

  /** The environment's settings. Throws {@link SettingsError} with its mistakes. */
  function settings(overrides: Readonly<Record<string, string>> = {}): Settings {
    const parsed = parseSettings({ ...env, ...overridden, ...overrides }, readFile);
    if (!parsed.ok) throw new SettingsError(parsed.mistakes);
    return parsed.settings;
  }

  /** `more`: further mistakes to report. */
  function outerEnvironment(more: readonly string[] = []): OuterEnvironment {
    const proxies = parseProxy(env);
    const mistakes = [...(proxies.ok ? [] : proxies.mistakes), ...more];
    if (!proxies.ok || mistakes.length > 0) throw new SettingsError(mistakes);
    return { ...awsEnvironment(env), proxy: proxies.proxy };
  }

  /** Prints a text for people to stderr, so that pipes stay clean, or nothing with --json. */
  function hint({ json }: JsonOption, text: string): void {
    // hints repeat a possibly untrusted registry's names, advice and cursors
    if (json !== true) stderr.write(`${linesText(text)}\n`);
  }

  /** Passes the work a signal that the first Ctrl-C aborts. A second Ctrl-C ends the process as usual. */
  async function interruptible<Answer>(work: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const interrupt = new AbortController();
    const onSignal = (): void => interrupt.abort(new Error('interrupted'));
    signals.once('SIGINT', onSignal);
    try {
      return await work(interrupt.signal);
    } finally {
      signals.off('SIGINT', onSignal);
    }
  }

  return {
    /** Whether the arguments contain this word of a command's name. Only then does the command get its options: making all takes a sixth of a start. */
    isAsked: (word: string): boolean => args.includes(word),
    settings,
    /** Adds settings from options to the environment's. */
    override(more: Readonly<Record<string, string>>): void {
      overridden = more;
    },
    /** A file's secret. Throws {@link CommandError}, which repeats neither path nor content. */
    secretIn(option: string, filePath: string): string {
      const found = textOfFile(filePath, readFile);
      if ('mistake' in found) throw new CommandError('usage', `${option}: ${found.mistake}`);
      return found.text;
    },
    clock,
    /** The wall clock, from which ages are computed. */
    nowMs,
    hint,
    /** Sets the exit code for a command that runs to its end. */
    endWith(code: number): void {
      exitCode = code;
    },
    /** Shows on stderr the progress of what a command waits for or, with --json, only what needs attention. */
    progress: ({ json }: JsonOption): Progress =>
      createProgress({ write: (text) => stderr.write(text), nowMs, terminal, isSilent: json === true }),
    interruptible,
    /** Opens the client for the work, which Ctrl-C interrupts. */
    async withClient<Answer>(work: (client: Client, signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
      const client = await openClient();
      return interruptible((signal) => work(client, signal));
    },
    /** Sets the exit code for an interrupted command. The hint says what continues nevertheless. */
    leave(options: JsonOption, text: string): void {
      hint(options, text);
      exitCode = exitCodes.interrupted;
    },
    /** Does the work with the operations of the registry. */
    withControl: async <Answer>(work: (control: Operations) => Promise<Answer>): Promise<Answer> => work(await openControl(settings())),
    /** Opens what creates the shared parts for the work, which Ctrl-C interrupts, and always closes it. */
    async withSetup<Answer>(work: (setup: Setup, signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
      const opened = await dependencies.openSetup(settings(), outerEnvironment());
      try {
        return await interruptible((signal) => work(opened.setup, signal));
      } finally {
        opened.close();
      }
    },
    /** Serves. Throws {@link SettingsError} with the mistakes that matter only for serving. */
    async serve(effective: Settings): Promise<void> {
      exitCode = await serve(effective, outerEnvironment(serveMistakes(effective)));
    },
    /** Prints the answer as JSON with --json, otherwise the text for people. */
    print({ json }: JsonOption, answer: unknown, text: () => string): void {
      stdout.write(`${json === true ? jsonText(answer) : text()}\n`);
    },
    /** Prints many lines, waiting for their reader. Resolves with false if the reader is gone. */
    async printLines(lines: readonly string[]): Promise<boolean> {
      if (lines.length === 0 || stdout.write(`${lines.join('\n')}\n`) !== false) return true;
      return new Promise((resolve) => {
        const closed = (): void => resolve(false);
        stdout.once?.('close', closed);
        // a stream of many pages waits many times, on one listener
        stdout.once?.('drain', () => {
          stdout.off?.('close', closed);
          resolve(true);
        });
      });
    },
    /** Returns if --yes was given or the person agrees at the terminal; throws {@link CommandError} otherwise. */
    async requireYes({ yes }: { readonly yes?: true }, consequence: string): Promise<void> {
      if (yes === true) return;
      if (confirm === undefined) throw new CommandError('usage', `${consequence}: repeat the command with --yes`);
      if (!(await confirm(`${consequence}. Continue?`))) throw new CommandError('declined', 'nothing was changed');
    },
    get exitCode() {
      return exitCode;
    },
  };
}
