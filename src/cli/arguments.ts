/** Arguments that several commands share. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { RowCommand } from '../api/command.ts';
import type { JsonSchema } from '../api/json-schema.ts';
import { bucketSources, enrichModes } from '../domain/bucket.ts';
import { QUEUE_PREFIX, QUEUE_PREFIX_PATTERN } from '../domain/provisioning/shared.ts';
import { registryUrl } from '../settings/urls.ts';
import { CommandError } from './errors.ts';

/** How the events of a bucket reach the bucket queue. */
export function sourceOption(description: string): Option {
  return parameter('--source <source>', description).choices(bucketSources);
}

/** The topic that the events of a bucket come through. */
export function topicOption(description: string): Option {
  return parameter('--topic <arn>', description, 'topic_arn');
}

/** What is read of each object besides the events. */
export function enrichOption(): Option {
  return parameter('--enrich <mode>', 'what is read of each object besides its events').choices(enrichModes);
}

/**
 * An option that is a parameter of the request of its command, under the name that it has there: `--size-min` is `size_min` unless
 * another name is given. What commander read is sent as it is then.
 */
export function parameter(flags: string, description: string, name?: string): Option {
  const option = new Option(flags, description);
  const parameterName = name ?? option.name().replaceAll('-', '_');
  option.attributeName = () => parameterName;
  return option;
}

/** A parameter without a value, which a query has as a text. */
export function flag(flags: string, description: string, name?: string): Option {
  return parameter(flags, description, name).preset('true');
}

/** A parameter with a whole number. */
export function numberOption(
  flags: string,
  description: string,
  { min = 1, max, name }: { readonly min?: number; readonly max: number; readonly name?: string },
): Option {
  return parameter(flags, description, name).argParser((text) => {
    if (!/^\d{1,12}$/.test(text) || Number(text) < min || Number(text) > max)
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    return Number(text);
  });
}

/** `--limit N`. */
export function limitOption(): Option {
  return numberOption('--limit <n>', 'at most this many, 1 to 1000 (default: 100)', { max: 1_000 });
}

/** `--cursor CURSOR`: where the page before ended. */
export function cursorOption(): Option {
  return parameter('--cursor <cursor>', 'continue where the page before ended');
}

/** `--bucket-account ID`: for the bucket of another account. */
export function accountOption(): Option {
  return parameter('--bucket-account <id>', 'the account of the bucket, if it is not that of the bucket queue').argParser((text) => {
    if (!/^\d{12}$/.test(text)) throw new InvalidArgumentError('It must be 12 digits.');
    return text;
  });
}

/** `--prefix WORD`: how the names of the queues that `tally setup` makes begin. */
export function queuePrefixOption(): Option {
  return new Option('--prefix <word>', `the first word of the names of new queues (default: ${QUEUE_PREFIX})`).argParser((text: string) => {
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

/** The option of a field of a row, by the name that its command gives it. */
export function optionName(name: string, options: RowCommand['options'] = {}): string {
  return `--${(options[name] ?? name).replaceAll('_', '-')}`;
}

/** The option of a field with this schema. */
export function optionOf(name: string, schema: JsonSchema, options: RowCommand['options']): Option {
  const word = optionName(name, options);
  // what null means, which --no-… stands for here
  const text = helpText(schema).replace(/; null: .*$/, '');
  if (schema.type === 'integer') return wholeNumber(`${word} <n>`, name, schema);
  if (schema.type === 'boolean') return parameter(word, switchText(text), name);
  const values = textsOf(schema.enum ?? schemaOf([schema.items ?? {}].flat()[0]).enum);
  if (values.includes('true')) return flag(word, switchText(text), name);
  const value = parameter(`${word} <${word.split('-').at(-1)}${schema.type === 'array' ? '...' : ''}>`, text, name);
  return values.length === 0 ? value : value.choices(values);
}

/** What a switch does once it is given: `whether the documents stay. Default: false` is `the documents stay`. */
function switchText(text: string): string {
  return text.replace(/^whether /, '').replace(/\. Default: false$/, '');
}

/** Whether a field may be null. */
export function mayBeNull({ anyOf = [] }: JsonSchema): boolean {
  return anyOf.some((each) => schemaOf(each).type === 'null');
}

/** The option by which a field is null: its value is false. */
export function withoutOption(name: string, options: RowCommand['options']): Option {
  return parameter(optionName(name, options).replace('--', '--no-'), 'forget the stored one', name);
}

function wholeNumber(flags: string, name: string, schema: JsonSchema): Option {
  const { minimum: min = 0, maximum: max = Number.MAX_SAFE_INTEGER, default: without } = schema;
  const ending = without === undefined ? '' : ` (default: ${JSON.stringify(without)})`;
  return numberOption(flags, `${helpText(schema)}, ${min} to ${max}${ending}`, { min, max, name });
}

function textsOf(values: readonly unknown[] = []): readonly string[] {
  return values.filter((value) => typeof value === 'string');
}

/** A sentence of the row as help has it: `Only gaps of this bucket.` is `only gaps of this bucket`. */
export function helpText({ description = '' }: JsonSchema = {}): string {
  return description.replace(/^[A-Z](?![A-Z0-9])/, (first) => first.toLowerCase()).replace(/\.$/, '');
}

/** The schema of a field; one that permits anything says nothing. */
export function schemaOf(field: JsonSchema | boolean | undefined): JsonSchema {
  return typeof field === 'object' ? field : {};
}

/** Adds examples to the help of a command. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  const heading = examples.length === 1 ? 'Example' : 'Examples';
  return command.addHelpText('after', `\n${heading}:\n${examples.map((example) => `  ${example}`).join('\n')}`);
}

/** Ends the definition of a command that prints records: adds `--json` and examples. */
export function printing(command: Command, ...examples: readonly string[]): Command {
  return withExamples(command.option('--json', 'print the JSON that the HTTP API returns'), ...examples);
}

/** The same for a command that prints a page of a list: adds `--limit` and `--cursor` before. */
export function listing(command: Command, ...examples: readonly string[]): Command {
  return printing(command.addOption(limitOption()).addOption(cursorOption()), ...examples);
}

/** Returns the hint below a page that is not the last one. */
export function moreText(next: string): string {
  return `There is more. Repeat the command with --cursor ${next}`;
}
