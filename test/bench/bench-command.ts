/** What every bench is to the command line: its options, its run, its report. */
import { cpus, totalmem } from 'node:os';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { tableText } from './report.ts';

/** A benchmark. `Options` are what its options parse to. */
interface Bench<Options> {
  readonly name: string;
  readonly description: string;
  readonly options: readonly Option[];
  /** What follows the options in the help. */
  readonly help?: string;
  /** Measures; tells how far it is; throws when what it measured did not do its work right. Each list of the answer is a table of the report. */
  readonly run: (options: Options, tell: (text: string) => void) => Promise<Readonly<Record<string, readonly object[]>>>;
}

/** Adds a benchmark's command to the program. Its report is on stdout, everything else on stderr. */
export type AddBench = (program: Command) => void;

/** The command of a benchmark; `--json` is common to all. */
export function commandOf<Options>({ name, description, options, help = '', run }: Bench<Options>): AddBench {
  return (program) => {
    const command = program.command(name).description(description).addHelpText('after', help);
    for (const option of options) command.addOption(option);
    command.option('--json', 'print the report as JSON').action(async (given: Options & { readonly json?: true }) => {
      const tables = await run(given, (text) => void process.stderr.write(`${text}\n`));
      const { length: cores, 0: cpu } = cpus();
      const machine = `${cores} × ${cpu?.model ?? ''}, ${Math.round(totalmem() / 1_048_576)} MiB, Node ${process.version}`;
      const head = { bench: name, date: new Date().toISOString(), machine, settings: givenSettings() };
      const text = Object.entries(tables).flatMap(([title, rows]) => (rows.length === 0 ? [] : [`${title}\n${tableText(rows)}`]));
      const settings = Object.entries(head.settings).map((each) => ` ${each.join('=')}`);
      const shown = [`${name}, ${head.date}, ${machine}${settings.join('')}`, ...text].join('\n\n');
      process.stdout.write(`${given.json === true ? JSON.stringify({ ...head, ...tables }, undefined, 2) : shown}\n`);
    });
  };
}

/** An OpenSearch without data that matters; undefined where none is named. */
export function openSearchUrl(): string | undefined {
  return process.env['TALLY_BENCH_OPENSEARCH_URL'];
}

export const OPENSEARCH_HELP = '\nTALLY_BENCH_OPENSEARCH_URL names an OpenSearch that holds nothing of value.';

/** The TALLY_ variables that this process was given for the workers. */
export function givenSettings(): Readonly<Record<string, string>> {
  const entries = Object.entries(process.env).filter(([name]) => /^TALLY_(?!BENCH_|TEST_)/.test(name));
  return Object.fromEntries(entries.map(([name, value]) => [name, value ?? '']));
}

type Range = readonly [min: number, max: number];

function wholeOf(text: string, [min, max]: Range): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new InvalidArgumentError(`It must be whole numbers from ${min} to ${max}.`);
}

/** An option that takes a whole number of a range. */
export function countOption(flags: string, what: string, range: Range, preset: number): Option {
  return new Option(flags, what).argParser((text) => wholeOf(text, range)).default(preset);
}

/** An option that takes several, comma-separated. */
export function countsOption(flags: string, what: string, range: Range, preset: readonly number[]): Option {
  const parse = (text: string) => text.split(',').map((each) => wholeOf(each, range));
  return new Option(flags, `${what}, comma-separated`).argParser(parse).default(preset, preset.join(','));
}

/** An option that takes known names, comma-separated; all of them unless others are the default. */
export function namesOption(flags: string, what: string, names: readonly string[], preset = names): Option {
  const parse = (text: string) =>
    text.split(',').map((name) => {
      if (names.includes(name)) return name;
      throw new InvalidArgumentError(`It must be of ${names.join(', ')}.`);
    });
  return new Option(flags, `${what}, comma-separated`).argParser(parse).default(preset, preset.join(','));
}
