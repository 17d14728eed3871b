/**
 * The sums of the live objects that are directly in each folder, by class and extension, and those of a bucket by the hour of their
 * modification, which give its ages. Each write changes them in its own transaction, because a sum of a whole bucket would otherwise
 * read all of its objects. One write changes one row of folders: those of the folders above would be five more, each for the price of
 * half a write.
 */
import { z } from 'zod';
import { firstAfterPrefix } from '../../domain/documents/key-order.ts';
import { ageMomentOf, HOUR_MS, hourOf } from '../../domain/search/facets.ts';
import type { UsageQuery, UsageRow } from '../../pipeline/ports/object-usage.ts';
import { nextFolderSql, type SqlCondition } from './conditions.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { folderOf } from './functions.ts';
import { sqlOf, valuesOf } from './ranges.ts';

type Statement = SqliteSession['statement'];

/** The columns of an object that its sums depend on. */
export interface Facts {
  readonly size: number | null;
  readonly modified: number | null;
  readonly class: string | null;
  readonly extension: string | null;
}

interface Group {
  readonly bucket: string;
  readonly folder: string;
  readonly class: string;
  readonly extension: string;
}

interface Change {
  objects: number;
  bytes: number;
}

/** The hour of objects whose modification is unknown: no time of JavaScript is so early. */
export const NO_HOUR = -(10 ** 10);

export interface SumChanges {
  /** Counts an object that is there now (1), or that was until now (-1). */
  add(object: { readonly bucket: string; readonly key: string }, facts: Facts, count: 1 | -1): void;
  /** Changes the rows; to be called before the transaction ends. */
  store(statement: Statement): void;
}

/** Collects the changes of one transaction, since objects of one folder, and those of one hour, change the same rows. */
export function createSumChanges(): SumChanges {
  const folders = new Map<string, Change & Group>();
  const hours = new Map<string, Change & { readonly bucket: string; readonly hour: number }>();
  return {
    add({ bucket, key }, { size, modified, class: storageClass, extension }, count) {
      const group = { bucket, folder: folderOf(key), class: storageClass ?? '', extension: extension ?? '' };
      const hour = modified === null ? NO_HOUR : hourOf(modified);
      const bytes = count * (size ?? 0);
      addTo(folders, keyOf(group), { ...group, objects: count, bytes });
      addTo(hours, `${bucket} ${hour}`, { bucket, hour, objects: count, bytes });
    },

    store(statement) {
      for (const change of folders.values()) if (isChange(change)) storeFolder(statement, change);
      for (const change of hours.values()) if (isChange(change)) storeHour(statement, change);
    },
  };
}

function addTo<Of extends Change>(changes: Map<string, Of>, name: string, change: Of): void {
  const known = changes.get(name);
  if (known === undefined) {
    changes.set(name, change);
    return;
  }
  known.objects += change.objects;
  known.bytes += change.bytes;
}

function isChange({ objects, bytes }: Change): boolean {
  return objects !== 0 || bytes !== 0;
}

/** An extension may contain any character, so its length says where it ends. */
function keyOf({ bucket, folder, class: storageClass, extension }: Group): string {
  return `${bucket} ${storageClass} ${extension.length} ${extension}${folder}`;
}

interface HourGroup {
  readonly bucket: string;
  readonly hour: number;
}

export function storeHour(statement: Statement, change: Change & HourGroup): void {
  const { bucket, hour, objects, bytes } = change;
  statement(
    `INSERT INTO hours (bucket, hour, objects, bytes) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET objects = objects + excluded.objects, bytes = bytes + excluded.bytes`,
  ).run(bucket, hour, objects, bytes);
  if (objects < 0) deleteEmptyHour(statement, change);
}

/** Of a row without objects whose bytes are wrong the difference must stay until it is corrected. */
export function deleteEmptyHour(statement: Statement, { bucket, hour }: HourGroup): void {
  statement('DELETE FROM hours WHERE bucket = ? AND hour = ? AND objects = 0 AND bytes = 0').run(bucket, hour);
}

export function storeFolder(statement: Statement, change: Change & Group): void {
  const { objects, bytes } = change;
  statement(
    `INSERT INTO folders (bucket, folder, class, extension, objects, bytes) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET objects = objects + excluded.objects, bytes = bytes + excluded.bytes`,
  ).run(...columnsOf(change), objects, bytes);
  if (objects < 0) deleteEmptyFolder(statement, change);
}

/** Of a row without objects whose bytes are wrong the difference must stay until it is corrected. */
export function deleteEmptyFolder(statement: Statement, group: Group): void {
  statement('DELETE FROM folders WHERE bucket = ? AND folder = ? AND class = ? AND extension = ? AND objects = 0 AND bytes = 0').run(
    ...columnsOf(group),
  );
}

function columnsOf({ bucket, folder, class: storageClass, extension }: Group) {
  return [bucket, folder, storageClass, extension] as const;
}

/** Deletes some rows of a removed bucket; returns how many. */
export function deleteSums(statement: Statement, bucket: string, limit: number): number | bigint {
  // all at once: ten years have 90,000 hours, which take 20 ms
  statement('DELETE FROM hours WHERE bucket = ?').run(bucket);
  const row = 'folder, class, extension';
  return statement(`DELETE FROM folders WHERE bucket = ?1 AND (${row}) IN (SELECT ${row} FROM folders WHERE bucket = ?1 LIMIT ?2)`).run(
    bucket,
    limit,
  ).changes;
}

/** The rows of a bucket by the hour of modification, in the columns of objects; undefined if the query asks for other sums than those of all of its ages, or counts them from within an hour. */
export function hoursOf(query: UsageQuery): SqlCondition | undefined {
  const { by, nowMs, bucket, prefix } = query;
  if (by !== 'age' || prefix !== '' || !isWhole(query) || nowMs !== ageMomentOf(nowMs)) return undefined;
  const sql = `SELECT iif(hour = ${NO_HOUR}, NULL, hour * ${HOUR_MS}) AS modified, objects, bytes AS size FROM hours WHERE bucket = ?`;
  return { sql, values: [bucket] };
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

function isOfFolders(query: UsageQuery): boolean {
  const { by, prefix } = query;
  return isWhole(query) && by !== 'age' && (prefix === '' || prefix.endsWith('/'));
}

/** Whether the sums are those of all objects below the prefix, and without their times. */
function isWhole({ key, words, extension, where = [], within, withoutTimes = false }: UsageQuery): boolean {
  return withoutTimes && where.length === 0 && [key, words, extension, within].every((part) => part === undefined);
}

function nameSql({ by, prefix }: UsageQuery): SqlCondition {
  return by === 'folder' ? nextFolderSql('folder', prefix) : { sql: by, values: [] };
}
