import type { ObjectDocument } from '../../domain/documents/document.ts';
import { firstAfterPrefix } from '../../domain/documents/key-order.ts';
import type { ObjectQuery } from '../../pipeline/ports/object-index.ts';
import { matchOf, type SqlCondition } from './conditions.ts';
import type { SqliteSession } from './connection.ts';
import { overlapping } from '../../domain/access/readable.ts';
import { documentOfRow } from './document.ts';
import { unlessEnded } from './functions.ts';

/** A part of the (bucket, key) order: the keys after `afterKey` in the buckets whose names are `=`, `>` or `>=` `name`. */
interface Range {
  readonly buckets: '=' | '>' | '>=';
  readonly name: string;
  readonly prefix: string;
  readonly afterKey?: string;
}

/** Whether a search reads one range of an index, or its words only, in the order of bucket and key. */
export function isPlain({ where = [], deleted = false, sort, words, within }: ObjectQuery): boolean {
  // the words of a search are found once, and not for each part
  if (words !== undefined && within !== undefined) return false;
  return where.length === 0 && !deleted && (sort === undefined || (sort.by === 'key' && sort.order === 'asc'));
}

/**
 * Searches live documents of created buckets. They are in (bucket, key) order by UTF-8 bytes (collation BINARY). Without
 * words this reads a range of the index and stops at the limit; with words the cost grows with the number of matches.
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
  const order = after === undefined ? 1 : compareBytes(range.name, after.bucket);
  if (order < 0) return [];
  return order > 0 || after === undefined ? [range] : [{ ...range, afterKey: after.key }];
}

function searchRange(
  { statement }: SqliteSession,
  query: ObjectQuery,
  { range, limit }: { readonly range: Range; readonly limit: number },
): readonly ObjectDocument[] {
  const conditions = [
    { sql: `objects.bucket IN (SELECT name FROM buckets WHERE name ${range.buckets} ?)`, values: [range.name] },
    ...keyConditions(query, range),
    ...(query.extension === undefined ? [] : [{ sql: 'objects.extension = ?', values: [query.extension] }]),
    ...(query.words === undefined
      ? []
      : [{ sql: `${unlessEnded('objects.id')} AND object_words MATCH ?`, values: [matchOf(query.words)] }]),
  ];
  // INDEXED BY and CROSS JOIN fix the plan: without statistics, the planner would read a whole bucket for a rare word
  const from =
    query.words === undefined ? 'objects INDEXED BY objects_facts' : 'object_words CROSS JOIN objects ON objects.id = object_words.rowid';
  const where = conditions.map(({ sql }) => sql).join(' AND ');
  return statement(
    `SELECT objects.document FROM ${from} WHERE objects.deleted = 0 AND ${where} ORDER BY objects.bucket, objects.key LIMIT ?`,
  )
    .all(...conditions.flatMap(({ values }) => values), limit)
    .map(documentOfRow);
}

function keyConditions({ key }: ObjectQuery, { prefix, afterKey }: Range): readonly SqlCondition[] {
  const end = firstAfterPrefix(prefix);
  return [
    ...(key === undefined ? [] : [{ sql: 'objects.key = ?', values: [key] }]),
    // only the higher of the two lower bounds, because a range of an index has only one
    afterKey !== undefined && compareBytes(afterKey, prefix) >= 0
      ? { sql: 'objects.key > ?', values: [afterKey] }
      : { sql: 'objects.key >= ?', values: [prefix] },
    ...(end === undefined ? [] : [{ sql: 'objects.key < ?', values: [end] }]),
  ];
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
