/**
 * Searches with filters or in another order. They read ranges of an index in short synchronous calls, between which the event
 * loop runs. With words that few documents have, these are read instead.
 */
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import { compareKeys } from '../../domain/documents/key-order.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import type { QueryWords } from '../../domain/documents/words.ts';
import type { SortField } from '../../domain/search/conditions.ts';
import type { ObjectFilter, ObjectQuery } from '../../pipeline/ports/object-index.ts';
import { matchOf, withinSql, wordConditions, type SqlCondition } from './conditions.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { DOCUMENT_BY_KEY, documentOfRow } from './document.ts';
import { unlessEnded } from './functions.ts';
import {
  boundsOf,
  bucketsOf,
  chunksOf,
  fencedRanges,
  indexOf,
  keyConditions,
  otherConditions,
  sqlOf,
  valuesOf,
  type FencedKeys,
  type KeyRange,
  type Source,
} from './ranges.ts';

/**
 * With more documents that have the words, the first keys are looked for in the order of keys: to read and to sort the documents
 * takes a microsecond for each.
 */
const COMMON = 10_000;
/** The rows of the index that are read so before the documents with the words are: less than what these take. */
const COMMON_ROWS_MAX = 20_000;
/** The least ranges that are worth the messages between two threads and another opening of the file: 2 ms. */
const SHARED_RANGES_MIN = 10;

const foundSchema = z.object({ bucket: z.string(), key: z.string(), value: z.union([z.number(), z.string()]) });
export type Found = z.infer<typeof foundSchema> & {
  /** The row with the document. */
  row?: unknown;
};

/** Ranges of a search that two threads read: one from the first range on, and the other from the last. */
export interface SharedRanges {
  readonly query: ObjectQuery;
  readonly keys: FencedKeys;
  /** How many of them neither thread has taken yet, in memory that both have. */
  readonly left: Int32Array;
}

/** Has another thread read ranges too. Resolves with the first places that it found, and with none if no thread is idle. */
export type ShareRanges = (shared: SharedRanges) => Promise<readonly Found[]>;

/** The documents that match, in the order of the query. `share`: with the help of another thread, if the search is long. */
export async function searchFiltered(
  connection: SqliteConnection,
  query: ObjectQuery,
  share?: ShareRanges,
): Promise<readonly ObjectDocument[]> {
  const { found, take, worst } = pageOf(query);
  await eachPart(connection, { query, take, worst, share });
  return found.map(({ row }) => documentOfRow(row));
}

/** Reads ranges of a search in another thread from the last one on, until all are taken. Returns the first places that it found. */
export async function readShared(connection: SqliteConnection, { query, keys, left }: SharedRanges): Promise<readonly Found[]> {
  const { found, take, worst } = pageOf(query);
  const ranges = fencedRanges({ filter: query, descending: isDescending(query) }, keys);
  for (const range of ranges.toReversed()) {
    await letOthersRun();
    if (!takeRange(left)) break;
    read(connection, rangeStatement(query, range, worst()), take);
  }
  return found;
}

/** Returns false if no range is left to take. */
function takeRange(left: Int32Array): boolean {
  return Atomics.sub(left, 0, 1) > 0;
}

/** The first places that were found of a search, in its order. */
function pageOf(query: ObjectQuery): Pick<Matching, 'take' | 'worst'> & { readonly found: readonly Found[] } {
  const { by } = orderOf(query);
  const found: Found[] = [];
  return {
    found,
    take(places, session) {
      found.push(...places);
      keepFirst(found, query);
      // in the snapshot of the places: a document that is written in between may match no longer, or have another place
      readRows(session, found);
      return by === 'key' && found.length >= query.limit;
    },
    worst: () => (by === 'key' ? undefined : found[query.limit - 1]?.value),
  };
}

/** How many documents match; `max` + 1 if there are more. */
export async function countFiltered(
  connection: SqliteConnection,
  { filter, max }: { readonly filter: ObjectFilter; readonly max: number },
): Promise<number> {
  let count = 0;
  const take: Take = (places) => {
    count += places.length;
    return count > max;
  };
  await eachPart(connection, { query: { ...filter, limit: max + 1 }, take, worst: () => undefined });
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
  deleted_at: "ifnull(deleted_at, '')",
};

/** Takes the places of a part, in the snapshot in which they were read. Returns whether no more are needed. */
type Take = (places: readonly Found[], session: SqliteSession) => boolean;

