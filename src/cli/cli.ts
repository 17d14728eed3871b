/** What every command is given: settings, the control plane's functions, and where to print. */
import { awsEnvironment, parseSettings, serveMistakes, type AwsEnvironment, type ReadFile, type Settings } from '../settings/settings.ts';
import { parseTraceSettings, type ServeEnvironment } from '../settings/traces.ts';
import type { Control } from '../pipeline/control/control.ts';
import type { Clock } from '../pipeline/ports/clock.ts';
import { CommandError, SettingsError } from './errors.ts';
import { exitCodes } from './exit-codes.ts';
import { createProgress, silentProgress, type Progress } from './jobs/progress.ts';
import { jsonText } from './output.ts';

/** Where text goes: a standard stream, or a list in tests. */
export interface Output {
  write(text: string): unknown;
}

/** Where signals come from. */
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
  readonly clock: Clock;
  /** Of stderr, where it is a terminal on which a line can be drawn over. */
  readonly terminal?: { columns(): number } | undefined;
  /** Where Ctrl-C comes from: the process. */
  readonly signals: Signals;
  /** Asks the person at the terminal a yes-or-no question; absent where nobody sits at one. */
  readonly confirm?: ((question: string) => Promise<boolean>) | undefined;
  /** The control plane's functions: those of the registry that the settings name, else on the store and queues that they name. */
  readonly openControl: (settings: Settings, aws: AwsEnvironment) => Promise<{ readonly control: Control; close(): Promise<void> }>;
  /** Serves until it is told to stop; resolves with the exit code. Throws {@link SettingsError} when the operator must correct something first. */
  readonly serve: (settings: Settings, environment: ServeEnvironment) => Promise<number>;
}

/** The option that every command which prints something has. */
export interface JsonOption {
  readonly json?: true;
}

/** Who asks, in the records that commands make. */
export const CALLER = 'cli';

export interface Cli {
  /** From now on these count besides the environment: what options say. */
  override(settings: Readonly<Record<string, string>>): void;
  /** The settings from the environment; throws {@link SettingsError} with every mistake. */
  settings(overrides?: Readonly<Record<string, string>>): Settings;
  /** Opens the control plane for the work, and closes it whatever happens. */
  withControl<Answer>(work: (control: Control) => Promise<Answer>): Promise<Answer>;
  /** Serves; throws {@link SettingsError} with every mistake that only matters to serving. */
  serve(settings: Settings): Promise<void>;
  /** Prints the answer as JSON if --json was given, else the text for people. */
  print(options: JsonOption, answer: unknown, text: () => string): void;
  /** For people, beside the output, so that pipes stay clean; nothing with --json. */
  hint(options: JsonOption, text: string): void;
  /** Returns if --yes was given or the person at the terminal agrees; throws {@link CommandError} otherwise. */
  requireYes(options: { readonly yes?: true }, consequence: string): Promise<void>;
  /** Shows how far a job is, beside the output; nothing with --json. */
  progress(options: JsonOption): Progress;
  /** Gives the work a signal that the first Ctrl-C aborts; a second one ends the process as ever. */
  interruptible<Answer>(work: (signal: AbortSignal) => Promise<Answer>): Promise<Answer>;
  /** Ends with this exit code, when the command has run to its end. */
  endWith(exitCode: number): void;
  /** Ends as whoever was interrupted; the hint says what goes on without him. */
  leave(options: JsonOption, hint: string): void;
  readonly clock: Clock;
  /** Wall clock, ms since the epoch: for ages. */
  readonly nowMs: () => number;
  readonly exitCode: number;
}

/** Joins the dependencies with what commands need. Nothing is opened before a command asks. */
export function createCli(dependencies: CliDependencies): Cli {
  const { env, readFile, stdout, stderr, clock, terminal, signals, confirm, openControl, serve } = dependencies;
  const nowMs = (): number => clock.nowMs();
  let exitCode = 0;
  let overridden: Readonly<Record<string, string>> = {};

  function settings(overrides: Readonly<Record<string, string>> = {}): Settings {
    const parsed = parseSettings({ ...env, ...overridden, ...overrides }, readFile);
    if (!parsed.ok) throw new SettingsError(parsed.mistakes);
    return parsed.settings;
  }

  function hint({ json }: JsonOption, text: string): void {
    if (json !== true) stderr.write(`${text}\n`);
  }

  function endWith(code: number): void {
    exitCode = code;
  }

  return {
    settings,
    override(more) {
      overridden = more;
    },
    clock,
    nowMs,
    hint,
    endWith,
    progress: ({ json }) => (json === true ? silentProgress : createProgress({ write: (text) => stderr.write(text), nowMs, terminal })),
    async interruptible(work) {
      const interrupt = new AbortController();
      const onSignal = (): void => interrupt.abort(new Error('interrupted'));
      signals.once('SIGINT', onSignal);
      try {
        return await work(interrupt.signal);
      } finally {
        signals.off('SIGINT', onSignal);
      }
    },
    leave(options, text) {
      hint(options, text);
      endWith(exitCodes.interrupted);
    },
    async withControl(work) {
      const opened = await openControl(settings(), awsEnvironment(env));
      try {
        return await work(opened.control);
      } finally {
        await opened.close();
      }
    },
    async serve(effective) {
      const tracing = parseTraceSettings(env);
      const mistakes = [...(tracing.ok ? [] : tracing.mistakes), ...serveMistakes(effective)];
      if (!tracing.ok || mistakes.length > 0) throw new SettingsError(mistakes);
      endWith(await serve(effective, { ...awsEnvironment(env), traces: tracing.traces }));
    },
    print({ json }, answer, text) {
      stdout.write(`${json === true ? jsonText(answer) : text()}\n`);
    },
    async requireYes({ yes }, consequence) {
      if (yes === true) return;
      if (confirm === undefined) throw new CommandError('usage', `${consequence}: repeat this with --yes`);
      if (!(await confirm(`${consequence}. Go on?`))) throw new CommandError('declined', 'nothing was changed');
    },
    get exitCode() {
      return exitCode;
    },
  };
}
