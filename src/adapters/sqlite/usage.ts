import { defined } from '../../domain/defined.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { z } from 'zod';
import { objectAges } from '../../domain/search/facets.ts';
import type { ObjectUsage, UsageQuery, UsageRow } from '../../pipeline/ports/object-usage.ts';
import { ageConditions, nextFolderSql, wordConditions, type SqlCondition } from './conditions.ts';
import type { SqliteConnection } from './connection.ts';
import { facetsInSqlite } from './facets.ts';
import { chunksOf, otherConditions, sqlOf, valuesOf, type KeyRange } from './ranges.ts';
import { hoursOf, usageOfFolders } from './sums.ts';

/** Groups that are kept besides those of the page, so that they are sorted only now and then. */
const GROUPS_SPARE = 10_000;

const keySchema = z.object({ key: z.string() });
const groupSchema = z.object({
  name: z.string(),
  objects: z.number(),
  bytes: z.number().nullable(),
  oldest: z.number().nullable(),
  newest: z.number().nullable(),
});
type Group = z.infer<typeof groupSchema>;
const sumsSchema = z.record(z.string(), z.number().nullable());

/** Creates the sums in SQLite. Those of whole folders and of the ages of a bucket are stored; others read the index of facts in short synchronous calls. */
export function createSqliteUsage(connection: SqliteConnection): ObjectUsage {
  /** The folder that all keys of a range are in; undefined if there are several, or keys that are in none. */
  function onlyFolder({ by, prefix }: UsageQuery, { conditions }: KeyRange, signal: AbortSignal | undefined): string | undefined {
    if (by !== 'folder') return undefined;
    const [first, last] = ['ASC', 'DESC'].map((direction) =>
      connection.use(({ statement }) => {
        const sql = `SELECT key FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)} ORDER BY key ${direction} LIMIT 1`;
        const row = statement(sql).get(...valuesOf(conditions));
        return row === undefined ? undefined : folderOf(keySchema.parse(row).key, prefix);
      }, signal),
    );
    return first === last ? first : undefined;
  }

  /** The sums of all ages in one row: to sort rows by their ages would take twice as long. `rows`: `modified`, `objects` and `size`. */
  function agesOf({ nowMs, withoutTimes = false }: UsageQuery, rows: SqlCondition, signal: AbortSignal | undefined): readonly Group[] {
    const ages = ageConditions(nowMs);
    const sums = ['total(objects)', 'total(size)', ...(withoutTimes ? [] : ['min(modified)', 'max(modified)'])];
    const columns = ages.flatMap(({ sql }, age) => sums.map((sum, at) => `${sum} FILTER (WHERE ${sql}) AS sum_${age}_${at}`));
    const values = ages.flatMap((age) => sums.flatMap(() => age.values));
    const sql = `SELECT ${columns.join(', ')} FROM (${rows.sql})`;
    const row = connection.use(({ statement }) => sumsSchema.parse(statement(sql).get(...values, ...rows.values)), signal);
    const found = Object.values(row);
    return ages.map(({ name }, at) => {
      const [objects, bytes = null, oldest = null, newest = null] = found.slice(at * sums.length, (at + 1) * sums.length);
      return { name, objects: objects ?? 0, bytes, oldest, newest };
    });
  }

  function readGroups(query: UsageQuery, range: KeyRange, signal: AbortSignal | undefined): readonly Group[] {
    const conditions = [...range.conditions, ...wordConditions(query), ...otherConditions(query)];
    if (query.by === 'age') {
      const sql = `SELECT modified, 1 AS objects, size FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)}`;
      return agesOf(query, { sql, values: valuesOf(conditions) }, signal);
    }
    const folder = onlyFolder(query, range, signal);
    return folder === undefined ? groupsOf(query, conditions, signal) : [groupOf(folder, conditions, signal)];
  }

  /** The sums of one group, without sorting rows by their groups, which takes most of the time. */
  function groupOf(name: string, conditions: readonly SqlCondition[], signal: AbortSignal | undefined): Group {
    const sql = `SELECT ? AS name, count(*) AS objects, total(size) AS bytes, min(modified) AS oldest, max(modified) AS newest
      FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)}`;
    return connection.use(({ statement }) => groupSchema.parse(statement(sql).get(name, ...valuesOf(conditions))), signal);
  }

  function groupsOf(query: UsageQuery, conditions: readonly SqlCondition[], signal: AbortSignal | undefined): readonly Group[] {
    const name = nameSql(query);
    // total(), because a sum beyond 2^53 is no number that a program reads from SQLite
    // the inner statement reads the index alone; without its limit the two would be joined, and the documents be read and sorted
    const sql = `SELECT name, count(*) AS objects, total(bytes) AS bytes, min(modified) AS oldest, max(modified) AS newest FROM (
        SELECT ${name.sql} AS name, size AS bytes, modified
        FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)} LIMIT -1
      ) GROUP BY name`;
    return connection.use(
      ({ statement }) =>
        statement(sql)
          .all(...name.values, ...valuesOf(conditions))
          .map((row) => groupSchema.parse(row)),
      signal,
    );
  }

  return {
    async usage(query, signal) {
      const ofFolders = usageOfFolders(connection, query, signal);
      if (ofFolders !== undefined) return ofFolders;
      const { bucket, limit, timeLimitMs } = query;
      if (!isCreated(connection, bucket, signal)) return [];
      const untilMs = performance.now() + timeLimitMs;
      const rows = new Map<string, UsageRow>();
      const hours = hoursOf(query);
      if (hours !== undefined) {
        addGroups(rows, agesOf(query, hours, signal), query);
        return pageOf(rows, query);
      }
      const source = { filter: query, descending: false };
      const from = beginOf(query);
      for await (const range of chunksOf(connection, { bucket, source, after: from }, signal)) {
        addGroups(rows, readGroups(query, range, signal), query);
        if (performance.now() > untilMs) return 'too-slow';
        // the last folder that was found may continue in the next range
        if (from !== undefined && foldersOf(rows, query) > limit) break;
        if (rows.size > limit + GROUPS_SPARE) keepFirst(rows, query);
      }
      // what was read of a bucket that was removed meanwhile is a part of it
      return isCreated(connection, bucket, signal) ? pageOf(rows, query) : [];
    },
    facets: (query, signal) => facetsInSqlite(connection, query, signal),
  };
}

