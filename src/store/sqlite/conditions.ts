/** A search as SQL conditions with the functions that they call, and as index ranges. Values are bound, never written into the text. */
import type { SQLInputValue, DatabaseSync, SQLOutputValue } from 'node:sqlite';
import { type BucketPart, overlapping } from '../readable.rules.ts';
import { fold, isAscii, type QueryWords, type WordForm, hasWords, wordsOf } from '../../base/words.ts';
import { firstAfterPrefix, compareKeys } from '../../base/key-order.ts';
import type { Condition, Test } from '../conditions.rules.ts';
import type { Pattern } from '../pattern.rules.ts';
import { timeText } from '../../base/texts.ts';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { extensionsOf, nameOf } from '../../ordering/document.ts';
import { cachingLatest } from '../../base/latest.ts';
import type { ObjectFilter, ObjectQuery } from '../store.ts';
import type { SqliteReads } from './connection.ts';

/** One condition of a statement, and the values that it binds. */
export interface SqlCondition {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

/** Whether the folded key matches a LIKE pattern. */
const FOLDED_LIKE = String.raw`(ifnull(folded, key) LIKE ? ESCAPE '\')`;

/** Whether a row is in one of the parts, found by one search among them: they are sorted and don't overlap. */
export function withinSql(parts: readonly BucketPart[]): SqlCondition {
  const [first] = parts;
  if (first === undefined) return { sql: '? = 1', values: [0] }; // a constant would leave SQLite without a plan for INDEXED BY
  if (parts.length === 1) {
    const { sql, values } = prefixSql(first.prefix);
    return { sql: `(bucket = ? AND ${sql})`, values: [first.bucket, ...values] };
  }
  const [left, right] = [parts.slice(0, parts.length / 2), parts.slice(parts.length / 2)];
  const { bucket, prefix } = right[0] ?? first;
  const [before, from] = [withinSql(left), withinSql(right)];
  return {
    sql: `iif((bucket, key) < (?, ?), ${before.sql}, ${from.sql})`,
    values: [bucket, prefix, ...before.values, ...from.values],
  };
}

/** The condition in SQL. A comparison with an absent value is null, which WHERE treats as false, but a negation must do so explicitly. */
function conditionSql({ anyOf, negated }: Condition): SqlCondition {
  const tests = anyOf.map(testSql);
  const sql = tests.map((test) => test.sql).join(' OR ');
  return { sql: negated ? `NOT ifnull(${sql}, 0)` : `(${sql})`, values: tests.flatMap(({ values }) => values) };
}

function testSql(test: Test): SqlCondition {
  switch (test.kind) {
    case 'words':
      return { sql: 'tally_has_words(key, ?)', values: [JSON.stringify(test.words)] };
    case 'contains':
      return foldedLike([{ wild: '*' }, { literal: test.text }, { wild: '*' }]);
    case 'match':
      return patternSql(test.pattern);
    case 'bucket':
    case 'key':
      return { sql: `${test.kind} = ?`, values: [test.value] };
    case 'from':
      return { sql: 'key >= ?', values: [test.value] };
    case 'prefix':
      return prefixSql(test.value);
    case 'etag':
      return { sql: `json_extract(document, '$.etag') = ?`, values: [test.value] };
    case 'class':
      return { sql: 'class = ?', values: [test.value] };
    case 'extension':
      return extensionSql(test.value);
    case 'type':
      return typeSql(test.value, test.family);
    case 'tag':
    case 'meta':
      return pairSql(test.kind === 'tag' ? 'tags' : 'user_metadata', test);
    case 'size':
      return rangeSql('size', { from: test.min, to: test.max, toOperator: '<=' });
    case 'modified':
      return rangeSql('modified', { from: test.from, to: test.before, toOperator: '<' });
    case 'deleted':
      // texts of ISO 8601 sort as their times
      return rangeSql('deleted_at', { from: timeText(test.from), to: timeText(test.before), toOperator: '<' });
  }
}

function prefixSql(prefix: string): SqlCondition {
  const end = firstAfterPrefix(prefix);
  return end === undefined ? { sql: 'key >= ?', values: [prefix] } : { sql: '(key >= ? AND key < ?)', values: [prefix, end] };
}

function patternSql({ parts, anywhere }: Pattern): SqlCondition {
  const [first] = parts;
  const whole = foldedLike(parts);
  if (!anywhere || (first !== undefined && 'wild' in first && first.wild === '*')) return whole;
  const below = foldedLike([{ wild: '*' }, { literal: '/' }, ...parts]);
  return { sql: `(${whole.sql} OR ${below.sql})`, values: [...whole.values, ...below.values] };
}

/**
 * LIKE stops at a NUL, and reads U+FFFE and U+FFFF as U+FFFD. Other noncharacters, which no program writes, replace them.
 */
const STAND_INS: Readonly<Record<string, string>> = { '\0': '\u{1fffe}', '\ufffe': '\u{2fffe}', '\uffff': '\u{2ffff}' };

function withStandIns(text: string): string {
  return text.replaceAll(/[\0\ufffe\uffff]/g, (character) => STAND_INS[character] ?? character);
}

/** A key's column `folded`, which LIKE reads instead of the key; null: LIKE reads the key itself, because it folds ASCII. */
export function foldedColumn(key: string): string | null {
  return isAscii(key) && !key.includes('\0') ? null : withStandIns(fold(key));
}

/** LIKE compares the whole text. */
function foldedLike(parts: Pattern['parts']): SqlCondition {
  const like = parts.map((part) => ('wild' in part ? LIKE_WILD[part.wild] : part.literal.replaceAll(/[%_\\]/g, String.raw`\$&`)));
  return { sql: FOLDED_LIKE, values: [withStandIns(like.join(''))] };
}

const LIKE_WILD = { '*': '%', '?': '_' } as const;

function extensionSql(value: string): SqlCondition {
  const last = value.slice(value.indexOf('.') + 1);
  if (last === value) return { sql: 'extension = ?', values: [value] };
  return { sql: '(extension = ? AND tally_has_extension(key, ?))', values: [last, value] };
}

function typeSql(value: string, family: boolean): SqlCondition {
  const type = `json_extract(document, '$.content_type')`;
  return family ? { sql: `substr(${type}, 1, length(?)) = ?`, values: [value, value] } : { sql: `${type} = ?`, values: [value] };
}

/** The pair is compared as NAME=VALUE, as in OpenSearch. */
function pairSql(field: 'tags' | 'user_metadata', { name, value }: { readonly name: string; readonly value?: string }): SqlCondition {
  const pair = `pair.key || '=' || pair.atom`;
  return {
    sql: `EXISTS (SELECT 1 FROM json_each(document, '$.${field}') AS pair WHERE ${value === undefined ? `instr(${pair}, ?) = 1` : `${pair} = ?`})`,
    values: [`${name}=${value ?? ''}`],
  };
}

function rangeSql(
  expression: string,
  {
    from,
    to,
    toOperator,
  }: { readonly from: SQLInputValue | undefined; readonly to: SQLInputValue | undefined; readonly toOperator: '<' | '<=' },
): SqlCondition {
  const bounds = [
    ...(from === undefined ? [] : [{ sql: `${expression} >= ?`, value: from }]),
    ...(to === undefined ? [] : [{ sql: `${expression} ${toOperator} ?`, value: to }]),
  ];
  return {
    sql: `(${bounds.map(({ sql }) => sql).join(' AND ') || `${expression} IS NOT NULL`})`,
    values: bounds.map(({ value }) => value),
  };
}

/** The FTS5 query for documents that contain one form of each run. Words are letters and digits, so they contain no quotes. */
export function matchOf(words: QueryWords): string {
  return words.map((forms) => `(${forms.map(formOf).join(' OR ')})`).join(' AND ');
}

function formOf({ whole, prefix }: WordForm): string {
  const terms = [...whole.map((word) => `"${word}"`), ...(prefix === undefined ? [] : [`"${prefix}"*`])];
  return `(${terms.join(' AND ')})`;
}

/** The condition that a key has these words. */
export function wordConditions({ words }: { readonly words?: QueryWords }): readonly SqlCondition[] {
  return words === undefined ? [] : [conditionSql({ anyOf: [{ kind: 'words', words }], negated: false })];
}

// ── functions that statements call, so that what follows from a key is computed when a search reads it ────────────────

const formSchema = z.object({ whole: z.array(z.string()), prefix: z.string().exactOptional() });
const wordsSchema = z.array(z.array(formSchema)) satisfies z.ZodType<QueryWords>;

/** More than one statement has tests. */
const QUERIES_MAX = 256;

/** Ends a read whose caller no longer waits for it. */
export const ENDED = 'the caller no longer waits for this read';

/**
 * A condition that always holds. At every thousandth id, it ends the statement if the caller no longer waits, because Node's SQLite
 * cannot interrupt one otherwise.
 */
export function unlessEnded(id: string): string {
  return `(${id} & 1023 OR tally_unless_ended())`;
}

/** Adds the functions to a connection. `isEnded`: whether the caller no longer waits. */
export function addFunctions(database: DatabaseSync, isEnded: () => boolean = () => false): void {
  const options = { deterministic: true } as const;
  const queries = new LRUCache<string, QueryWords>({ max: QUERIES_MAX });
  // the tests of one statement ask about the same key in succession
  const wordsOfLatest = cachingLatest(wordsOf);

  function queryOf(text: string): QueryWords {
    const known = queries.get(text);
    if (known !== undefined) return known;
    const parsed = wordsSchema.parse(JSON.parse(text));
    queries.set(text, parsed);
    return parsed;
  }

  database.function('tally_unless_ended', () => {
    if (isEnded()) throw new Error(ENDED);
    return 1;
  });
  database.function('tally_has_extension', options, (key, extension) => {
    const { extension: last } = nameOf(textOf(key));
    return last !== undefined && extensionsOf(textOf(key), last).includes(textOf(extension)) ? 1 : 0;
  });
  database.function('tally_has_words', options, (key, query) => (hasWords(wordsOfLatest(textOf(key)), queryOf(textOf(query))) ? 1 : 0));
}

function textOf(value: SQLOutputValue): string {
  return typeof value === 'string' ? value : '';
}

// ── index ranges: in each bucket, the keys below the prefix in each part that the caller may read ──────────────────────

const bucketSchema = z.object({ name: z.string() });

export interface KeyRange {
  readonly bucket: string;
  readonly bounds: KeyBounds;
}

/** The created buckets that may have matching documents, in order. */
export function bucketsOf(connection: SqliteReads, query: Omit<ObjectQuery, 'limit'>, descending: boolean): readonly string[] {
  const names = connection.use(({ statement }) =>
    statement('SELECT name FROM buckets WHERE ?1 IS NULL OR name = ?1 ORDER BY name')
      .all(query.bucket ?? null)
      .map((row) => bucketSchema.parse(row).name),
  );
  const { within, sort } = query;
  const after = sort === undefined || sort.by === 'key' ? query.after : undefined;
  const turn = descending ? -1 : 1;
  const left = names
    .filter((name) => within === undefined || within.some(({ bucket }) => bucket === name))
    .filter((name) => after === undefined || turn * compareKeys(name, after.bucket) >= 0);
  return descending ? left.toReversed() : left;
}

/** The index that a search reads, with the condition of that index. */
export function indexOf({ deleted = false }: ObjectFilter): string {
  return deleted ? 'objects INDEXED BY objects_tombstones WHERE deleted = 1' : 'objects INDEXED BY objects_facts WHERE deleted = 0';
}

/** One bucket's ranges in reading order, after the key `after`. */
export function rangesOf(
  bucket: string,
  { within, prefix, where = [] }: Pick<ObjectFilter, 'within' | 'prefix' | 'where'>,
  { after, descending = false }: { readonly after?: string | undefined; readonly descending?: boolean } = {},
): readonly KeyRange[] {
  const parts = within === undefined ? [{ prefix }] : overlapping(within, { bucket, prefix });
  const ranges = parts.map((part) => {
    const ofPrefix = boundsOf(part.prefix === undefined ? {} : { prefix: part.prefix });
    // otherwise a sum would read the whole bucket for one key
    const bounds = where.flatMap(keyOf).reduce((all, key) => untilKey(fromKey(all, key, '>='), key, '<='), ofPrefix);
    return { bucket, bounds: descending ? untilKey(bounds, after, '<') : fromKey(bounds, after, '>') };
  });
  return descending ? ranges.toReversed() : ranges;
}

/** The only key that a condition allows, if there is one. */
function keyOf({ anyOf: [test, ...others], negated }: Condition): string | [] {
  return test?.kind === 'key' && others.length === 0 && !negated ? test.value : [];
}

/** The conditions for a range's rows. */
export function rangeConditions({ bucket, bounds }: KeyRange, filter: Pick<ObjectFilter, 'key'> = {}): readonly SqlCondition[] {
  return [{ sql: 'bucket = ?', values: [bucket] }, ...keyConditions(filter, bounds)];
}

const beginningSchema = z.object({ rows: z.number(), last: z.string().nullable() });

/** The range's first rows, at most `max`: how many there are, and their last key. */
export function beginningOf(
  reads: SqliteReads,
  filter: ObjectFilter,
  range: KeyRange,
  { max, descending = false }: { readonly max: number; readonly descending?: boolean },
): z.infer<typeof beginningSchema> {
  const [direction, last] = descending ? ['DESC', 'min(key)'] : ['ASC', 'max(key)'];
  const conditions = rangeConditions(range, filter);
  const rows = `SELECT key FROM ${indexOf(filter)} AND ${sqlOf(conditions)} ORDER BY key ${direction} LIMIT ?`;
  const sql = `SELECT count(*) AS rows, ${last} AS last FROM (${rows})`;
  return reads.use(({ statement }) => beginningSchema.parse(statement(sql).get(...valuesOf(conditions), max)));
}

/**
 * The bounds of keys, one at each end. If there were two at one end, SQLite would use only one of them and step over all rows between
 * them, so that a search's duration would grow with the square of its rows.
 */
interface KeyBounds {
  readonly lower?: { readonly operator: '>' | '>='; readonly key: string };
  readonly upper?: { readonly operator: '<' | '<='; readonly key: string };
}

export function boundsOf({ prefix = '' }: { readonly prefix?: string }): KeyBounds {
  const end = firstAfterPrefix(prefix);
  return {
    ...(prefix !== '' && { lower: { operator: '>=', key: prefix } }),
    ...(end !== undefined && { upper: { operator: '<', key: end } }),
  };
}

/** The bounds with a lower bound of at least this. */
export function fromKey(bounds: KeyBounds, key: string | undefined, operator: '>' | '>='): KeyBounds {
  const isHigher = key !== undefined && (bounds.lower === undefined || compareKeys(key, bounds.lower.key) >= 0);
  return isHigher ? { ...bounds, lower: { operator, key } } : bounds;
}

/** The bounds with an upper bound of at most this. */
export function untilKey(bounds: KeyBounds, key: string | undefined, operator: '<' | '<='): KeyBounds {
  const isLower = key !== undefined && (bounds.upper === undefined || compareKeys(key, bounds.upper.key) < 0);
  return isLower ? { ...bounds, upper: { operator, key } } : bounds;
}

export function keyConditions({ key }: { readonly key?: string }, { lower, upper }: KeyBounds): readonly SqlCondition[] {
  return [
    ...(key === undefined ? [] : [{ sql: 'key = ?', values: [key] }]),
    ...(lower === undefined ? [] : [{ sql: `key ${lower.operator} ?`, values: [lower.key] }]),
    ...(upper === undefined ? [] : [{ sql: `key ${upper.operator} ?`, values: [upper.key] }]),
  ];
}

/** A filter's conditions, apart from the bounds of keys and the words. */
export function otherConditions({ where = [] }: Pick<ObjectFilter, 'where'>): readonly SqlCondition[] {
  return where.map(conditionSql);
}

export function sqlOf(conditions: readonly SqlCondition[]): string {
  return conditions.map(({ sql }) => sql).join(' AND ');
}

export function valuesOf(conditions: readonly SqlCondition[]): readonly SQLInputValue[] {
  return conditions.flatMap(({ values }) => values);
}
