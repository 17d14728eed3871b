/** Makes commands from the contract's rows: words, help, options, requests, `--json`, tables and confirmations. */
import { Option, type Command } from 'commander';
import { z } from 'zod';
import type { Given, RowCommand } from '../registry/contract/command.ts';
import { rowsOfControlPlane, type AnyCall, type ControlName, type PlacedRow } from '../registry/contract/contract.ts';
import { jsonSchemaOf, type JsonSchema } from '../registry/contract/json-schema.ts';
import type { AnyRequest } from '../registry/contract/row.ts';
import { requireSafeAddress } from './client/addresses.ts';
import { helpText, moreText, optionName, optionOf, printing, schemaOf, withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError, exitCodes } from './errors.ts';
import { answerText, joinedText, jsonText, linesText, recordIn } from './output.ts';
import { connection, type ConnectionView } from '../registry/contract/connections.ts';
import { NOT_SHOWN_YET, untilApplied } from '../registry/contract/until-applied.ts';

/** The API's largest page, so that reading all items takes the fewest requests. */
const PAGE = 1_000;

/** The commands with subcommands. */
const groups: Readonly<Record<string, string>> = {
  bucket: 'Buckets, and what they need in AWS.',
  'dead-letters':
    'Messages that could not be processed. You can send them back or delete them. While one command reads them, another sees only the rest.',
  keys: 'Your API keys. To create them, log in.',
  admin: 'Commands for administrators.',
  'admin grants':
    'Who may read which keys. People can read what is granted to them, to one of their groups, or to everyone. Administrators can read everything.',
  'admin keys': "All users' API keys.",
  'admin users': 'People who have logged in, and which of them are administrators.',
};

/** Adds the rows' commands that begin with this word; without a word, all that the program does not have yet. */
export function addRowCommands(program: Command, cli: Cli, first?: string): void {
  const known = new Set(program.commands.map((each) => each.name()));
  const isMeant = (word: string): boolean => (first === undefined ? !known.has(word) : word === first);
  const made = rowsOfControlPlane.flatMap((row) =>
    [row.cli ?? []]
      .flat()
      .filter(({ words }) => isMeant(words.split(' ')[0] ?? ''))
      .map((command) => ({ row, command })),
  );
  for (const [words, alike] of Map.groupBy(made, ({ command }) => command.words)) addRowCommand(program, cli, words, alike);
}

/** The command with subcommands, made when the first of them needs it. */
export function groupOf(program: Command, words: readonly string[], example: string): Command {
  return words.reduce((above, word, index) => {
    const known = above.commands.find((each) => each.name() === word);
    if (known !== undefined) return known;
    const description = groups[words.slice(0, index + 1).join(' ')] ?? '';
    const [summary = ''] = description.split('. ');
    return withExamples(
      above
        .command(word)
        .summary(helpText({ description: summary }))
        .description(description),
      example,
    );
  }, program);
}

interface Unmade {
  readonly row: PlacedRow<ControlName>;
  readonly command: RowCommand;
}

interface Made extends Unmade {
  readonly fields: ReadonlyMap<string, Field>;
}

function addRowCommand(program: Command, cli: Cli, all: string, alike: readonly Unmade[]): void {
  const [first] = alike;
  if (first === undefined) return;
  const places = placesOf(all);
  const words = all.split(' ').filter((word) => !places.includes(word));
  const formsIfAsked = ({ row, command }: Unmade) => (words.every(cli.isAsked) ? formsOf(row, command) : [new Map<string, Field>()]);
  const made = alike.flatMap((each) => formsIfAsked(each).map((fields): Made => ({ ...each, fields })));
  const { summary = first.row.summary, description = first.command.summary === undefined ? first.row.description : '' } = first.command;
  const examples = new Set(made.flatMap(({ command }) => command.examples));
  const self = groupOf(program, words.slice(0, -1), first.command.examples[0])
    .command(words.at(-1) ?? '')
    .summary(orderText(summary))
    .description(`${summary} ${description ?? ''}`.trim());
  addFields(self, places, made);
  printing(self, ...examples).action(async () => {
    // a parent command may have --json too, and commander assigns the option to it wherever it is written
    const { json, yes, jsonl, ...options }: JsonOption & Partial<Record<'yes' | 'jsonl', true>> = self.optsWithGlobals();
    const ofPlaces = Object.fromEntries(places.map((place, index) => [nameOfPlace(place), self.processedArgs[index]]));
    const { command, row, fields, given } = chosen(made, { ...options, ...ofPlaces });
    const consequence = command.confirm?.(given);
    if (consequence !== undefined) await cli.requireYes(yes === true ? { yes } : {}, consequence);
    const sent = withSecret(cli, command, given);
    await cli.withControl(async (control) => {
      const byName: Readonly<Record<ControlName, AnyCall>> = control;
      const ask = (more: Given = {}) => byName[row.operation](requestOf(fields, { ...sent, ...more }));
      const { jsonl: lineOf } = command;
      if (jsonl !== undefined && lineOf !== undefined)
        return printAll(
          cli,
          async (page) => pageIn.parse(await ask(page)),
          (item) => jsonText(lineOf(item), 'compact'),
        );
      const answer = row.answer === connection ? await applied(cli, { json }, async () => connection.parse(await ask())) : await ask();
      // an operation without an answer has done as requested
      return print(cli, { json }, { command, given, answer: answer ?? requestOf(fields, given).params ?? {} });
    });
  });
}

