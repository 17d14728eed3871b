/** What every bench is to the command line: its options, its run, its report. */
import { InvalidArgumentError, type Command } from 'commander';

/** A benchmark. `Options` are what its command's options parse to. */
export interface Bench<Options, Report> {
  readonly name: string;
  /** Adds description, options and help. */
  readonly describe: (command: Command) => Command;
  /** Measures; tells how far it is; throws when what it measured did not do its work right. */
  readonly run: (options: Options, tell: (text: string) => void) => Promise<Report>;
  /** The report for people; `--json` prints it as it is. */
  readonly text: (report: Report) => string;
}

export interface Output {
  /** The report. */
  readonly print: (text: string) => void;
  /** Everything else. */
  readonly tell: (text: string) => void;
}

/** Adds a benchmark's command to the program. */
export type AddBench = (program: Command, output: Output) => void;

/** The command of a benchmark; `--json` is common to all. */
export function commandOf<Options, Report>(bench: Bench<Options, Report>): AddBench {
  return (program, { print, tell }) => {
    const command = bench.describe(program.command(bench.name)).option('--json', 'print the report as JSON');
    command.action(async (options: Options & { readonly json?: true }) => {
      const report = await bench.run(options, (text) => tell(`${text}\n`));
      print(options.json === true ? `${JSON.stringify(report, undefined, 2)}\n` : `${bench.text(report)}\n`);
    });
  };
}

/** Parses a whole number of a range. */
export function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** Parses a comma-separated list of known names. */
export function listOf<Name extends string>(names: readonly Name[]): (text: string) => readonly Name[] {
  return (text) =>
    text.split(',').map((part) => {
      const name = names.find((each) => each === part.trim());
      if (name === undefined) throw new InvalidArgumentError(`It must be of ${names.join(', ')}.`);
      return name;
    });
}
