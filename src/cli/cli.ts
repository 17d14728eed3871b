/** What every command is given: settings, the control plane's functions, and where to print. */
import { awsEnvironment, parseSettings, type AwsEnvironment, type Settings } from '../config.ts';
import type { Control } from '../pipeline/control.ts';
import { jsonText } from './output.ts';

/** Where text goes: a standard stream, or a list in tests. */
export interface Output {
  write(text: string): unknown;
}

export interface CliDependencies {
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Output;
  readonly stderr: Output;
  /** The control plane's functions on the store and queues that the settings name. */
  readonly openControl: (settings: Settings, aws: AwsEnvironment) => Promise<{ readonly control: Control; close(): Promise<void> }>;
  /** Serves until it is told to stop; resolves with the exit code. */
  readonly serve: (settings: Settings, aws: AwsEnvironment) => Promise<number>;
}

/** The settings of this process cannot be used: told one by one, exit code 78 (EX_CONFIG). */
export class SettingsError extends Error {
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    super('invalid settings');
    this.name = 'SettingsError';
    this.mistakes = mistakes;
  }
}

/** Options that every command which prints something has. */
export interface JsonOption {
  readonly json?: boolean;
}

/** Who asks, in the records that commands make. */
export const CALLER = 'cli';

export interface Cli {
  /** The settings from the environment; throws {@link SettingsError} with every mistake. */
  settings(overrides?: Readonly<Record<string, string>>): Settings;
  withControl(work: (control: Control) => Promise<void>): Promise<void>;
  serve(settings: Settings): Promise<void>;
  /** Prints the value as JSON if --json was given, else the text for people. */
  print(options: JsonOption, value: unknown, text: () => string): void;
  line(text: string): void;
  /** For people beside the output, so that pipes stay clean. */
  hint(text: string): void;
  readonly exitCode: number;
}

/** Joins the dependencies with what commands need. Nothing is opened before a command asks. */
export function createCli({ env, stdout, stderr, openControl, serve }: CliDependencies): Cli {
  let exitCode = 0;

  function settings(overrides: Readonly<Record<string, string>> = {}): Settings {
    const parsed = parseSettings({ ...env, ...overrides });
    if (!parsed.ok) throw new SettingsError(parsed.mistakes);
    return parsed.settings;
  }

  const line = (text: string): void => {
    stdout.write(`${text}\n`);
  };
  return {
    settings,
    async withControl(work) {
      const { control, close } = await openControl(settings(), awsEnvironment(env));
      try {
        await work(control);
      } finally {
        await close();
      }
    },
    async serve(effective) {
      exitCode = await serve(effective, awsEnvironment(env));
    },
    print: ({ json }, value, text) => line(json === true ? jsonText(value) : text()),
    line,
    hint: (text) => {
      stderr.write(`${text}\n`);
    },
    get exitCode() {
      return exitCode;
    },
  };
}
