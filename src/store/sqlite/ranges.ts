/** The index ranges that searches and sums read: in each bucket, the keys below the prefix in each part that the caller may read. */
import type { SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import { overlapping } from '../readable.rules.ts';
import { compareKeys, firstAfterPrefix } from '../../base/key-order.ts';
import type { Condition } from '../conditions.rules.ts';
import type { ObjectFilter, ObjectQuery } from '../store.ts';
import { conditionSql, type SqlCondition } from './conditions.ts';
import type { SqliteReads } from './connection.ts';

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
export interface KeyBounds {
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
