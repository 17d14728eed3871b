/** Searches and sums. They read ranges of an index or, if few documents contain the words, those documents. */
import { z } from 'zod';
import { compareKeys } from '../../base/key-order.ts';
import type { ObjectDocument } from '../../ordering/document.ts';
import type { QueryWords } from '../../base/words.ts';
import type { SortField } from '../conditions.rules.ts';
import type { ObjectFilter, ObjectQuery, UsageGroup, UsageQuery, UsageSums } from '../store.ts';
import {
  matchOf,
  withinSql,
  wordConditions,
  type SqlCondition,
  unlessEnded,
  beginningOf,
  boundsOf,
  bucketsOf,
  fromKey,
  indexOf,
  keyConditions,
  otherConditions,
  rangeConditions,
  rangesOf,
  sqlOf,
  untilKey,
  valuesOf,
  type KeyRange,
} from './conditions.ts';
import type { SqliteReads } from './connection.ts';
import { documentOfRow } from './schema.ts';
import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { objectAges, objectSizes, largestGroups, type UsageBy } from '../groups.rules.ts';

/**
 * If more documents contain the words, a search reads keys in order until its page is full, because reading and sorting those documents
 * takes a microsecond each.
 */
const COMMON = 10_000;
/** How many rows it reads in order before it turns to the documents with the words, which take longer than these rows. */
const COMMON_ROWS_MAX = 20_000;

const foundSchema = z.object({ bucket: z.string(), key: z.string(), value: z.union([z.number(), z.string()]), document: z.string() });
type Found = z.infer<typeof foundSchema>;
const countSchema = z.object({ count: z.number() });
const keySchema = z.object({ key: z.string() });

/** The matching documents in the query's order. */
export async function searchObjects(connection: SqliteReads, query: ObjectQuery): Promise<readonly ObjectDocument[]> {
  const { by } = orderOf(query);
  const found: Found[] = [];
  eachPart(connection, {
    query,
    read({ sql, values }) {
      // one statement reads places and documents, because a write in between could change whether and where a document matches
      const whole = `SELECT bucket, key, value, document FROM (${sql}) CROSS JOIN objects ON objects.id = found`;
      const rows = connection.use(({ statement }) => statement(whole).all(...values));
      found.push(...rows.map((row) => foundSchema.parse(row)));
      keepFirst(found, query);
      return by === 'key' && found.length >= query.limit;
    },
    worst: () => (by === 'key' ? undefined : found[query.limit - 1]?.value),
  });
  return found.map(documentOfRow);
}

/** The number of matching documents; `max` + 1 if there are more. */
export async function countObjects(connection: SqliteReads, filter: ObjectFilter, max: number): Promise<number> {
  let count = 0;
  eachPart(connection, {
    query: { ...filter, limit: max + 1 },
    read({ sql, values }) {
      const row = connection.use(({ statement }) => statement(`SELECT count(*) AS count FROM (${sql})`).get(...values));
      count += countSchema.parse(row).count;
      return count > max;
    },
    worst: () => undefined,
  });
  return Math.min(count, max + 1);
}

function orderOf({ sort = { by: 'key', order: 'asc' } }: Pick<ObjectQuery, 'sort'>): NonNullable<ObjectQuery['sort']> {
  return sort;
}

/** Sorts what was found, and keeps as many as the query asks for. */
function keepFirst(found: Found[], query: ObjectQuery): void {
  const { by, order } = orderOf(query);
  const turn = order === 'asc' ? 1 : -1;
  if (by === 'key') found.sort((a, b) => turn * comparePlaces(a, b));
  else found.sort((a, b) => turn * compareValues(a.value, b.value) || comparePlaces(a, b));
  found.length = Math.min(found.length, query.limit);
}

function comparePlaces(a: Found, b: Found): number {
  return compareKeys(a.bucket, b.bucket) || compareKeys(a.key, b.key);
}

