/**
 * The sums of the live objects that are directly in each folder, by class and extension. Each write changes them in its own
 * transaction, because a sum of a whole bucket would otherwise read all of its objects. One write changes one row: those of the
 * folders above would be five more, each for the price of half a write.
 */
import { z } from 'zod';
import { firstAfterPrefix } from '../../domain/documents/key-order.ts';
import type { UsageQuery, UsageRow } from '../../pipeline/ports/object-usage.ts';
import { nextFolderSql, type SqlCondition } from './conditions.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { sqlOf, valuesOf } from './filtered.ts';

type Statement = SqliteSession['statement'];

interface Facts {
  readonly size?: number | null | undefined;
  readonly class?: string | null | undefined;
  readonly extension?: string | null | undefined;
}

interface Group {
  readonly bucket: string;
  readonly folder: string;
  readonly class: string;
  readonly extension: string;
}

interface Change extends Group {
  objects: number;
  bytes: number;
}

export interface FolderChanges {
  /** Counts an object that is there now (1), or that was until now (-1). */
  add(object: { readonly bucket: string; readonly key: string }, facts: Facts, count: 1 | -1): void;
  /** Changes the rows; to be called before the transaction ends. */
  store(statement: Statement): void;
}

/** Collects the changes of one transaction, since objects of one folder change the same rows. */
export function createFolderChanges(): FolderChanges {
  const changes = new Map<string, Change>();
  return {
    add({ bucket, key }, { size, class: storageClass, extension }, count) {
      const folder = key.slice(0, key.lastIndexOf('/') + 1);
      const group = { bucket, folder, class: storageClass ?? '', extension: extension ?? '' };
      const groupKey = keyOf(group);
      const change = changes.get(groupKey) ?? { ...group, objects: 0, bytes: 0 };
      change.objects += count;
      change.bytes += count * (size ?? 0);
      changes.set(groupKey, change);
    },

    store(statement) {
      for (const change of changes.values()) if (change.objects !== 0 || change.bytes !== 0) storeChange(statement, change);
    },
  };
}

/** An extension may contain any character, so its length says where it ends. */
function keyOf({ bucket, folder, class: storageClass, extension }: Group): string {
  return `${bucket} ${storageClass} ${extension.length} ${extension}${folder}`;
}

function storeChange(statement: Statement, { bucket, folder, class: storageClass, extension, objects, bytes }: Change): void {
  const group = [bucket, folder, storageClass, extension] as const;
  statement(
    `INSERT INTO folders (bucket, folder, class, extension, objects, bytes) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET objects = objects + excluded.objects, bytes = bytes + excluded.bytes`,
  ).run(...group, objects, bytes);
  if (objects >= 0) return;
  statement('DELETE FROM folders WHERE bucket = ? AND folder = ? AND class = ? AND extension = ? AND objects = 0').run(...group);
}

/** Deletes some rows of a removed bucket; returns how many. */
export function deleteFolders(statement: Statement, bucket: string, limit: number): number | bigint {
  const row = 'folder, class, extension';
  return statement(`DELETE FROM folders WHERE bucket = ?1 AND (${row}) IN (SELECT ${row} FROM folders WHERE bucket = ?1 LIMIT ?2)`).run(
    bucket,
    limit,
  ).changes;
}

/** With more rows than these, to read the objects takes no longer. */
const ROWS_MAX = 100_000;

const rowSchema = z.object({ name: z.string(), objects: z.number(), bytes: z.number() });

/** The sums of a whole folder; undefined if the query asks for others, or also for times, or if there are many folders below. */
export function usageOfFolders(
  connection: SqliteConnection,
  query: UsageQuery,
  signal: AbortSignal | undefined,
): readonly UsageRow[] | undefined {
  const { bucket, by, prefix, after, limit } = query;
  if (!isOfFolders(query)) return undefined;
  const end = firstAfterPrefix(prefix);
  const conditions = [
    { sql: 'bucket = (SELECT name FROM buckets WHERE name = ?)', values: [bucket] },
    { sql: 'folder >= ?', values: [prefix] },
    ...(end === undefined ? [] : [{ sql: 'folder < ?', values: [end] }]),
  ];
  const name = nameSql(query);
  // the group without a name is that of the folder itself
  const from = after === '' && by === 'folder' ? prefix : after;
  // total(), because a sum beyond 2^53 is no number that a program reads from SQLite
  const sql = `SELECT ${name.sql} AS name, sum(objects) AS objects, total(bytes) AS bytes FROM folders WHERE ${sqlOf(conditions)}
    GROUP BY 1 HAVING ? IS NULL OR name > ? ORDER BY 1 LIMIT ?`;
  const count = `SELECT 1 FROM folders WHERE ${sqlOf(conditions)} LIMIT 1 OFFSET ${ROWS_MAX}`;
  const rows = connection.use(({ statement }) => {
    if (statement(count).get(...valuesOf(conditions)) !== undefined) return undefined;
    return statement(sql).all(...name.values, ...valuesOf(conditions), from ?? null, from ?? null, limit);
  }, signal);
  return rows?.map((row) => rowSchema.parse(row)).map((row) => (by === 'folder' && row.name === prefix ? { ...row, name: '' } : row));
}

function isOfFolders({ by, prefix, key, words, extension, where = [], within, withoutTimes = false }: UsageQuery): boolean {
  const isWhole = [key, words, extension, within].every((part) => part === undefined) && where.length === 0;
  return withoutTimes && isWhole && by !== 'age' && (prefix === '' || prefix.endsWith('/'));
}

function nameSql({ by, prefix }: UsageQuery): SqlCondition {
  return by === 'folder' ? nextFolderSql('folder', prefix) : { sql: by, values: [] };
}
