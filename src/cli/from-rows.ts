/** The commands that follow from rows of the contract: words, help, options, `--json`, tables and confirmations. */
import type { Command, Option } from 'commander';
import { z } from 'zod';
import type { Column, Columns, Given, RowCommand } from '../api/command.ts';
import { rowsOfControlPlane, type AnyOperation, type ControlName, type PlacedRow } from '../api/contract.ts';
import { jsonSchemaOf, type JsonSchema } from '../api/json-schema.ts';
import type { AnyRequest } from '../api/row.ts';
import { cursorOption, flag, limitOption, moreText, numberOption, parameter, printing, withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { fieldsText, linesText, tableText, type Cell } from './output.ts';

const recordIn = z.record(z.string(), z.unknown()).catch({});

/** The commands that have others below them. */
const groups: Readonly<Record<string, { readonly summary: string; readonly description: string }>> = {};

/** Adds the commands of the rows whose first word this is. */
export function addRowCommands(program: Command, cli: Cli, first: string): void {
  for (const row of rowsOfControlPlane) {
    for (const command of [row.cli ?? []].flat()) if (command.words.split(' ')[0] === first) addRowCommand(program, cli, { row, command });
  }
}

/** The command that has others below it. It is made when the first of them asks for it. */
export function groupOf(program: Command, words: readonly string[], example: string): Command {
  return words.reduce((above, word, index) => {
    const known = above.commands.find((each) => each.name() === word);
    if (known !== undefined) return known;
    const { summary = '', description = '' } = groups[words.slice(0, index + 1).join(' ')] ?? {};
    return withExamples(above.command(word).summary(summary).description(description), example);
  }, program);
}

interface Made {
  readonly row: PlacedRow<ControlName>;
  readonly command: RowCommand;
}

function addRowCommand(program: Command, cli: Cli, made: Made): void {
  const { row, command } = made;
  const places = command.words.split(' ').filter((word) => /^[<[]/.test(word));
  const words = command.words.split(' ').slice(0, places.length === 0 ? undefined : -places.length);
  const named = new Set(places.map(nameOfPlace));
  const fields = fieldsOf(made);
  const summary = command.summary ?? row.summary;
  const self = groupOf(program, words.slice(0, -1), command.examples[0])
    .command(words.at(-1) ?? '')
    .summary(orderText(summary))
    .description(
      [summary, command.summary === undefined ? (command.description ?? row.description) : command.description].join(' ').trim(),
    );
  for (const place of places) self.argument(place, helpText(fields.get(nameOfPlace(place))?.schema));
  for (const [name, { schema }] of fields) if (!named.has(name) && !isOfPage(name)) self.addOption(optionOf(name, schema, command));
  if (fields.has('limit')) self.addOption(limitOption());
  if (fields.has('cursor')) self.addOption(cursorOption());
  if (command.confirm !== undefined) self.option('--yes', 'do not ask for confirmation');
  printing(self, ...command.examples).action(async () => {
    // a command above this one may have --json too, and commander assigns it to that one wherever it stands
    const { json, yes, ...options }: JsonOption & { readonly yes?: true } = self.optsWithGlobals();
    const ofPlaces = Object.fromEntries(places.map((place, index) => [nameOfPlace(place), self.processedArgs[index]]));
    const all = { ...options, ...ofPlaces, ...command.fixed };
    const given = Object.fromEntries(Object.entries(all).filter(([name, value]) => fields.has(name) && value !== undefined));
    const consequence = command.confirm?.(given);
    if (consequence !== undefined) await cli.requireYes(yes === true ? { yes } : {}, consequence);
    const answer = await cli.withControl((control, context) => {
      const byName: Readonly<Record<ControlName, AnyOperation>> = control;
      return byName[row.operation](requestOf(fields, given), context);
    });
    print(cli, { json }, { command, given, answer });
  });
}

function nameOfPlace(place: string): string {
  return place.replaceAll(/[<>[\].]/g, '');
}

function isOfPage(name: string): boolean {
  return name === 'limit' || name === 'cursor';
}

// ── what is asked ──────────────────────────────────────────────────────────────────────────────────────────────────

interface Field {
  readonly part: 'params' | 'query' | 'body';
  readonly schema: JsonSchema;
}

/** What a person may give. Of a body with several forms it is the one with what the command itself gives. */
function fieldsOf({ row, command: { fixed = {} } }: Made): ReadonlyMap<string, Field> {
  return new Map(
    (['params', 'query', 'body'] as const).flatMap((part) => {
      const schema = row[part];
      if (schema === undefined) return [];
      const { schema: whole } = jsonSchemaOf(schema);
      const forms = whole.anyOf ?? [whole];
      const form = forms.find(({ properties = {} }) =>
        Object.keys(fixed).every((name) => name in properties && permits(properties[name], fixed[name])),
      );
      return Object.entries(form?.properties ?? {}).map(([name, field]) => [name, { part, schema: schemaOf(field) }] as const);
    }),
  );
}

function permits(field: JsonSchema | boolean | undefined, value: unknown): boolean {
  const { const: only, enum: values = [only] } = schemaOf(field);
  return values.some((each) => each === value);
}

function schemaOf(field: JsonSchema | boolean | undefined): JsonSchema {
  return typeof field === 'object' ? field : {};
}

function requestOf(fields: ReadonlyMap<string, Field>, given: Given): AnyRequest {
  const request: Partial<Record<Field['part'], Record<string, unknown>>> = {};
  for (const [name, { part }] of fields) {
    if (name in given) request[part] = { ...request[part], [name]: given[name] };
  }
  return request;
}

function optionOf(name: string, schema: JsonSchema, { options = {} }: RowCommand): Option {
  const word = `--${(options[name] ?? name).replaceAll('_', '-')}`;
  const text = helpText(schema);
  const { minimum: min = 0, maximum: max = Number.MAX_SAFE_INTEGER } = schema;
  if (schema.type === 'integer') return numberOption(`${word} <n>`, `${text}, ${min} to ${max}`, { min, max, name });
  if (schema.type === 'boolean') return parameter(word, text, name);
  const values = textsOf(schema.enum ?? schemaOf([schema.items ?? {}].flat()[0]).enum);
  if (values.includes('true')) return flag(word, text, name);
  const value = `${word} <${word.split('-').at(-1)}${schema.type === 'array' ? '...' : ''}>`;
  return values.length === 0 ? parameter(value, text, name) : parameter(value, text, name).choices(values);
}

function textsOf(values: readonly unknown[] = []): readonly string[] {
  return values.filter((value) => typeof value === 'string');
}

/** A sentence of the row as help has it: `Only gaps of this bucket.` is `only gaps of this bucket`. */
function helpText({ description = '' }: JsonSchema = {}): string {
  return description.replace(/^[A-Z](?![A-Z0-9])/, (first) => first.toLowerCase()).replace(/\.$/, '');
}

/** What a row does, as an order: `Lists gaps.` is `list gaps`. */
function orderText(sentence: string): string {
  return helpText({ description: sentence }).replace(/^(\w+)s\b/, '$1');
}

// ── what is shown ──────────────────────────────────────────────────────────────────────────────────────────────────

interface Shown {
  readonly command: RowCommand;
  readonly given: Given;
  readonly answer: unknown;
}

function print(cli: Cli, options: JsonOption, shown: Shown): void {
  const { command, given, answer } = shown;
  const { items, next } = recordIn.parse(answer);
  if (Array.isArray(items) && items.length === 0) {
    cli.hint(options, typeof command.none === 'function' ? command.none(given, answer) : (command.none ?? ''));
  }
  const text = textOf(shown, cli.nowMs());
  // an operation without an answer has done what was given
  if (text !== '' || options.json === true) cli.print(options, answer ?? given, () => text);
  for (const hint of command.hints?.(answer, given) ?? []) cli.hint(options, hint);
  if (typeof next === 'string') cli.hint(options, moreText(next));
}

function textOf({ command: { columns = {}, also = {}, text }, given, answer }: Shown, nowMs: number): string {
  const { items, ...lists } = recordIn.parse(answer);
  const first = Array.isArray(items) ? tableOf(columns, items, nowMs) : fieldsText(cellsOf(columns, answer, nowMs));
  const more = Object.entries(also).map(([name, ofList]) => tableOf(ofList, lists[name], nowMs));
  return [first, ...more, linesText(text?.(answer, given) ?? '')].filter((block) => block !== '').join('\n\n');
}

function tableOf(columns: Columns, items: unknown, nowMs: number): string {
  if (!Array.isArray(items) || items.length === 0) return '';
  return tableText(
    Object.keys(columns),
    items.map((item) => Object.values(cellsOf(columns, item, nowMs))),
  );
}

function cellsOf(columns: Columns, item: unknown, nowMs: number): Readonly<Record<string, Cell>> {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, cellOf(column, item, nowMs)]));
}

function cellOf(column: Column, item: unknown, nowMs: number): Cell {
  if (typeof column === 'function') return column(item, nowMs);
  const value = recordIn.parse(item)[column];
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}
