/**
 * Searches with filters or in another order. They read ranges of an index in short synchronous calls, between which the event
 * loop runs. With words that few documents have, these are read instead.
 */
import { setImmediate as letOthersRun } from 'node:timers/promises';
import type { SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import { overlapping } from '../../domain/access/readable.ts';
import { compareKeys, firstAfterPrefix } from '../../domain/documents/key-order.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import type { QueryWords } from '../../domain/documents/words.ts';
import type { SortField, Test } from '../../domain/search/conditions.ts';
import type { ObjectFilter, ObjectQuery } from '../../pipeline/ports/object-index.ts';
import { conditionSql, DELETED_AT, matchOf, withinSql, wordConditions, type SqlCondition } from './conditions.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { DOCUMENT_BY_KEY, documentOfRow } from './document.ts';
import { unlessEnded } from './functions.ts';

/** The rows of an index that one synchronous call reads: some 5 ms. Tests that read more than the index share them. */
const CHUNK_ROWS = 5_000;
const CHUNK_ROWS_MIN = 100;
/**
 * With more documents that have the words, the first keys are looked for in the order of keys: to read and to sort the documents
 * takes a microsecond for each.
 */
const COMMON = 10_000;
/** The rows of the index that are read so before the documents with the words are: less than what these take. */
const COMMON_ROWS_MAX = 20_000;
/** The ranges of a search that are counted before fences part the rest: most searches end in these. */
const COUNTED_RANGES = 2;
/** To look at as many objects takes some 10 ms. An index of more than ten million objects has longer ranges. */
const FENCES_MAX = 2_000;
/** Tests that the columns of the index answer. */
const ofIndex: ReadonlySet<Test['kind']> = new Set(['bucket', 'key', 'from', 'prefix', 'class', 'size', 'modified', 'deleted']);

const bucketSchema = z.object({ name: z.string() });
/** A large prime, whose multiples are spread evenly in any stride. */
const SCATTER = 2_654_435_761;

const keySchema = z.object({ key: z.string() });
const latestSchema = z.object({ id: z.number() });
const foundSchema = z.object({ bucket: z.string(), key: z.string(), value: z.union([z.number(), z.string()]) });
type Found = z.infer<typeof foundSchema> & {
  /** The row with the document. */
  row?: unknown;
};

/** A part of an index: keys of one bucket between two bounds. */
export interface KeyRange {
  readonly bucket: string;
  /** The first bound, in the direction of the reading. */
  readonly conditions: readonly SqlCondition[];
  /** The rows that it has: no more if they were counted, and about as many otherwise. */
  readonly rows: number;
  /** The key after which the next range begins; absent: there is none. */
  readonly last?: string;
}

interface Source {
  readonly filter: ObjectFilter;
  /** What is read, with its condition. Default: the index that the filter needs. */
  readonly from?: string;
  readonly descending: boolean;
}

/** The documents that match, in the order of the query. */
export async function searchFiltered(
  connection: SqliteConnection,
  query: ObjectQuery,
  signal: AbortSignal | undefined,
): Promise<readonly ObjectDocument[]> {
  const { by, order } = orderOf(query);
  const found: Found[] = [];
  const descending = by === 'key' && order === 'desc';
  await eachPart(
    connection,
    { query, descending, worst: () => (by === 'key' ? undefined : found[query.limit - 1]?.value) },
    (rows, session) => {
      found.push(...rows);
      keepFirst(found, query);
      // in the same call: a document that is written between two calls may match no longer, or have another place
      readRows(session, found);
      return by === 'key' && found.length >= query.limit;
    },
    signal,
  );
  return found.map(({ row }) => documentOfRow(row));
}

/** How many documents match; `max` + 1 if there are more. */
export async function countFiltered(
  connection: SqliteConnection,
  { filter, max }: { readonly filter: ObjectFilter; readonly max: number },
  signal: AbortSignal | undefined,
): Promise<number> {
  let count = 0;
  await eachPart(
    connection,
    { query: { ...filter, limit: max + 1 }, descending: false, worst: () => undefined },
    (rows) => {
      count += rows.length;
      return count > max;
    },
    signal,
  );
  return Math.min(count, max + 1);
}

function orderOf({ sort = { by: 'key', order: 'asc' } }: Pick<ObjectQuery, 'sort'>): NonNullable<ObjectQuery['sort']> {
  return sort;
}

/** Sorts what was found, and keeps as many as the query wants. */
function keepFirst(found: Found[], query: ObjectQuery): void {
  const { by, order } = orderOf(query);
  const turn = order === 'asc' ? 1 : -1;
  if (by === 'key') found.sort((a, b) => turn * comparePlaces(a, b));
  else found.sort((a, b) => turn * compareValues(a.value, b.value) || comparePlaces(a, b));
  found.length = Math.min(found.length, query.limit);
}

function comparePlaces(a: Omit<Found, 'value'>, b: Omit<Found, 'value'>): number {
  return compareKeys(a.bucket, b.bucket) || compareKeys(a.key, b.key);
}

/** Both are numbers, or both are texts of ASCII. */
function compareValues(a: number | string, b: number | string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The expression by which rows are sorted. The empty text sorts before every time. */
const VALUES: Readonly<Record<SortField, string>> = {
  key: `0`,
  size: 'ifnull(size, -1)',
  last_modified: 'ifnull(modified, -1)',
  deleted_at: `ifnull(${DELETED_AT}, '')`,
};

interface Matching {
  readonly query: ObjectQuery;
  readonly descending: boolean;
  /** The value of the last place of a page that is full: a row behind it needs no sorting. */
  readonly worst: () => Found['value'] | undefined;
}

/** Takes the places of a part, within the call that read them. Returns whether no more are needed. */
type Take = (places: Found[], session: SqliteSession) => boolean;

/** Reads the places of matching documents in parts, which are in the order of bucket and key, or the reverse. Each part has at most `limit` rows: the first ones in the order of the query. */
async function eachPart(
  connection: SqliteConnection,
  { query, descending, worst }: Matching,
  take: Take,
  signal: AbortSignal | undefined,
): Promise<void> {
  function read({ sql, values }: SqlCondition): boolean {
    return connection.use((session) => {
      const rows = session.statement(sql).all(...values);
      return take(
        rows.map((row) => foundSchema.parse(row)),
        session,
      );
    }, signal);
  }
  const words = wordsToFind(query);
  if (words !== undefined && (orderOf(query).by !== 'key' || !isCommon(connection, words, signal))) {
    read(wordsStatement(query, words));
    return;
  }
  const source = { filter: query, descending };
  let rows = 0;
  for (const bucket of bucketsOf(connection, query, { descending, signal })) {
    for await (const range of chunksOf(connection, { bucket, source, after: afterKeyOf(query, bucket) }, signal)) {
      if (read(rangeStatement(query, range, worst()))) return;
      rows += range.rows;
      if (words !== undefined && rows >= COMMON_ROWS_MAX && range.last !== undefined) {
        read(wordsStatement({ ...query, after: { bucket, key: range.last } }, words));
        return;
      }
    }
  }
}

/** The words by which an index finds documents; tombstones have none. */
function wordsToFind({ words, deleted = false }: ObjectQuery): QueryWords | undefined {
  return deleted ? undefined : words;
}

/** Whether many documents have the words. */
function isCommon(connection: SqliteConnection, words: QueryWords, signal: AbortSignal | undefined): boolean {
  const sql = `SELECT 1 FROM object_words WHERE object_words MATCH ? AND ${unlessEnded('rowid')} LIMIT 1 OFFSET ?`;
  return connection.use(({ statement }) => statement(sql).get(matchOf(words), COMMON) !== undefined, signal);
}

/** The key after which a bucket continues in the order of keys. */
function afterKeyOf(query: ObjectQuery, bucket: string): string | undefined {
  return orderOf(query).by === 'key' && query.after?.bucket === bucket ? query.after.key : undefined;
}

/** The created buckets that may have matching documents, in order. */
export function bucketsOf(
  connection: SqliteConnection,
  query: Omit<ObjectQuery, 'limit'>,
  { descending, signal }: { readonly descending: boolean; readonly signal: AbortSignal | undefined },
): readonly string[] {
  const names = connection.use(
    ({ statement }) =>
      statement('SELECT name FROM buckets WHERE ?1 IS NULL OR name = ?1 ORDER BY name')
        .all(query.bucket ?? null)
        .map((row) => bucketSchema.parse(row).name),
    signal,
  );
  const { within } = query;
  const after = orderOf(query).by === 'key' ? query.after : undefined;
  const turn = descending ? -1 : 1;
  const left = names
    .filter((name) => within === undefined || within.some(({ bucket }) => bucket === name))
    .filter((name) => after === undefined || turn * compareKeys(name, after.bucket) >= 0);
  return descending ? left.toReversed() : left;
}

/** Which index a search reads, with its own condition. */
function indexOf({ deleted = false }: ObjectFilter): string {
  return deleted ? 'objects INDEXED BY objects_tombstones WHERE deleted = 1' : 'objects INDEXED BY objects_facts WHERE deleted = 0';
}

/** How many rows one call reads: the more tests of a row read its document or its key, the fewer. */
function rowsOf({ where = [], words }: ObjectFilter): number {
  const kinds = where.flatMap(({ anyOf }) => anyOf.map(({ kind }) => kind));
  const costly = kinds.filter((kind) => !ofIndex.has(kind)).length + (words ?? []).length;
  return Math.max(CHUNK_ROWS_MIN, Math.floor(CHUNK_ROWS / Math.max(1, costly)));
}

interface Chunked {
  readonly bucket: string;
  readonly source: Source;
  readonly after: string | undefined;
}

/** Splits the keys of a bucket that a filter may match into ranges of about CHUNK_ROWS rows. The event loop runs between two of them. */
export async function* chunksOf(connection: SqliteConnection, chunked: Chunked, signal: AbortSignal | undefined): AsyncGenerator<KeyRange> {
  const { bucket, source } = chunked;
  const { within, prefix } = source.filter;
  const parts = within === undefined ? [{ prefix }] : overlapping(within, { bucket, prefix });
  let sampled: readonly string[] | undefined;
  const fences = (): readonly string[] => (sampled ??= fencesOf(connection, chunked, signal));
  for (const part of source.descending ? parts.toReversed() : parts) {
    const filter = { ...source.filter, ...(part.prefix !== undefined && { prefix: part.prefix }) };
    yield* chunksBelow(connection, { ...chunked, source: { ...source, filter }, fences }, signal);
  }
}

async function* chunksBelow(
  connection: SqliteConnection,
  { bucket, source, after, fences }: Chunked & { readonly fences: () => readonly string[] },
  signal: AbortSignal | undefined,
): AsyncGenerator<KeyRange> {
  const { filter, descending } = source;
  const rows = rowsOf(filter);
  let left = descending ? untilKey(boundsOf(filter), after, '<') : fromKey(boundsOf(filter), after, '>');
  let fencesLeft: string[] | undefined;
  for (let ranges = 0; ; ranges += 1) {
    await letOthersRun();
    if (ranges >= COUNTED_RANGES) fencesLeft ??= fences().filter((key) => isBetween(key, left));
    const conditions = placeConditions(bucket, filter, left);
    const last = fencesLeft === undefined ? countedEnd(connection, { source, conditions, rows }, signal) : fencesLeft.shift();
    const part = descending ? fromKey(left, last, '>=') : untilKey(left, last, '<=');
    yield { bucket, conditions: placeConditions(bucket, filter, part), rows, ...(last !== undefined && { last }) };
    if (last === undefined) return;
    left = descending ? untilKey(left, last, '<') : fromKey(left, last, '>');
  }
}

/** The last key of the next range, which has `rows` rows; undefined if there are fewer. */
function countedEnd(
  connection: SqliteConnection,
  { source, conditions, rows }: { readonly source: Source; readonly conditions: readonly SqlCondition[]; readonly rows: number },
  signal: AbortSignal | undefined,
): string | undefined {
  const { filter, descending, from = indexOf(filter) } = source;
  const sql = `SELECT key FROM ${from} AND ${sqlOf(conditions)} ORDER BY key ${descending ? 'DESC' : 'ASC'} LIMIT 1 OFFSET ?`;
  return connection.use(({ statement }) => {
    const row = statement(sql).get(...valuesOf(conditions), rows - 1);
    return row === undefined ? undefined : keySchema.parse(row).key;
  }, signal);
}

/**
 * Keys of sampled objects. They part a bucket into ranges of about as many rows as one call reads. Counting the rows of a range
 * reads each row a second time, which is half of the time of a search that reads everything.
 */
function fencesOf(connection: SqliteConnection, { bucket, source }: Chunked, signal: AbortSignal | undefined): readonly string[] {
  const { filter, descending } = source;
  // the order of the joins is fixed, because an index by key would be read as a whole
  const sql = `SELECT DISTINCT key FROM (SELECT value AS sampled FROM json_each(?)) CROSS JOIN objects NOT INDEXED ON objects.id = sampled
    WHERE bucket = ? AND deleted = ? ORDER BY key ${descending ? 'DESC' : 'ASC'}`;
  return connection.use(({ statement }) => {
    const { id } = latestSchema.parse(statement('SELECT ifnull(max(id), 0) AS id FROM objects').get());
    const stride = Math.max(rowsOf(filter), Math.ceil(id / FENCES_MAX));
    // scattered, since objects that came at equal distances may be of one folder
    const sample = Array.from({ length: Math.floor(id / stride) }, (_, at) => at * stride + 1 + ((at * SCATTER) % stride));
    return statement(sql)
      .all(JSON.stringify(sample), bucket, filter.deleted === true ? 1 : 0)
      .map((row) => keySchema.parse(row).key);
  }, signal);
}

/**
 * The bounds of keys, one at each end: a range of an index has only one. With two, SQLite uses one of them and passes over
 * all rows between them, so that the duration of a search would grow with the square of its rows.
 */
interface KeyBounds {
  readonly lower?: { readonly operator: '>' | '>='; readonly key: string };
  readonly upper?: { readonly operator: '<' | '<='; readonly key: string };
}

export function boundsOf({ prefix = '' }: ObjectFilter): KeyBounds {
  const end = firstAfterPrefix(prefix);
  return {
    ...(prefix !== '' && { lower: { operator: '>=', key: prefix } }),
    ...(end !== undefined && { upper: { operator: '<', key: end } }),
  };
}

/** The bounds, with this one instead of the lower one if it is higher. */
function fromKey(bounds: KeyBounds, key: string | undefined, operator: '>' | '>='): KeyBounds {
  const isHigher = key !== undefined && (bounds.lower === undefined || compareKeys(key, bounds.lower.key) >= 0);
  return isHigher ? { ...bounds, lower: { operator, key } } : bounds;
}

/** The bounds, with this one instead of the upper one if it is lower. */
function untilKey(bounds: KeyBounds, key: string | undefined, operator: '<' | '<='): KeyBounds {
  const isLower = key !== undefined && (bounds.upper === undefined || compareKeys(key, bounds.upper.key) < 0);
  return isLower ? { ...bounds, upper: { operator, key } } : bounds;
}

function isBetween(key: string, { lower, upper }: KeyBounds): boolean {
  return (lower === undefined || compareKeys(key, lower.key) > 0) && (upper === undefined || compareKeys(key, upper.key) < 0);
}

function placeConditions(bucket: string, filter: ObjectFilter, bounds: KeyBounds): readonly SqlCondition[] {
  return [{ sql: 'bucket = ?', values: [bucket] }, ...keyConditions(filter, bounds)];
}

export function keyConditions({ key }: ObjectFilter, { lower, upper }: KeyBounds): readonly SqlCondition[] {
  return [
    ...(key === undefined ? [] : [{ sql: 'key = ?', values: [key] }]),
    ...(lower === undefined ? [] : [{ sql: `key ${lower.operator} ?`, values: [lower.key] }]),
    ...(upper === undefined ? [] : [{ sql: `key ${upper.operator} ?`, values: [upper.key] }]),
  ];
}

/** The conditions that a filter sets besides the bounds of keys and the words. */
export function otherConditions({ extension, where = [] }: ObjectFilter): readonly SqlCondition[] {
  return [...(extension === undefined ? [] : [{ sql: 'extension = ?', values: [extension] }]), ...where.map(conditionSql)];
}

export function sqlOf(conditions: readonly SqlCondition[]): string {
  return conditions.map(({ sql }) => sql).join(' AND ');
}

export function valuesOf(conditions: readonly SqlCondition[]): readonly SQLInputValue[] {
  return conditions.flatMap(({ values }) => values);
}

function rangeStatement(query: ObjectQuery, { conditions }: KeyRange, worst: Found['value'] | undefined): SqlCondition {
  // the words last: they are found in the key itself, which takes longer than any other test
  const all = [
    ...conditions,
    ...otherConditions(query),
    ...afterConditions(query),
    ...untilConditions(query, worst),
    ...wordConditions(query),
  ];
  return {
    sql: `SELECT bucket, key, ${valueOf(query)} AS value FROM ${indexOf(query)} AND ${sqlOf(all)} ORDER BY ${orderSql(query)} LIMIT ?`,
    values: [...valuesOf(all), query.limit],
  };
}

/** CROSS JOIN fixes the plan: without statistics, the planner would read a whole bucket for a rare word. */
function wordsStatement(query: ObjectQuery, words: QueryWords): SqlCondition {
  const isKnown = { sql: 'bucket IN (SELECT name FROM buckets WHERE ?1 IS NULL OR name = ?1)', values: [query.bucket ?? null] };
  const all = [
    isKnown,
    { sql: `object_words MATCH ? AND ${unlessEnded('objects.id')}`, values: [matchOf(words)] },
    ...keyConditions(query, boundsOf(query)),
    ...(query.within === undefined ? [] : [withinSql(query.within)]),
    ...otherConditions(query),
    ...afterConditions(query),
    ...afterPlace(query),
  ];
  return {
    sql: `SELECT bucket, key, ${valueOf(query)} AS value FROM object_words CROSS JOIN objects ON objects.id = object_words.rowid
      WHERE deleted = 0 AND ${sqlOf(all)} ORDER BY ${orderSql(query)} LIMIT ?`,
    values: [...valuesOf(all), query.limit],
  };
}

function valueOf(query: ObjectQuery): string {
  return VALUES[orderOf(query).by];
}

function orderSql(query: ObjectQuery): string {
  const { by, order } = orderOf(query);
  return by === 'key' ? `bucket ${order}, key ${order}` : `value ${order}, bucket, key`;
}

/** After the position of a query that is sorted by a value. */
function afterConditions(query: ObjectQuery): readonly SqlCondition[] {
  const { by, order } = orderOf(query);
  if (query.after === undefined || by === 'key') return [];
  const { value = -1, bucket, key } = query.after;
  const expression = VALUES[by];
  const bound = by === 'deleted_at' ? timeText(value) : value;
  const beyond = order === 'asc' ? '>' : '<';
  return [
    {
      sql: `(${expression} ${beyond} ? OR (${expression} = ? AND (bucket, key) > (?, ?)))`,
      values: [bound, bound, bucket, key],
    },
  ];
}

/** Not behind the last place of a page that is full. */
function untilConditions(query: ObjectQuery, worst: Found['value'] | undefined): readonly SqlCondition[] {
  if (worst === undefined) return [];
  return [{ sql: `${valueOf(query)} ${orderOf(query).order === 'asc' ? '<=' : '>='} ?`, values: [worst] }];
}

function timeText(ms: number): string {
  return ms < 0 ? '' : new Date(ms).toISOString();
}

/** After the position of a query that is sorted by bucket and key. */
function afterPlace(query: ObjectQuery): readonly SqlCondition[] {
  const { by, order } = orderOf(query);
  if (query.after === undefined || by !== 'key') return [];
  return [{ sql: `(bucket, key) ${order === 'asc' ? '>' : '<'} (?, ?)`, values: [query.after.bucket, query.after.key] }];
}

/** Reads the documents of the places that have none yet. */
function readRows({ statement }: SqliteSession, found: readonly Found[]): void {
  const byKey = statement(DOCUMENT_BY_KEY);
  for (const place of found) place.row ??= byKey.get(place.bucket, place.key);
}
