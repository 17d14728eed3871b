/** The ranges of an index that searches and sums read in short synchronous calls, between which the event loop runs. */
import type { SQLInputValue } from 'node:sqlite';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import { overlapping } from '../readable.rules.ts';
import { compareKeys, firstAfterPrefix } from '../../base/key-order.ts';
import type { Test } from '../conditions.rules.ts';
import type { ObjectFilter, ObjectQuery } from '../store.ts';
import { conditionSql, type SqlCondition } from './conditions.ts';
import type { SqliteReads } from './connection.ts';

/** The rows of an index that one synchronous call reads: some 5 ms. Tests that read more than the index share them. */
const CHUNK_ROWS = 5_000;
const CHUNK_ROWS_MIN = 100;
/** The ranges of a search that are counted before fences part the rest: most searches end in these. */
const COUNTED_RANGES = 2;
/** To look at as many objects takes some 10 ms. An index of more than ten million objects has longer ranges. */
const FENCES_MAX = 2_000;
/** Tests that the columns of the index answer. */
const ofIndex: ReadonlySet<Test['kind']> = new Set(['bucket', 'key', 'from', 'prefix', 'class', 'size', 'modified', 'deleted']);

/** A large prime, whose multiples are spread evenly in any stride. */
const SCATTER = 2_654_435_761;

const bucketSchema = z.object({ name: z.string() });
const keySchema = z.object({ key: z.string() });
const latestSchema = z.object({ id: z.number() });

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

export interface Source {
  readonly filter: ObjectFilter;
  /** What is read, with its condition. Default: the index that the filter needs. */
  readonly from?: string;
  readonly descending: boolean;
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

/** Which index a search reads, with its own condition. */
export function indexOf({ deleted = false }: ObjectFilter): string {
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
export async function* chunksOf(connection: SqliteReads, chunked: Chunked): AsyncGenerator<KeyRange> {
  const { bucket, source } = chunked;
  const { within, prefix } = source.filter;
  const parts = within === undefined ? [{ prefix }] : overlapping(within, { bucket, prefix });
  let sampled: readonly string[] | undefined;
  const fences = (): readonly string[] => (sampled ??= fencesOf(connection, chunked));
  for (const part of source.descending ? parts.toReversed() : parts) {
    const filter = { ...source.filter, ...(part.prefix !== undefined && { prefix: part.prefix }) };
    yield* chunksBelow(connection, { ...chunked, source: { ...source, filter }, fences });
  }
}

async function* chunksBelow(
  connection: SqliteReads,
  { bucket, source, after, fences }: Chunked & { readonly fences: () => readonly string[] },
): AsyncGenerator<KeyRange> {
  const { filter, descending } = source;
  let left = descending ? untilKey(boundsOf(filter), after, '<') : fromKey(boundsOf(filter), after, '>');
  for (let ranges = 0; ranges < COUNTED_RANGES; ranges += 1) {
    await letOthersRun();
    const last = countedEnd(connection, { source, conditions: placeConditions(bucket, filter, left) });
    const parted = partedAt(left, last, descending);
    yield rangeOf(source, { bucket, bounds: parted.range, last });
    if (last === undefined) return;
    left = parted.left;
  }
  await letOthersRun();
  for (const last of [...fences().filter((key) => isBetween(key, left)), undefined]) {
    await letOthersRun();
    const parted = partedAt(left, last, descending);
    yield rangeOf(source, { bucket, bounds: parted.range, last });
    left = parted.left;
  }
}

function rangeOf(
  { filter }: Source,
  { bucket, bounds, last }: { readonly bucket: string; readonly bounds: KeyBounds; readonly last: string | undefined },
): KeyRange {
  return { bucket, conditions: placeConditions(bucket, filter, bounds), rows: rowsOf(filter), ...(last !== undefined && { last }) };
}

/** The bounds of the range that ends with a key, and those of what is left behind it. Without a key the range has everything. */
function partedAt(
  bounds: KeyBounds,
  last: string | undefined,
  descending: boolean,
): { readonly range: KeyBounds; readonly left: KeyBounds } {
  return descending
    ? { range: fromKey(bounds, last, '>='), left: untilKey(bounds, last, '<') }
    : { range: untilKey(bounds, last, '<='), left: fromKey(bounds, last, '>') };
}

/** The last key of the next range; undefined if fewer rows than those of a range are left. */
function countedEnd(
  connection: SqliteReads,
  { source, conditions }: { readonly source: Source; readonly conditions: readonly SqlCondition[] },
): string | undefined {
  const { filter, descending, from = indexOf(filter) } = source;
  const sql = `SELECT key FROM ${from} AND ${sqlOf(conditions)} ORDER BY key ${descending ? 'DESC' : 'ASC'} LIMIT 1 OFFSET ?`;
  return connection.use(({ statement }) => {
    const row = statement(sql).get(...valuesOf(conditions), rowsOf(filter) - 1);
    return row === undefined ? undefined : keySchema.parse(row).key;
  });
}

/**
 * Keys of sampled objects. They part a bucket into ranges of about as many rows as one call reads. Counting the rows of a range
 * reads each row a second time, which is half of the time of a search that reads everything.
 */
function fencesOf(connection: SqliteReads, { bucket, source }: Chunked): readonly string[] {
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
  });
}

/**
 * The bounds of keys, one at each end: a range of an index has only one. With two, SQLite uses one of them and passes over
 * all rows between them, so that the duration of a search would grow with the square of its rows.
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

/** The bounds, with this one instead of the lower one if it is higher. */
export function fromKey(bounds: KeyBounds, key: string | undefined, operator: '>' | '>='): KeyBounds {
  const isHigher = key !== undefined && (bounds.lower === undefined || compareKeys(key, bounds.lower.key) >= 0);
  return isHigher ? { ...bounds, lower: { operator, key } } : bounds;
}

/** The bounds, with this one instead of the upper one if it is lower. */
export function untilKey(bounds: KeyBounds, key: string | undefined, operator: '<' | '<='): KeyBounds {
  const isLower = key !== undefined && (bounds.upper === undefined || compareKeys(key, bounds.upper.key) < 0);
  return isLower ? { ...bounds, upper: { operator, key } } : bounds;
}

function isBetween(key: string, { lower, upper }: KeyBounds): boolean {
  return (lower === undefined || compareKeys(key, lower.key) > 0) && (upper === undefined || compareKeys(key, upper.key) < 0);
}

function placeConditions(bucket: string, filter: ObjectFilter, bounds: KeyBounds): readonly SqlCondition[] {
  return [{ sql: 'bucket = ?', values: [bucket] }, ...keyConditions(filter, bounds)];
}

export function keyConditions({ key }: { readonly key?: string }, { lower, upper }: KeyBounds): readonly SqlCondition[] {
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
