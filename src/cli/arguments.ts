/** Arguments that several commands share. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { QUEUE_PREFIX, QUEUE_PREFIX_PATTERN } from '../domain/provisioning/planning/queue-pair.ts';
import { registryUrl } from '../settings/urls.ts';
import { CommandError } from './errors.ts';

export interface PageOptions {
  readonly limit?: number;
  readonly cursor?: string;
}

/** `--limit N`. */
export function limitOption(): Option {
  return new Option('--limit <n>', 'at most this many, 1 to 1000 (default: 100)').argParser((text) => {
    if (!/^\d{1,4}$/.test(text) || Number(text) < 1 || Number(text) > 1_000) {
      throw new InvalidArgumentError('It must be a whole number from 1 to 1000.');
    }
    return Number(text);
  });
}

/** `--cursor CURSOR`: where the page before ended. */
export function cursorOption(): Option {
  return new Option('--cursor <cursor>', 'continue where the page before ended');
}

/** `--bucket-account ID`: for the bucket of another account. */
export function accountOption(): Option {
  return new Option('--bucket-account <id>', 'the account of the bucket, if it is not that of the bucket queue').argParser((text) => {
    if (!/^\d{12}$/.test(text)) throw new InvalidArgumentError('It must be 12 digits.');
    return text;
  });
}

/** `--prefix WORD`: how the names of the queues that `tally queue create` makes begin. */
export function queuePrefixOption(): Option {
  return new Option('--prefix <word>', 'the first word of the names of new queues').default(QUEUE_PREFIX).argParser((text: string) => {
    if (!QUEUE_PREFIX_PATTERN.test(text)) throw new InvalidArgumentError('It must be 1 to 60 letters, digits, hyphens or underscores.');
    return text;
  });
}

/** `--registry URL`: the same as TALLY_REGISTRY_URL. */
export function registryOption(): Option {
  return new Option('--registry <url>', 'send requests to a running registry, for example http://127.0.0.1:8080');
}

/** Parses the URL of the option. Throws {@link CommandError}. Commander's argParser is not used, because its error would repeat a password. */
export function registryOf({ registry }: { readonly registry?: string }): string | undefined {
  if (registry === undefined) return undefined;
  const parsed = registryUrl.safeParse(registry);
  if (!parsed.success) throw new CommandError('usage', `--registry: ${parsed.error.issues[0]?.message ?? ''}`);
  return parsed.data;
}

/** `--allow-deletes N`: how many documents a re-index may delete whatever its deletion limit says. */
export function allowDeletesOption(description: string): Option {
  return new Option('--allow-deletes <n>', description).argParser((text) => {
    if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
    return Number(text);
  });
}

/** Adds examples to the help of a command. They are written with the program name `tally` and shown as they must be typed. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  const heading = examples.length === 1 ? 'Example' : 'Examples';
  return command.addHelpText('after', () => {
    const typed = examples.map((example) => `  ${example.replace(/\btally (?=[a-z])/, `${programOf(command)} `)}`);
    return `\n${heading}:\n${typed.join('\n')}`;
  });
}

function programOf(command: Command): string {
  return command.parent === null ? command.name() : programOf(command.parent);
}

/** Ends the definition of a command that prints records: adds `--json` and examples. */
export function printing(command: Command, ...examples: readonly string[]): Command {
  return withExamples(command.option('--json', 'print the JSON that the HTTP API returns'), ...examples);
}

/** Returns the hint below a page that is not the last one. */
export function moreText(next: string): string {
  return `There is more. Repeat the command with --cursor ${next}`;
}
