import type { ObjectDocument } from '../../domain/documents/document.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import type { ObjectQuery } from '../../pipeline/ports/object-index.ts';
import type { SqliteSession } from './connection.ts';
import { overlapping } from '../../domain/access/readable.ts';
import { documentOfRow } from './document.ts';
import { boundsOf, fromKey, keyConditions, otherConditions, sqlOf, valuesOf } from './ranges.ts';

/** A part of the (bucket, key) order: the keys after `afterKey` in the buckets whose names are `=`, `>` or `>=` `name`. */
interface Range {
  readonly buckets: '=' | '>' | '>=';
  readonly name: string;
  readonly prefix: string;
  readonly afterKey?: string;
}

/** Whether a search reads ranges of the index, in the order of bucket and key. */
export function isPlain({ where = [], deleted = false, sort, words }: ObjectQuery): boolean {
  return words === undefined && where.length === 0 && !deleted && (sort === undefined || (sort.by === 'key' && sort.order === 'asc'));
}

/**
 * Searches live documents of created buckets. They are in (bucket, key) order by UTF-8 bytes (collation BINARY). It reads a range
 * of the index and stops at the limit.
 */
export function searchObjects(session: SqliteSession, query: ObjectQuery): readonly ObjectDocument[] {
  const found: ObjectDocument[] = [];
  for (const range of rangesOf(query)) {
    if (found.length < query.limit) found.push(...searchRange(session, query, { range, limit: query.limit - found.length }));
  }
  return found;
}

/** The ranges that remain for the query's bucket, its parts and its cursor, in order. Each is one range of the index. */
function rangesOf({ bucket, prefix = '', within, after }: ObjectQuery): readonly Range[] {
  if (within !== undefined) {
    return overlapping(within, { bucket, prefix }).flatMap((part) =>
      remaining({ buckets: '=', name: part.bucket, prefix: part.prefix }, after),
    );
  }
  if (bucket !== undefined) return remaining({ buckets: '=', name: bucket, prefix }, after);
  const rest = { buckets: '>' as const, name: after?.bucket ?? '', prefix };
  return after === undefined ? [{ ...rest, buckets: '>=' }] : [{ ...rest, buckets: '=', afterKey: after.key }, rest];
}

/** What is left of a range of one bucket behind a position. */
function remaining(range: Range, after: ObjectQuery['after']): readonly Range[] {
  const order = after === undefined ? 1 : compareKeys(range.name, after.bucket);
  if (order < 0) return [];
  return order > 0 || after === undefined ? [range] : [{ ...range, afterKey: after.key }];
}

function searchRange(
  { statement }: SqliteSession,
  query: ObjectQuery,
  { range, limit }: { readonly range: Range; readonly limit: number },
): readonly ObjectDocument[] {
  const conditions = [
    { sql: `bucket IN (SELECT name FROM buckets WHERE name ${range.buckets} ?)`, values: [range.name] },
    ...keyConditions(query, fromKey(boundsOf(range), range.afterKey, '>')),
    ...otherConditions(query),
  ];
  // INDEXED BY fixes the plan: without statistics, the planner may choose another index
  return statement(
    `SELECT document FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)} ORDER BY bucket, key LIMIT ?`,
  )
    .all(...valuesOf(conditions), limit)
    .map(documentOfRow);
}
