/**
 * The search box's grammar. Clauses are joined by AND; `-` before a clause negates it; commas separate alternative values.
 *
 *   query    = address | { clause }
 *   clause   = [ "-" ] ( text { "," text } | field ":" value { "," value } | field compare value )
 *   text     = word | pattern with * or ? | "exact part"
 *   field    = bucket prefix ext type class tag meta key etag is, before a colon
 *   compare  = size, modified, deleted > >= < <= =      (spaces may stand around it)
 *   address  = s3://… | arn:aws:s3:::… | https://…   (alone: it opens that object)
 *
 * An unknown field before a colon is an error, never a word. Quotes make it a text, in which `*` and `?` are not a pattern. AND,
 * OR and NOT in capitals are errors too, because other searches treat them as operators.
 *
 * A request's parameters become clauses here too, so that each means the same as its clause.
 */
import { queryWordsOf } from '../base/words.ts';
import type { Condition, Test } from '../store/conditions.rules.ts';
import { fieldNames, isCompared, isFieldName, type FieldName, fieldTest } from './fields.rules.ts';
import { lexemesOf, type Lexeme, type Mistake, type Operator, type Value } from './lexer.rules.ts';
import { isAddress, locationOf } from './location.rules.ts';
import { containedText, isPattern, patternOf } from '../store/pattern.rules.ts';
import { comparedTests } from './values.rules.ts';

/** A clause as Tally understood it, with absolute values. */
export interface Clause {
  /** The field, or the kind of a text: words, contains or match; `object`: an address. */
  readonly field: FieldName | 'words' | 'contains' | 'match' | 'object';
  readonly negated: boolean;
  /** Only in comparisons. */
  readonly operator?: Exclude<Operator, ':'>;
  /** One of them must match. Sizes are in bytes, times in UTC. */
  readonly values: readonly string[];
  /** What was written, and where: UTF-16 units from 0. */
  readonly text: string;
  readonly position: number;
}

/** A query that Tally understood. */
export interface ParsedQuery {
  readonly conditions: readonly Condition[];
  readonly clauses: readonly Clause[];
  /** It asks for deleted objects. */
  readonly deleted: boolean;
  /** It contains an age, which depends on the moment of the query. */
  readonly relative: boolean;
}

interface ParseOptions {
  /** The moment to which ages are relative. */
  readonly nowMs: number;
  /** The time zone of dates that state none: a name that isTimeZone accepts. */
  readonly timeZone: string;
  /** Clauses besides those of the text. */
  readonly parameters?: readonly Parameter[];
}

/** A parameter as the clause that it stands for. */
export interface Parameter extends Pick<Lexeme, 'field'> {
  readonly parameter: string;
  readonly value: Omit<Value, 'position'>;
}

/** The most clauses or values: each becomes a clause of a request, and OpenSearch accepts 1,024. */
const CLAUSES_MAX = 32;
const VALUES_MAX = 64;

/** What one clause contributes. */
interface Part {
  readonly conditions: readonly Condition[];
  readonly clause: Clause;
  /** It comes from this parameter, not from the text. */
  readonly parameter?: string;
  readonly deleted?: boolean;
  readonly relative?: boolean;
}

/** Parses the box's text and the parameters beside it, or returns the first mistake. */
export function parseQuery(text: string, { parameters = [], ...options }: ParseOptions): ParsedQuery | Mistake {
  const address = isAddress(text.trim()) ? addressPart(text) : undefined;
  if (address !== undefined && 'message' in address) return address;
  const lexemes = address === undefined ? checkedLexemesOf(text) : [];
  if ('message' in lexemes) return lexemes;
  const all: readonly (Lexeme & Partial<Parameter>)[] = [...parameters.map(lexemeOf), ...lexemes];
  const hasPrefix = isInFolder(address) || all.some(isPrefix);
  const parts = partsOf(all, { ...options, source: text, hasPrefix, lastWords: lexemes.findLast(hasWords) });
  return 'message' in parts ? parts : queryOf([...parts, address ?? []].flat());
}