/** The positional fields, as in the command's words. */
function placesOf(words: string): readonly string[] {
  return words.split(' ').filter((word) => /^[<[]/.test(word));
}

function nameOfPlace(place: string): string {
  return place.replaceAll(/[<>[\].]/g, '');
}

function addFields(self: Command, places: readonly string[], made: readonly Made[]): void {
  const fields = new Map(
    made.flatMap((each) => [...each.fields].map(([name, field]) => [name, { ...field, options: each.command.options }])),
  );
  for (const place of places) self.argument(place, helpText(fields.get(nameOfPlace(place))?.schema));
  const fixed = made.flatMap(({ command }) => Object.keys(command.fixed ?? {}));
  const named = new Set([...places.map(nameOfPlace), ...fixed]);
  for (const [name, { schema, options }] of fields) {
    if (named.has(name)) continue;
    self.addOption(optionOf(name, schema, options));
  }
  if (made.some(({ command }) => command.jsonl !== undefined)) {
    const jsonl = new Option('--jsonl', 'print all items, one JSON object per line');
    self.addOption(jsonl.conflicts(['limit', 'cursor', 'json']));
  }
  if (made.some(({ command }) => command.confirm !== undefined)) self.option('--yes', 'do not ask for confirmation');
}

interface Options {
  /** The fields that the command sets in other ways. */
  readonly without: readonly string[];
  /** As in {@link RowCommand}. */
  readonly options?: RowCommand['options'];
}

/** Adds an option for each of an operation's fields to a command written by hand. */
export function addOptions(self: Command, cli: Cli, operation: ControlName, { without, options }: Options): Command {
  if (!cli.isAsked(self.name())) return self;
  const forms = rowsOfControlPlane.filter((row) => row.operation === operation).flatMap((row) => formsOf(row));
  for (const [name, { schema }] of forms.flatMap((form) => [...form]))
    if (!without.includes(name)) self.addOption(optionOf(name, schema, options));
  return self;
}

/** The last row whose required fields are given. Throws {@link CommandError} if there is none, or for a field that it doesn't accept. */
function chosen(made: readonly Made[], values: Given): Made & { readonly given: Given } {
  const entries = Object.entries(values).filter(([name, value]) => isGiven(value) && made.some(({ fields }) => fields.has(name)));
  const names = new Set(entries.map(([name]) => name));
  const needs = ({ fields, command: { fixed = {} } }: Made) =>
    [...fields].filter(([name, { isRequired }]) => isRequired && !(name in fixed)).map(([name]) => name);
  const texts = (found: Made) => needs(found).map((name) => shownName(name, found.command));
  const found = made.findLast((each) => needs(each).every((name) => names.has(name)));
  if (found === undefined) throw new CommandError('usage', `give ${made.map((each) => texts(each).join(' and ')).join(' or ')}`);
  const strange = [...names].find((name) => !found.fields.has(name));
  if (strange !== undefined)
    throw new CommandError('usage', `${shownName(strange, found.command)} cannot be given with ${texts(found).join(' and ')}`);
  const ofBody = [...found.fields].filter(([, { part }]) => part === 'body').map(([name]) => name);
  if (
    found.row.body?.safeParse(undefined).success === false &&
    !ofBody.some((name) => names.has(name) || name in (found.command.fixed ?? {}))
  )
    throw new CommandError('usage', `give ${ofBody.map((name) => shownName(name, found.command)).join(' or ')}`);
  return { ...found, given: { ...Object.fromEntries(entries), ...found.command.fixed } };
}

/** Absent values of a positional list become an empty list. */
function isGiven(value: unknown): boolean {
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}

/** As the person typed it. */
function shownName(name: string, { words, options }: RowCommand): string {
  return placesOf(words).map(nameOfPlace).includes(name) ? name : optionName(name, options);
}

// ── the request ────────────────────────────────────────────────────────────────────────────────────────────────────

interface Field {
  readonly part: 'params' | 'query' | 'body';
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

/** What a person may give, for each form of the body that fits what the command itself sets. */
function formsOf(row: PlacedRow, { fixed = {} }: Pick<RowCommand, 'fixed'> = {}): readonly ReadonlyMap<string, Field>[] {
  const [params, query, body] = [row.params, row.query, row.body].map((part) => (part === undefined ? {} : jsonSchemaOf(part).schema));
  const others = [...fieldsOf('params', params), ...fieldsOf('query', query)];
  return (body?.anyOf ?? [body])
    .map(schemaOf)
    .filter(({ properties = {} }) => Object.entries(fixed).every(([name, value]) => name in properties && permits(properties[name], value)))
    .map((form) => new Map([...others, ...fieldsOf('body', form)]));
}

function fieldsOf(part: Field['part'], { properties = {}, required = [] }: JsonSchema = {}): readonly (readonly [string, Field])[] {
  return Object.entries(properties).map(([name, field]) => [name, { part, schema: schemaOf(field), isRequired: required.includes(name) }]);
}

function permits(field: JsonSchema | boolean | undefined, value: unknown): boolean {
  const { const: only = value, enum: values = [only] } = schemaOf(field);
  return values.some((each) => each === value);
}

/** The values, with the content of the file that an option names. It is sent only over https or on this machine. */
function withSecret(cli: Cli, { options = {} }: RowCommand, given: Given): Given {
  const [name] = Object.entries(options).find(([field, option]) => option.endsWith('-file') && field in given) ?? [];
  if (name === undefined) return given;
  const { TALLY_REGISTRY_URL: registry } = cli.settings();
  // no other credential check sees a body
  if (registry !== undefined) requireSafeAddress(registry, 'the address of the registry');
  return { ...given, [name]: cli.secretIn(optionName(name, options), String(given[name])) };
}

function requestOf(fields: ReadonlyMap<string, Field>, given: Given): AnyRequest {
  const request: Partial<Record<Field['part'], Record<string, unknown>>> = {};
  for (const [name, { part }] of fields) {
    if (name in given) request[part] = { ...request[part], [name]: given[name] };
  }
  return request;
}

/** A row's description as an imperative: `Lists gaps.` becomes `list gaps`, and its second verb follows: `and returns its secret`. */
function orderText(sentence: string): string {
  return helpText({ description: sentence }).replaceAll(/^(\w+)s\b|(?<= (?:and|or) )(\w+)s(?= (?:its|one)\b)/g, '$1$2');
}

// ── the output ─────────────────────────────────────────────────────────────────────────────────────────────────────

interface Shown {
  readonly command: RowCommand;
  readonly given: Given;
  readonly answer: unknown;
}

function print(cli: Cli, options: JsonOption, shown: Shown): void {
  const { command, given, answer } = shown;
  const text = joinedText([answerText(command, answer, cli.nowMs()), linesText(command.text?.(answer, given) ?? '')]);
  if (text !== '' || options.json === true) cli.print(options, answer, () => text);
  for (const hint of hintsOf(shown)) cli.hint(options, hint);
  if (command.fails?.(answer) === true) cli.endWith(exitCodes.failure);
}

function hintsOf({ command, given, answer }: Shown): readonly string[] {
  const { items, next } = recordIn.parse(answer);
  const { none = '', hints } = command;
  return [
    ...(Array.isArray(items) && items.length === 0 ? [none] : []),
    ...(hints?.(answer, given) ?? []),
    ...(typeof next === 'string' ? [moreText(next)] : []),
  ];
}

interface Paged<Item> {
  readonly items: readonly Item[];
  readonly next?: string | undefined;
}

/** Reads page after page and prints each item as a line, with only one page in memory. A failure before the first page prints nothing. */
export async function printAll<Item>(
  cli: Cli,
  ask: (page: { readonly limit: number; readonly cursor?: string }) => Promise<Paged<Item>>,
  lineOf: (item: Item) => string,
  headings: readonly string[] = [],
): Promise<void> {
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const { items, next } = await ask({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
    // a reader such as head may end early
    if (!(await cli.printLines([...(isFirst ? headings : []), ...items.map(lineOf)]))) return;
    cursor = next;
  }
}

const pageIn = z.object({ items: z.array(z.unknown()), next: z.string().optional() });

/** Repeats the request while the answer says that it isn't applied yet. */
export async function applied(cli: Cli, options: JsonOption, request: () => Promise<ConnectionView>): Promise<ConnectionView> {
  const answer = await untilApplied({ request, onWaiting: sayingWaits(cli, options), sleep: (ms) => cli.clock.sleep(ms) });
  if (answer === undefined) throw new CommandError('declined', `${NOT_SHOWN_YET}: repeat the command later`);
  return answer;
}

/** Says what it is waiting for, once for each thing. */
function sayingWaits(cli: Cli, options: JsonOption): (waitingFor: string) => void {
  let said: string | undefined;
  return (waitingFor) => {
    if (said !== waitingFor) cli.hint(options, `Waiting for ${waitingFor}.`);
    said = waitingFor;
  };
}
