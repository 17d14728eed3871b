/** Arguments shared by several commands. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { RowCommand } from '../registry/contract/command.ts';
import type { JsonSchema } from '../registry/contract/json-schema.ts';
import { registryUrl } from '../settings/urls.ts';
import { CommandError } from './errors.ts';

/**
 * An option that is also a parameter of its command's request: `--size-min` is `size_min` unless another name is given. What commander
 * read is sent unchanged.
 */
export function parameter(flags: string, description: string, name?: string): Option {
  const option = new Option(flags, description);
  const parameterName = name ?? option.name().replaceAll('-', '_');
  option.attributeName = () => parameterName;
  return option;
}

/** `--registry URL`: the same as TALLY_REGISTRY_URL. */
export function registryOption(): Option {
  return new Option('--registry <url>', "the registry's address, for example http://127.0.0.1:8080");
}

/** Parses the URL of the option. Throws {@link CommandError}. Commander's argParser is not used, because its error would repeat a password. */
export function registryOf({ registry }: { readonly registry?: string }): string | undefined {
  if (registry === undefined) return undefined;
  const parsed = registryUrl.safeParse(registry);
  if (!parsed.success) throw new CommandError('usage', `--registry: ${parsed.error.issues[0]?.message ?? ''}`);
  return parsed.data;
}

/** The option for a row's field, by the name that its command gives it. */
export function optionName(name: string, options: RowCommand['options'] = {}): string {
  return `--${(options[name] ?? name).replaceAll('_', '-')}`;
}

/** The option for a field with this schema. */
export function optionOf(name: string, schema: JsonSchema, options: RowCommand['options']): Option {
  const word = optionName(name, options);
  const text = helpText(schema);
  if (schema.type === 'integer') return wholeNumber(`${word} <n>`, name, schema);
  if (schema.type === 'boolean') return parameter(word, switchText(text), name);
  const forms = [schema, ...(schema.anyOf ?? []).map(schemaOf)];
  const values = textsOf(forms.flatMap((form) => form.enum ?? schemaOf([form.items ?? {}].flat()[0]).enum ?? []));
  if (values.includes('true')) return parameter(word, switchText(text), name).preset('true');
  const value = parameter(`${word} <${word.split('-').at(-1)}>`, text, name);
  if (values.length > 0) value.choices([...new Set(values)]);
  return forms.some(({ type }) => type === 'array') ? repeatable(value) : value;
}

function repeatable(option: Option): Option {
  const { parseArg } = option;
  option.description += '; repeatable';
  return option.argParser((text, before: readonly string[] | undefined) => [...(before ?? []), parseArg?.(text, '') ?? text]);
}

/** What a given switch does: `whether the documents stay. Default: false` becomes `the documents stay`. */
function switchText(text: string): string {
  return text.replace(/^(?:whether (?:to )?|`true`: )/, '').replace(/\. Default: false$/, '');
}

function wholeNumber(flags: string, name: string, schema: JsonSchema): Option {
  const { minimum: min = 0, maximum: max = Number.MAX_SAFE_INTEGER, default: without } = schema;
  const ending = without === undefined ? '' : ` (default: ${JSON.stringify(without)})`;
  return parameter(flags, `${helpText(schema)}, ${min} to ${max}${ending}`, name).argParser((text) => {
    if (!/^\d{1,12}$/.test(text) || Number(text) < min || Number(text) > max)
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    return Number(text);
  });
}

function textsOf(values: readonly unknown[] = []): readonly string[] {
  return values.filter((value) => typeof value === 'string');
}

/** A row's sentence in help form: `Only gaps of this bucket.` becomes `only gaps of this bucket`. */
export function helpText({ description = '' }: JsonSchema = {}): string {
  return description.replace(/^[A-Z](?![A-Z0-9])/, (first) => first.toLowerCase()).replace(/\.$/, '');
}

/** A field's schema; a schema that permits anything says nothing. */
export function schemaOf(field: JsonSchema | boolean | undefined): JsonSchema {
  return typeof field === 'object' ? field : {};
}

/** Adds examples to a command's help. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  const heading = examples.length === 1 ? 'Example' : 'Examples';
  return command.addHelpText('after', `\n${heading}:\n${examples.map((example) => `  ${example}`).join('\n')}`);
}

/** Completes a command that prints records: adds `--json` and examples. */
export function printing(command: Command, ...examples: readonly string[]): Command {
  return withExamples(command.option('--json', 'print the JSON that the HTTP API returns'), ...examples);
}

/** The hint below a page that isn't the last. */
export function moreText(next: string): string {
  return `There is more. Repeat the command with --cursor ${next}`;
}