function checkedLexemesOf(text: string): readonly Lexeme[] | Mistake {
  const lexemes = lexemesOf(text);
  return 'message' in lexemes ? lexemes : (excessOf(lexemes) ?? splitValueOf(lexemes) ?? lexemes);
}

function partsOf(lexemes: readonly (Lexeme & Partial<Parameter>)[], context: Context): readonly Part[] | Mistake {
  const parts: Part[] = [];
  for (const lexeme of lexemes) {
    const { parameter } = lexeme;
    const part = { ...partOf(lexeme, context), ...(parameter !== undefined && { parameter }) };
    if ('message' in part) return part;
    parts.push(part);
  }
  return parts;
}

function queryOf(parts: readonly Part[]): ParsedQuery | Mistake {
  const deleted = parts.some((part) => part.deleted === true);
  const mistake = deleted ? mistakeWithDeleted(parts) : undefined;
  if (mistake !== undefined) return mistake;
  return {
    conditions: parts.flatMap(({ conditions }) => conditions),
    clauses: parts.flatMap(({ clause, parameter }) => (parameter === undefined ? clause : [])),
    deleted,
    relative: parts.some(({ relative }) => relative === true),
  };
}

interface Context extends ParseOptions {
  readonly source: string;
  /** Some clause gives a prefix, so patterns may be short. */
  readonly hasPrefix: boolean;
  /** The last clause of words, whose last word may be incomplete. */
  readonly lastWords: Lexeme | undefined;
}

function lexemeOf({ parameter, field, value }: Parameter): Lexeme & Partial<Parameter> {
  return { parameter, position: 0, end: 0, negated: false, ...(field !== undefined && { field }), values: [{ ...value, position: 0 }] };
}

function isInFolder(address: Part | undefined): boolean {
  return address?.conditions.some(({ anyOf }) => anyOf[0]?.kind === 'prefix') === true;
}

function addressPart(text: string): Part | Mistake {
  const position = text.length - text.trimStart().length;
  const address = text.trim();
  const location = locationOf(address);
  if (location === undefined) {
    return { position, message: 'this address names no bucket: write s3://BUCKET/KEY, or put it in quotes to search for the text' };
  }
  const { bucket, key } = location;
  const isFolder = key === '' || key.endsWith('/');
  const place: readonly Test[] = key === '' ? [] : [{ kind: isFolder ? 'prefix' : 'key', value: key }];
  const tests: readonly Test[] = [{ kind: 'bucket', value: bucket }, ...place];
  return {
    conditions: tests.map((test) => ({ anyOf: [test], negated: false })),
    clause: { field: 'object', negated: false, values: [bucket, key], text: address, position },
  };
}

function excessOf(lexemes: readonly Lexeme[]): Mistake | undefined {
  const clause = lexemes[CLAUSES_MAX];
  if (clause !== undefined) return { position: clause.position, message: `a query has at most ${CLAUSES_MAX} clauses` };
  const value = lexemes.flatMap(({ values }) => values)[VALUES_MAX];
  return value && { position: value.position, message: `a query has at most ${VALUES_MAX} values` };
}

/** A word after a key is probably the rest of a key with a space, and a unit after a size or an age belongs to it. */
function splitValueOf(lexemes: readonly Lexeme[]): Mistake | undefined {
  const mistakes = lexemes.map(({ field, negated, values: [value] }, at) => {
    const word = wordOf(lexemes[at + 1]);
    if (field === undefined || value === undefined || value.quoted || word === undefined) return undefined;
    const { name, operator } = field;
    const { text, position } = word;
    if (name === 'key' && operator === ':' && !negated)
      return { position, message: `put a key with spaces in quotes: key:"${value.text} ${text}"` };
    if (!isCompared(name) || !UNIT.test(`${value.text} ${text}`)) return undefined;
    return { position, message: `the unit belongs to its number: ${name}${operator}${value.text}${text}` };
  });
  return mistakes.find((mistake) => mistake !== undefined);
}

