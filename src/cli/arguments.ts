/** Arguments that several commands share. */
import { InvalidArgumentError, Option, type Command } from 'commander';
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
  return new Option('--cursor <cursor>', 'go on where the page before ended');
}

/** `--registry URL`: the same as TALLY_REGISTRY_URL. */
export function registryOption(): Option {
  return new Option('--registry <url>', 'ask a running registry, http://127.0.0.1:8080 for one');
}

/** What was given with it. Throws {@link CommandError}; not by commander's argParser, which would repeat a password. */
export function registryOf({ registry }: { readonly registry?: string }): string | undefined {
  if (registry === undefined) return undefined;
  const parsed = registryUrl.safeParse(registry);
  if (!parsed.success) throw new CommandError('usage', `--registry: ${parsed.error.issues[0]?.message ?? ''}`);
  return parsed.data;
}

/** `--allow-deletes N`: what a re-index may delete whatever its brake says. */
export function allowDeletesOption(): Option {
  return new Option('--allow-deletes <n>', 'delete up to so many documents, whatever the brake says').argParser((text) => {
    if (!/^\d{1,12}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
    return Number(text);
  });
}

/** Ends the help of a command. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  const heading = examples.length === 1 ? 'Example' : 'Examples';
  return command.addHelpText('after', `\n${heading}:\n${examples.map((example) => `  ${example}`).join('\n')}`);
}

/** What ends the definition of a command that prints: `--json` and examples. */
export function printing(command: Command, ...examples: readonly string[]): Command {
  return withExamples(command.option('--json', 'print the JSON that the HTTP API answers with'), ...examples);
}

/** The remark below a page that is not the last. */
export function moreText(next: string): string {
  return `There are more: repeat this with --cursor ${next}`;
}
