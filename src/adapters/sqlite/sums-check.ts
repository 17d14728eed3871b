/**
 * Compares the stored sums with the objects that they sum, and corrects them: whatever made them differ, the objects are right. Each write
 * changes the sums by what it changes, so a difference stays the same while others write, and is taken out at any later time.
 */
import { z } from 'zod';
import type { SumsCorrection } from '../../pipeline/ports/object-index.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { unlessEnded } from './functions.ts';
import { deleteEmptyFolder, deleteEmptyHour, NO_HOUR, storeFolder, storeHour } from './sums.ts';

/** Of a larger bucket the sums are not compared: SQLite sorts all of its objects, a million in some 100 MB of temporary files, which may be memory. */
const OBJECTS_MAX = 1_000_000;
/** Groups that one transaction corrects, in about 50 ms. */
const GROUPS_MAX = 10_000;

const changeSchema = z.object({ objects: z.number(), bytes: z.number() });
const folderSchema = changeSchema.extend({ folder: z.string(), class: z.string(), extension: z.string() });
const hourSchema = changeSchema.extend({ hour: z.number() });
const identitySchema = z.object({ id: z.string() });

export interface SumsDifferences {
  /** The bucket as it was compared: one that was made again has other objects. */
  readonly id: string;
  readonly folders: readonly z.infer<typeof folderSchema>[];
  readonly hours: readonly z.infer<typeof hourSchema>[];
}

type Statement = SqliteSession['statement'];

/** What the sums of the bucket lack; undefined if it was not created or is too large. It reads all of its objects, a million in four seconds. */
export function sumsDifferences(connection: SqliteConnection, bucket: string): SumsDifferences | undefined {
  return connection.use(({ statement, snapshot }) =>
    snapshot(() => {
      const id = idOf(statement, bucket);
      if (id === undefined || isTooLarge(statement, bucket)) return undefined;
      const folders = { folder: 'tally_folder(key)', class: `ifnull(class, '')`, extension: `ifnull(extension, '')` };
      const hours = { hour: `ifnull(tally_hour(modified), ${NO_HOUR})` };
      const differences = (table: string, groups: Readonly<Record<string, string>>) =>
        statement(differencesSql(table, groups)).all(bucket, bucket, GROUPS_MAX);
      return {
        id,
        folders: differences('folders', folders).map((row) => folderSchema.parse(row)),
        hours: differences('hours', hours).map((row) => hourSchema.parse(row)),
      };
    }),
  );
}

function isTooLarge(statement: Statement, bucket: string): boolean {
  const sql = 'SELECT 1 FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND bucket = ? LIMIT 1 OFFSET ?';
  return statement(sql).get(bucket, OBJECTS_MAX) !== undefined;
}

/** `groups`: the columns of the table that name a group, and what they are of an object. */
function differencesSql(table: string, groups: Readonly<Record<string, string>>): string {
  const names = Object.keys(groups).join(', ');
  const of = Object.entries(groups).map(([name, sql]) => `${sql} AS ${name}`);
  // sorted once: a join of two lists of groups compares each with each. Real, because a damaged number may be none that a program reads
  // from SQLite. A single row is one that has no counterpart, be it of nothing.
  return `SELECT ${names}, CAST(sum(objects) AS REAL) AS objects, CAST(sum(bytes) AS REAL) AS bytes FROM (
      SELECT ${of.join(', ')}, count(*) AS objects, ifnull(sum(size), 0) AS bytes
      FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND bucket = ? AND ${unlessEnded('id')} GROUP BY ${names}
      UNION ALL SELECT ${names}, -objects, -bytes FROM ${table} WHERE bucket = ?
    ) GROUP BY ${names} HAVING sum(objects) <> 0 OR sum(bytes) <> 0 OR count(*) = 1 LIMIT ?`;
}

/** Takes the differences out, in one transaction. Returns undefined if there are none, or if the bucket was removed since they were read. */
export function correctSums(
  connection: SqliteConnection,
  bucket: string,
  { id, folders, hours }: SumsDifferences,
): SumsCorrection | undefined {
  const groups = folders.length + hours.length;
  if (groups === 0) return undefined;
  return connection.use(({ statement, transaction }) =>
    transaction(() => {
      if (idOf(statement, bucket) !== id) return undefined;
      for (const change of folders) {
        storeFolder(statement, { bucket, ...change });
        deleteEmptyFolder(statement, { bucket, ...change });
      }
      for (const change of hours) {
        storeHour(statement, { bucket, ...change });
        deleteEmptyHour(statement, { bucket, ...change });
      }
      const sum = (field: 'objects' | 'bytes'): number => folders.reduce((total, change) => total + change[field], 0);
      const more = Math.max(folders.length, hours.length) === GROUPS_MAX;
      return { groups, objects: sum('objects'), bytes: sum('bytes'), more };
    }),
  );
}

function idOf(statement: Statement, bucket: string): string | undefined {
  const row = statement('SELECT id FROM buckets WHERE name = ?').get(bucket);
  return row === undefined ? undefined : identitySchema.parse(row).id;
}