const UNIT = /^[\d.]+ (?:[kmgtp](?:i?b)?|b|s|min|h|d|w|y)$/i;

function wordOf(lexeme: Lexeme | undefined): Value | undefined {
  return lexeme !== undefined && hasWords(lexeme) ? lexeme.values[0] : undefined;
}

function isPrefix({ field, negated, values }: Lexeme): boolean {
  return field?.name === 'prefix' && !negated && values.every(({ text }) => text !== '');
}

function hasWords({ field, negated, values }: Lexeme): boolean {
  return field === undefined && !negated && values.some(({ text, quoted }) => !quoted && !isPattern(text));
}

function partOf(lexeme: Lexeme, context: Context): Part | Mistake {
  const { field, position } = lexeme;
  if (field === undefined) return textPart(lexeme, context);
  const { name, operator } = field;
  if (!isFieldName(name)) return unknownField(lexeme, name);
  if (name === 'is') return statePart(lexeme, operator, context);
  if (name === 'key' && operator === '>=') return fromPart(lexeme, context);
  if (isCompared(name) === (operator === ':')) {
    const instead = isCompared(name) ? `compare it: ${name}${EXAMPLES[name]}` : `write ${name}: and a value, or put the text in quotes`;
    return { position, message: `${name}${operator} is not possible: ${instead}` };
  }
  return isCompared(name) ? comparedPart(lexeme, name, context) : valuesPart(lexeme, name, context);
}

const FIELDS = fieldNames.join(', ');

const EXAMPLES: Readonly<Partial<Record<FieldName, string>>> = { size: '>1G', modified: '<7d', deleted: '<24h' };

function unknownField({ position, negated }: Lexeme, name: string): Mistake {
  const shown = name.slice(0, 32);
  return {
    position: negated ? position + 1 : position,
    message: `there is no field ${shown}; the fields are ${FIELDS}, and a tag is written tag:${shown}=VALUE. Put the text in quotes to search for it`,
  };
}

function clauseOf({ position, end, negated }: Lexeme, { source }: Context, clause: Pick<Clause, 'field' | 'values' | 'operator'>): Clause {
  return { ...clause, negated, text: source.slice(position, end), position };
}

function textPart(lexeme: Lexeme, context: Context): Part | Mistake {
  const tests: Test[] = [];
  for (const value of lexeme.values) {
    const test = textTest(value, lexeme, context);
    if ('message' in test) return test;
    tests.push(test);
  }
  const kind = tests[0]?.kind;
  const field = kind === 'contains' || kind === 'match' ? kind : 'words';
  const values = lexeme.values.map(({ text }) => text);
  return { conditions: [{ anyOf: tests, negated: lexeme.negated }], clause: clauseOf(lexeme, context, { field, values }) };
}

function textTest(
  { text, quoted, position, isPattern: isMade = isPattern(text) }: Value,
  lexeme: Lexeme,
  { hasPrefix, lastWords }: Context,
): Test | Mistake {
  if (quoted) {
    const contained = containedText(text);
    return 'mistake' in contained ? { position, message: contained.mistake } : { kind: 'contains', ...contained };
  }
  if (isMade) {
    const pattern = patternOf(text, hasPrefix);
    return 'mistake' in pattern ? { position, message: pattern.mistake } : { kind: 'match', pattern };
  }
  const instead = foreignOperators.get(text);
  if (instead !== undefined) return { position, message: `${text} is not an operator here: ${instead}` };
  const words = queryWordsOf(text, lexeme !== lastWords);
  if (words === null) return { position, message: 'this has no letters or digits: put it in quotes, with at least three characters' };
  return { kind: 'words', words };
}