/** Both are numbers, or both are ASCII texts. */
function compareValues(a: number | string, b: number | string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The expression that sorts rows. The empty text sorts before every time. */
const VALUES: Readonly<Record<SortField, string>> = {
  key: `0`,
  size: 'ifnull(size, -1)',
  last_modified: 'ifnull(modified, -1)',
  deleted_at: "ifnull(deleted_at, '')",
};

interface Matching {
  readonly query: ObjectQuery;
  /** Reads a part's places. Returns whether no more are needed. */
  readonly read: (statement: SqlCondition) => boolean;
  /** The value of the last place on a full page: rows after it need no sorting. */
  readonly worst: () => Found['value'] | undefined;
}

/** Reads the first places of matching documents in the query's order, in parts of at most `limit` rows. */
function eachPart(connection: SqliteReads, matching: Matching): void {
  const { query } = matching;
  const words = wordsToFind(query);
  if (words === undefined) return eachRange(connection, matching);
  if (orderOf(query).by === 'key' && isCommon(connection, words)) return firstRows(connection, { ...matching, words });
  matching.read(wordsStatement(query, words));
}

function eachRange(connection: SqliteReads, { query, read, worst }: Matching): void {
  for (const range of allRanges(connection, query)) if (read(rangeStatement(query, range, worst()))) return;
}

/** All buckets' ranges, in key order. */
function* allRanges(connection: SqliteReads, query: ObjectQuery): Generator<KeyRange> {
  const descending = isDescending(query);
  for (const bucket of bucketsOf(connection, query, descending))
    yield* rangesOf(bucket, query, { descending, after: afterKeyOf(query, bucket) });
}

/** Reads the first rows in key order, and then the documents with the words after them. */
function firstRows(connection: SqliteReads, { query, read, worst, words }: Matching & { readonly words: QueryWords }): void {
  let left = COMMON_ROWS_MAX;
  for (const { bucket, bounds } of allRanges(connection, query)) {
    const { rows, last } = beginningOf(connection, query, { bucket, bounds }, { max: left, descending: isDescending(query) });
    if (last === null) continue;
    const begun = isDescending(query) ? fromKey(bounds, last, '>=') : untilKey(bounds, last, '<=');
    if (read(rangeStatement(query, { bucket, bounds: begun }, worst()))) return;
    left -= rows;
    if (left > 0) continue;
    read(wordsStatement({ ...query, after: { bucket, key: last } }, words));
    return;
  }
}

/** The words by which the index finds documents; tombstones have none. */
function wordsToFind({ words, deleted = false }: ObjectQuery): QueryWords | undefined {
  return deleted ? undefined : words;
}

/** Whether many documents contain the words. */
function isCommon(connection: SqliteReads, words: QueryWords): boolean {
  const sql = `SELECT 1 FROM object_words WHERE object_words MATCH ? AND ${unlessEnded('rowid')} LIMIT 1 OFFSET ?`;
  return connection.use(({ statement }) => statement(sql).get(matchOf(words), COMMON) !== undefined);
}

function isDescending(query: ObjectQuery): boolean {
  const { by, order } = orderOf(query);
  return by === 'key' && order === 'desc';
}

/** The key after which a bucket continues in key order. */
function afterKeyOf(query: ObjectQuery, bucket: string): string | undefined {
  return orderOf(query).by === 'key' && query.after?.bucket === bucket ? query.after.key : undefined;
}

function rangeStatement(query: ObjectQuery, range: KeyRange, worst: Found['value'] | undefined): SqlCondition {
  // the words come last, because finding them in the key takes longer than any other test
  const all = [
    ...rangeConditions(range, query),
    { sql: unlessEnded('id'), values: [] },
    ...otherConditions(query),
    ...afterConditions(query),
    ...untilConditions(query, worst),
    ...wordConditions(query),
  ];
  return {
    sql: `SELECT id AS found, ${valueOf(query)} AS value FROM ${indexOf(query)} AND ${sqlOf(all)} ORDER BY ${orderSql(query)} LIMIT ?`,
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
    sql: `SELECT objects.id AS found, ${valueOf(query)} AS value FROM object_words CROSS JOIN objects ON objects.id = object_words.rowid
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

/** After the position of a query sorted by a value. */
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

/** Not after the last place of a full page. */
function untilConditions(query: ObjectQuery, worst: Found['value'] | undefined): readonly SqlCondition[] {
  if (worst === undefined) return [];
  return [{ sql: `${valueOf(query)} ${orderOf(query).order === 'asc' ? '<=' : '>='} ?`, values: [worst] }];
}

function timeText(ms: number): string {
  return ms < 0 ? '' : new Date(ms).toISOString();
}

/** After the position of a query sorted by bucket and key. */
function afterPlace(query: ObjectQuery): readonly SqlCondition[] {
  const { by, order } = orderOf(query);
  if (query.after === undefined || by !== 'key') return [];
  return [{ sql: `(bucket, key) ${order === 'asc' ? '>' : '<'} (?, ?)`, values: [query.after.bucket, query.after.key] }];
}

// ── sums of what a query finds ─────────────────────────────────────────────────────────────────────────────────────

const DAY_MS = 86_400_000;
/** How many index rows, or documents with the words, one call reads: some 5 ms. */
const INDEX_ROWS = 5_000;
const WORDS_ROWS = 1_000;
/** The most groups of one kind to keep until the largest are known: some 40 MB. A sum with more is too wide, like one that takes too long. */
const GROUPS_MAX = 200_000;

type Row = readonly SQLOutputValue[];

/** Sums what a query finds. Short synchronous calls read the rows' facts, other reads run between them, and the sums are computed here. */
export async function sumUsage(reads: SqliteReads, query: UsageQuery): Promise<UsageSums | 'too-slow'> {
  const untilMs = performance.now() + query.timeLimitMs;
  const whole = { objects: 0, bytes: 0 };
  const kinds = query.by.map((by, at) => createGroups(by, at + 1, query));
  for await (const rows of query.words === undefined ? rowsInRanges(reads, query) : rowsWithWords(reads, query, query.words)) {
    for (const row of rows) {
      const bytes = numberOf(row[0]) ?? 0;
      whole.objects += 1;
      whole.bytes += bytes;
      for (const { add } of kinds) add(row, bytes);
    }
    if (performance.now() >= untilMs || kinds.some(({ isTooWide }) => isTooWide())) return 'too-slow';
  }
  return { ...whole, groups: kinds.map(({ largest }) => largest()) };
}

/** A row's columns: its size, and the name of its group of each kind. */
function columnsOf({ by }: UsageQuery): string {
  return ['size', ...by.map((each) => COLUMNS[each])].join(', ');
}

const COLUMNS: Readonly<Record<UsageBy, string>> = {
  folder: 'key',
  extension: 'extension',
  class: 'class',
  size: 'size',
  age: 'modified',
  bucket: 'bucket',
};

async function* rowsInRanges(reads: SqliteReads, query: UsageQuery): AsyncGenerator<readonly Row[]> {
  for (const { bucket, bounds } of bucketsOf(reads, query, false).flatMap((name) => rangesOf(name, query))) {
    for (let left = bounds, last: string | undefined = ''; last !== undefined; left = fromKey(left, last, '>')) {
      await letOthersRun();
      last = keyAt(reads, query, { bucket, bounds: left }, INDEX_ROWS);
      const all = [...rangeConditions({ bucket, bounds: untilKey(left, last, '<=') }, query), ...otherConditions(query)];
      yield rowsOf(reads, `SELECT ${columnsOf(query)} FROM ${indexOf(query)} AND ${sqlOf(all)}`, valuesOf(all));
    }
  }
}

/** The key of the range's row number `rows` in key order; undefined if it has fewer. Stepping over rows takes a fraction of reading them. */
function keyAt(reads: SqliteReads, filter: ObjectFilter, range: KeyRange, rows: number): string | undefined {
  const conditions = rangeConditions(range, filter);
  const sql = `SELECT key FROM ${indexOf(filter)} AND ${sqlOf(conditions)} ORDER BY key LIMIT 1 OFFSET ?`;
  return reads.use(({ statement }) => keySchema.optional().parse(statement(sql).get(...valuesOf(conditions), rows - 1))?.key);
}

async function* rowsWithWords(reads: SqliteReads, query: UsageQuery, words: QueryWords): AsyncGenerator<readonly Row[]> {
  const conditions = [
    { sql: 'bucket IN (SELECT name FROM buckets WHERE ifnull(name = ?, 1))', values: [query.bucket ?? null] },
    ...keyConditions(query, boundsOf(query)),
    ...(query.within === undefined ? [] : [withinSql(query.within)]),
    ...otherConditions(query),
  ];
  const match = `SELECT rowid FROM object_words WHERE object_words MATCH ? AND ${unlessEnded('rowid')}`;
  const ids = rowsOf(reads, match, [matchOf(words)]).map(([id]) => id);
  // CROSS JOIN fixes the plan: without statistics, the planner would read a whole bucket for a rare word
  const sql = `SELECT ${columnsOf(query)} FROM (SELECT value AS found FROM json_each(?)) CROSS JOIN objects ON objects.id = found WHERE deleted = 0 AND ${sqlOf(conditions)}`;
  for (let from = 0; from < ids.length; from += WORDS_ROWS) {
    await letOthersRun();
    yield rowsOf(reads, sql, [JSON.stringify(ids.slice(from, from + WORDS_ROWS)), ...valuesOf(conditions)]);
  }
}

function rowsOf(reads: SqliteReads, sql: string, values: readonly SQLInputValue[]): readonly Row[] {
  return reads.use(({ statement }) => {
    const compiled = statement(sql);
    compiled.setReturnArrays(true);
    const rows: readonly unknown[] = compiled.all(...values);
    if (!areArrays(rows)) throw new TypeError('SQLite returned rows with names');
    return rows;
  });
}

/** Node's types lack setReturnArrays(). */
function areArrays(rows: readonly unknown[]): rows is readonly Row[] {
  return rows.every((row) => Array.isArray(row));
}

interface Groups {
  readonly add: (row: Row, bytes: number) => void;
  readonly isTooWide: () => boolean;
  /** The groups in the contract's order. */
  readonly largest: () => readonly UsageGroup[];
}

/** The groups of one kind, whose values are in a row's `column`. */
function createGroups(by: UsageBy, column: number, query: UsageQuery): Groups {
  const groups = new Map<string, { objects: number; bytes: number }>();
  const nameOf = namesOf(by, query);

  return {
    add(row, bytes) {
      const name = nameOf(row[column] ?? null);
      const group = groups.get(name);
      if (group === undefined) {
        groups.set(name, { objects: 1, bytes });
        return;
      }
      group.objects += 1;
      group.bytes += bytes;
    },
    isTooWide: () => groups.size > GROUPS_MAX,
    largest: () =>
      largestGroups(
        by,
        [...groups].map(([name, sums]) => ({ name, ...sums })),
        query.limit,
      ),
  };
}

/** The name of a value's group. */
function namesOf(by: UsageBy, { prefix = '', nowMs }: UsageQuery): (value: SQLOutputValue) => string {
  switch (by) {
    case 'folder':
      return (key) => nextFolder(String(key), prefix.length);
    case 'extension':
    case 'class':
    case 'bucket':
      return (value) => (value === null ? '' : String(value));
    case 'size':
      return (value) => objectSizes.find(({ bytes }) => value !== null && Number(value) < bytes)?.name ?? '';
    case 'age':
      return (value) => objectAges.find(({ days }) => value !== null && Number(value) >= nowMs - days * DAY_MS)?.name ?? '';
  }
}

/** A key's next folder after its first characters; empty for an object directly there. */
function nextFolder(key: string, from: number): string {
  return key.slice(0, key.indexOf('/', from) + 1);
}

function numberOf(value: SQLOutputValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
