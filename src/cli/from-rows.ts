/** The commands that follow from rows of the contract: words, help, options, `--json`, tables and confirmations. */
import { Option, type Command } from 'commander';
import { z } from 'zod';
import type { Cells, Column, Columns, Given, RowCommand } from '../api/command.ts';
import { rowsOfControlPlane, type AnyOperation, type ControlName, type PlacedRow } from '../api/contract.ts';
import { jsonSchemaOf, type JsonSchema } from '../api/json-schema.ts';
import type { AnyRequest } from '../api/row.ts';
import { cursorOption, flag, limitOption, moreText, numberOption, parameter, printing, withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { fieldsText, jsonText, linesText, tableText, type Cell } from './output.ts';

/** The largest page of the API, so that all items need the fewest requests. */
const PAGE = 1_000;

const recordIn = z.record(z.string(), z.unknown()).catch({});

/** The commands that have others below them. */
const groups: Readonly<Record<string, { readonly summary: string; readonly description: string }>> = {
  'dead-letters': {
    summary: 'list, show, replay and discard messages that could not be handled',
    description:
      'Shows messages that could not be handled, sends them back or deletes them. While one command reads letters, another command sees only the rest.',
  },
  keys: {
    summary: 'create, list, show and revoke your API keys',
    description: 'Creates, lists, shows and revokes your API keys. A key is created by a user who has logged in.',
  },
  admin: { summary: 'commands for administrators', description: 'Commands for administrators.' },
  'admin grants': {
    summary: 'who may read which keys',
    description:
      'Adds, lists and removes grants: who may read the keys of a bucket, or those with a prefix. A person reads what is granted to the person, to a group of the person, and to everyone. Administrators read everything.',
  },
  'admin keys': {
    summary: 'list, show and revoke the API keys of all users',
    description: 'Lists, shows and revokes the API keys of all users.',
  },
  'admin users': {
    summary: 'people who have logged in, and who is an administrator',
    description: 'Lists people who have logged in, disables and enables them, and makes administrators.',
  },
};

/** Adds the commands of the rows whose first word this is. */
export function addRowCommands(program: Command, cli: Cli, first: string): void {
  const all = rowsOfControlPlane.flatMap((row) => [row.cli ?? []].flat().map((command) => ({ row, command, fields: new Map() })));
  const made = all.filter(({ command }) => command.words.split(' ')[0] === first);
  for (const [words, alike] of Map.groupBy(made, ({ command }) => command.words)) {
    addRowCommand(
      program,
      cli,
      words,
      alike.map((each) => ({ ...each, fields: fieldsOf(each) })),
    );
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
  readonly fields: ReadonlyMap<string, Field>;
}

function addRowCommand(program: Command, cli: Cli, all: string, made: readonly Made[]): void {
  const [first] = made;
  if (first === undefined) return;
  const places = all.split(' ').filter((word) => /^[<[]/.test(word));
  const words = all.split(' ').filter((word) => !places.includes(word));
  const { summary = first.row.summary, description = first.command.summary === undefined ? first.row.description : '' } = first.command;
  const examples = made.flatMap(({ command }) => command.examples);
  const self = groupOf(program, words.slice(0, -1), first.command.examples[0])
    .command(words.at(-1) ?? '')
    .summary(orderText(summary))
    .description(`${summary} ${description ?? ''}`.trim());
  addFields(self, places, made);
  printing(self, ...examples).action(async () => {
    // a command above this one may have --json too, and commander assigns it to that one wherever it stands
    const { json, yes, jsonl, ...options }: JsonOption & Partial<Record<'yes' | 'jsonl', true>> = self.optsWithGlobals();
    const ofPlaces = Object.fromEntries(places.map((place, index) => [nameOfPlace(place), self.processedArgs[index]]));
    const { command, row, fields, given } = chosen(made, { ...options, ...ofPlaces });
    const consequence = command.confirm?.(given);
    if (consequence !== undefined) await cli.requireYes(yes === true ? { yes } : {}, consequence);
    await cli.withControl(async (control, context) => {
      const byName: Readonly<Record<ControlName, AnyOperation>> = control;
      const ask = (more: Given) => byName[row.operation](requestOf(fields, { ...given, ...more }), context);
      if (jsonl !== undefined && command.jsonl !== undefined) await printAll(cli, ask, command.jsonl);
      else print(cli, { json }, { command, given, answer: await ask({}) });
    });
  });
}

function addFields(self: Command, places: readonly string[], made: readonly Made[]): void {
  const fields = new Map(
    made.flatMap((each) => [...each.fields].map(([name, field]) => [name, { ...field, options: each.command.options }])),
  );
  for (const place of places) self.argument(place, helpText(fields.get(nameOfPlace(place))?.schema));
  const named = new Set([
    ...places.map(nameOfPlace),
    'limit',
    'cursor',
    ...made.flatMap(({ command }) => Object.keys(command.fixed ?? {})),
  ]);
  for (const [name, { schema, options }] of fields) if (!named.has(name)) self.addOption(optionOf(name, schema, options));
  if (fields.has('limit')) self.addOption(limitOption());
  if (fields.has('cursor')) self.addOption(cursorOption());
  if (made.some(({ command }) => command.jsonl !== undefined)) {
    const jsonl = new Option('--jsonl', 'print all of them, each as one line of JSON');
    self.addOption(jsonl.conflicts(['limit', 'cursor', 'json']));
  }
  if (made.some(({ command }) => command.confirm !== undefined)) self.option('--yes', 'do not ask for confirmation');
}

function nameOfPlace(place: string): string {
  return place.replaceAll(/[<>[\].]/g, '');
}

/** The last of the rows that has what it needs. Throws {@link CommandError} for what it does not take, or if none of them has. */
function chosen(made: readonly Made[], values: Given): Made & { readonly given: Given } {
  const entries = Object.entries(values).filter(([name, value]) => value !== undefined && made.some(({ fields }) => fields.has(name)));
  const names = new Set(entries.map(([name]) => name));
  const needs = ({ fields, command: { fixed = {} } }: Made) =>
    [...fields].filter(([name, { isRequired }]) => isRequired && !(name in fixed)).map(([name]) => name);
  const found = made.findLast((each) => needs(each).every((name) => names.has(name)));
  if (found === undefined) {
    const missing = made.map((each) =>
      needs(each)
        .map((name) => optionName(name, each.command.options))
        .join(' and '),
    );
    throw new CommandError('usage', `${missing.join(' or ')} must be given`);
  }
  const strange = [...names].find((name) => !found.fields.has(name));
  if (strange !== undefined)
    throw new CommandError('usage', `${optionName(strange, {})} cannot be given with ${needs(found).join(' and ')}`);
  return { ...found, given: { ...Object.fromEntries(entries), ...found.command.fixed } };
}

// ── the request ────────────────────────────────────────────────────────────────────────────────────────────────────

interface Field {
  readonly part: 'params' | 'query' | 'body';
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

/** What a person may give. Of a body with several forms it is the one with what the command itself gives. */
function fieldsOf({ row, command: { fixed = {} } }: Pick<Made, 'row' | 'command'>): ReadonlyMap<string, Field> {
  return new Map(
    (['params', 'query', 'body'] as const).flatMap((part) => {
      const schema = row[part];
      if (schema === undefined) return [];
      const { schema: whole } = jsonSchemaOf(schema);
      const forms = whole.anyOf ?? [whole];
      const form =
        forms.length === 1
          ? forms[0]
          : forms.find(({ properties = {} }) =>
              Object.keys(fixed).every((name) => name in properties && permits(properties[name], fixed[name])),
            );
      return Object.entries(form?.properties ?? {}).map(
        ([name, field]) => [name, { part, schema: schemaOf(field), isRequired: form?.required?.includes(name) === true }] as const,
      );
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

function optionName(name: string, options: RowCommand['options'] = {}): string {
  return `--${(options[name] ?? name).replaceAll('_', '-')}`;
}

function optionOf(name: string, schema: JsonSchema, options: RowCommand['options']): Option {
  const word = optionName(name, options);
  const text = helpText(schema);
  if (schema.type === 'integer') return wholeNumber(`${word} <n>`, name, schema);
  if (schema.type === 'boolean') return parameter(word, text, name);
  const values = textsOf(schema.enum ?? schemaOf([schema.items ?? {}].flat()[0]).enum);
  if (values.includes('true')) return flag(word, text, name);
  const value = parameter(`${word} <${word.split('-').at(-1)}${schema.type === 'array' ? '...' : ''}>`, text, name);
  return values.length === 0 ? value : value.choices(values);
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
function helpText({ description = '' }: JsonSchema = {}): string {
  return description.replace(/^[A-Z](?![A-Z0-9])/, (first) => first.toLowerCase()).replace(/\.$/, '');
}

/** What a row does, as an order: `Lists gaps.` is `list gaps`. */
function orderText(sentence: string): string {
  return helpText({ description: sentence }).replace(/^(\w+)s\b/, '$1');
}

// ── the output ─────────────────────────────────────────────────────────────────────────────────────────────────────

interface Shown {
  readonly command: RowCommand;
  readonly given: Given;
  readonly answer: unknown;
}

function print(cli: Cli, options: JsonOption, shown: Shown): void {
  const { command, given, answer } = shown;
  const { items, next } = recordIn.parse(answer);
  if (Array.isArray(items) && items.length === 0) cli.hint(options, noneText(shown));
  const text = textOf(shown, cli.nowMs());
  // an operation without an answer has done what was given
  if (text !== '' || options.json === true) cli.print(options, answer ?? given, () => text);
  for (const hint of command.hints?.(answer, given) ?? []) cli.hint(options, hint);
  if (typeof next === 'string') cli.hint(options, moreText(next));
}

function noneText({ command: { none = '' }, given, answer }: Shown): string {
  return typeof none === 'function' ? none(given, answer) : none;
}

function textOf({ command: { columns = {}, also = {}, text }, given, answer }: Shown, nowMs: number): string {
  const fields = recordIn.parse(answer);
  const more = Object.entries(also).map(([name, ofField]) => (name in fields ? blockOf(ofField, fields[name], nowMs) : ''));
  return [blockOf(columns, fields['items'] ?? answer, nowMs), ...more, linesText(text?.(answer, given) ?? '')]
    .filter((block) => block !== '')
    .join('\n\n');
}

/** Items as a table, anything else as one line for each of its fields. */
function blockOf(columns: Columns, shown: unknown, nowMs: number): string {
  if (!Array.isArray(shown)) return fieldsText(cellsOf(columns, shown, nowMs));
  const rows = shown.map((item) => cellsOf(columns, item, nowMs));
  return rows[0] === undefined ? '' : tableText(Object.keys(rows[0]), rows.map(Object.values));
}

/** Prints page after page, so that the output may be longer than the memory. */
async function printAll(cli: Cli, ask: (more: Given) => Promise<unknown>, lineOf: NonNullable<RowCommand['jsonl']>): Promise<void> {
  for (let cursor: unknown, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const { items, next } = recordIn.parse(await ask({ limit: PAGE, ...(cursor !== undefined && { cursor }) }));
    if (!(await cli.printLines(Array.isArray(items) ? items.map((item) => jsonText(lineOf(item), 'compact')) : []))) return;
    cursor = next;
  }
}

function cellsOf(columns: Columns, item: unknown, nowMs: number): Cells {
  if (typeof columns === 'function') return columns(item);
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, cellOf(column, item, nowMs)]));
}

function cellOf(column: Column, item: unknown, nowMs: number): Cell {
  if (typeof column === 'function') return column(item, nowMs);
  const value = recordIn.parse(item)[column];
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}