interface Matching {
  readonly query: ObjectQuery;
  readonly take: Take;
  /** The value of the last place of a page that is full: a row behind it needs no sorting. */
  readonly worst: () => Found['value'] | undefined;
  readonly share?: ShareRanges | undefined;
}

/** Reads the places of matching documents in parts, each with at most `limit` rows: the first ones in the order of the query. */
async function eachPart(connection: SqliteConnection, matching: Matching): Promise<void> {
  const { query } = matching;
  const words = wordsToFind(query);
  if (words === undefined) return eachRange(connection, matching);
  if (orderOf(query).by === 'key' && isCommon(connection, words)) return firstRanges(connection, { ...matching, words });
  read(connection, wordsStatement(query, words), matching.take);
}

async function eachRange(connection: SqliteConnection, matching: Matching): Promise<void> {
  const { query, take, worst } = matching;
  const descending = isDescending(query);
  for (const bucket of bucketsOf(connection, query, descending)) {
    const { share, found, end } = createSharing(matching);
    const source = { filter: query, descending, share };
    for await (const range of chunksOf(connection, { bucket, source, after: afterKeyOf(query, bucket) })) {
      if (read(connection, rangeStatement(query, range, worst()), take)) return end();
    }
    const others = await found();
    if (others.length > 0 && connection.use((session) => take(others, session))) return;
  }
}

/** Reads some ranges in the order of keys, and the documents with the words behind these. */
async function firstRanges(
  connection: SqliteConnection,
  { query, take, worst, words }: Matching & { readonly words: QueryWords },
): Promise<void> {
  const descending = isDescending(query);
  const source = { filter: query, descending };
  let rows = 0;
  for (const bucket of bucketsOf(connection, query, descending)) {
    for await (const range of chunksOf(connection, { bucket, source, after: afterKeyOf(query, bucket) })) {
      if (read(connection, rangeStatement(query, range, worst()), take)) return;
      rows += range.rows;
      if (rows >= COMMON_ROWS_MAX && range.last !== undefined) {
        read(connection, wordsStatement({ ...query, after: { bucket, key: range.last } }, words), take);
        return;
      }
    }
  }
}

function read(connection: SqliteConnection, { sql, values }: SqlCondition, take: Take): boolean {
  return connection.use((session) =>
    session.snapshot(() => {
      const rows = session.statement(sql).all(...values);
      return take(
        rows.map((row) => foundSchema.parse(row)),
        session,
      );
    }),
  );
}

interface Sharing {
  readonly share: Source['share'];
  /** What the other thread found. It is not waited for if this thread has read everything, since it may have begun late or be busy. */
  readonly found: () => Promise<readonly Found[]>;
  /** Leaves nothing to the other thread. */
  readonly end: () => void;
}

/** Shares what fences part of a bucket with another thread. */
function createSharing({ query, share: ask }: Matching): Sharing {
  const left = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let others: Promise<readonly Found[]> | undefined;
  let notTakenHere = 0;
  return {
    share(keys) {
      const ranges = keys.fences.length + 1;
      if (ask === undefined || ranges < SHARED_RANGES_MIN) return () => true;
      Atomics.store(left, 0, ranges);
      notTakenHere = ranges;
      others = ask({ query, keys, left });
      // a failure is met when this thread has read its own ranges
      others.catch(() => undefined);
      return () => {
        if (!takeRange(left)) return false;
        notTakenHere -= 1;
        return true;
      };
    },
    found: async () => (notTakenHere === 0 ? [] : ((await others) ?? [])),
    end: () => void Atomics.store(left, 0, 0),
  };
}

/** The words by which an index finds documents; tombstones have none. */
function wordsToFind({ words, deleted = false }: ObjectQuery): QueryWords | undefined {
  return deleted ? undefined : words;
}

/** Whether many documents have the words. */
function isCommon(connection: SqliteConnection, words: QueryWords): boolean {
  const sql = `SELECT 1 FROM object_words WHERE object_words MATCH ? AND ${unlessEnded('rowid')} LIMIT 1 OFFSET ?`;
  return connection.use(({ statement }) => statement(sql).get(matchOf(words), COMMON) !== undefined);
}

function isDescending(query: ObjectQuery): boolean {
  const { by, order } = orderOf(query);
  return by === 'key' && order === 'desc';
}

/** The key after which a bucket continues in the order of keys. */
function afterKeyOf(query: ObjectQuery, bucket: string): string | undefined {
  return orderOf(query).by === 'key' && query.after?.bucket === bucket ? query.after.key : undefined;
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