/** The key behind the last folder of the page before, where the next page of folders begins. */
function beginOf({ by, after = '' }: UsageQuery): string | undefined {
  return by === 'folder' && after !== '' ? `${after}\u{10ffff}` : undefined;
}

function addGroups(rows: Map<string, UsageRow>, groups: readonly Group[], { by, prefix }: UsageQuery): void {
  for (const group of groups) {
    // of a range whose rows the filter leaves out
    if (group.objects === 0) continue;
    const name = by === 'folder' && group.name === prefix ? '' : group.name;
    rows.set(name, joined(rows.get(name), { ...group, name }));
  }
}

/** How many folders follow the one after which a page begins. */
function foldersOf(rows: ReadonlyMap<string, UsageRow>, { after = '' }: UsageQuery): number {
  return rows.size - (rows.has('') ? 1 : 0) - (rows.has(after) ? 1 : 0);
}

/** Forgets the groups that are behind the page: what is read later cannot bring them into it. */
function keepFirst(rows: Map<string, UsageRow>, query: UsageQuery): void {
  const kept = pageOf(rows, query);
  rows.clear();
  for (const row of kept) rows.set(row.name, row);
}

function pageOf(rows: ReadonlyMap<string, UsageRow>, query: UsageQuery): readonly UsageRow[] {
  const { after, limit } = query;
  return [...rows.values()]
    .filter(({ name }) => after === undefined || compareKeys(name, after) > 0)
    .sort((a, b) => rankOf(query, a.name) - rankOf(query, b.name) || compareKeys(a.name, b.name))
    .slice(0, limit);
}

function isCreated(connection: SqliteConnection, bucket: string, signal: AbortSignal | undefined): boolean {
  return connection.use(({ statement }) => statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) !== undefined, signal);
}

/** Ages are in their own order. */
function rankOf({ by }: UsageQuery, name: string): number {
  return by === 'age' ? objectAges.findIndex((age) => age.name === name) : 0;
}

/** The next folder of a key below the prefix; undefined if the object is in the prefix itself. */
function folderOf(key: string, prefix: string): string | undefined {
  const slash = key.indexOf('/', prefix.length);
  return slash < 0 ? undefined : key.slice(0, slash + 1);
}

/** The name of a row's group; ages have none. */
function nameSql({ by, prefix }: UsageQuery): SqlCondition {
  return by === 'folder' ? nextFolderSql('key', prefix) : { sql: `ifnull(${by === 'class' ? 'class' : 'extension'}, '')`, values: [] };
}

function joined(known: UsageRow | undefined, { name, objects, bytes, oldest, newest }: Group): UsageRow {
  const oldestMs = least(known?.oldestMs, oldest);
  const newestMs = greatest(known?.newestMs, newest);
  return {
    name,
    objects: (known?.objects ?? 0) + objects,
    bytes: (known?.bytes ?? 0) + (bytes ?? 0),
    ...defined({ oldestMs, newestMs }),
  };
}

function least(known: number | undefined, time: number | null): number | undefined {
  return time === null ? known : Math.min(known ?? Infinity, time);
}

function greatest(known: number | undefined, time: number | null): number | undefined {
  return time === null ? known : Math.max(known ?? -Infinity, time);
}