/** Operators of other searches, and what to write here. */
export const foreignOperators: ReadonlyMap<string, string> = new Map([
  ['OR', 'separate alternatives with commas (report,invoice), or write or in lower case to search for the word'],
  ['AND', 'all clauses must match anyway; write and in lower case to search for the word'],
  ['NOT', 'put - before a clause (-draft), or write not in lower case to search for the word'],
]);

function valuesPart(lexeme: Lexeme, name: FieldName, context: Context): Part | Mistake {
  const tests: Test[] = [];
  for (const value of lexeme.values) {
    const { position, text, quoted } = value;
    const opened = quoted || (name !== 'tag' && name !== 'meta') ? undefined : /^([^=]+=)"/.exec(text)?.[1];
    if (opened !== undefined) return { position, message: `put quotes around all of it: ${name}:"${opened}VALUE"` };
    const test = fieldTest(name, value);
    if ('mistake' in test) return { position, message: test.mistake };
    tests.push(test);
  }
  const values = lexeme.values.map(({ text }) => text);
  return { conditions: [{ anyOf: tests, negated: lexeme.negated }], clause: clauseOf(lexeme, context, { field: name, values }) };
}

function comparedPart(lexeme: Lexeme, name: FieldName, context: Context): Part | Mistake {
  const [value, second] = lexeme.values;
  const { position, negated, field } = lexeme;
  if (value === undefined || second !== undefined || field === undefined) {
    return { position: second?.position ?? position, message: `${name} is compared with one value` };
  }
  const compared = comparedTests(name, { operator: field.operator, text: value.text }, context);
  if ('mistake' in compared) return { position: value.position, message: compared.mistake };
  const { test, operator, absolute, relative } = compared;
  const isDeleted = name === 'deleted';
  if (isDeleted && negated) return { position, message: 'deleted cannot be negated: reverse the comparison' };
  return {
    conditions: [{ anyOf: [test], negated }],
    clause: clauseOf(lexeme, context, { field: name, operator, values: [absolute] }),
    deleted: isDeleted,
    relative,
  };
}

/** `key>=TEXT`: the list begins at this key. */
function fromPart(lexeme: Lexeme, context: Context): Part | Mistake {
  const { position, negated, values } = lexeme;
  const [value, second] = values;
  if (value === undefined || value.text === '' || second !== undefined) return { position, message: 'key>= needs one key' };
  return {
    conditions: [{ anyOf: [{ kind: 'from', value: value.text }], negated }],
    clause: clauseOf(lexeme, context, { field: 'key', operator: '>=', values: [value.text] }),
  };
}

/** `is:deleted`, the only state: all other searches are for live objects. */
function statePart(lexeme: Lexeme, operator: Operator, context: Context): Part | Mistake {
  const { position, negated, values } = lexeme;
  if (operator !== ':' || values.length !== 1 || values[0]?.text !== 'deleted') {
    return { position: values[0]?.position ?? position, message: 'is: has one value, deleted' };
  }
  if (negated) return { position, message: 'without is:deleted, a search finds only live objects: remove this clause' };
  return { conditions: [], clause: clauseOf(lexeme, context, { field: 'is', values: ['deleted'] }), deleted: true };
}

/** The fields by which tombstones can be searched: they have a key, and no fields of an object. */
const ofTombstones: ReadonlySet<Clause['field']> = new Set(['bucket', 'key', 'prefix', 'contains', 'match', 'is', 'deleted', 'object']);

function mistakeWithDeleted(parts: readonly Part[]): Mistake | undefined {
  const wrong = parts.find(({ clause: { field } }) => !ofTombstones.has(field));
  if (wrong === undefined) return undefined;
  const { clause, parameter } = wrong;
  return {
    position: clause.position,
    message: `deleted objects can be searched only by bucket, key, prefix, "exact part" and pattern, not by ${clause.field}`,
    ...(parameter !== undefined && { parameter }),
  };
}
