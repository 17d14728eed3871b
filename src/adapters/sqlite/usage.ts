/** Sums in SQLite: one statement that groups the rows, and ends when its time is over. */
import type { SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import { overlapping, type BucketPart } from '../../domain/access/readable.ts';
import { firstAfterPrefix } from '../../domain/documents/key-order.ts';
import { objectAges, objectSizes, orderedNames, type UsageBy } from '../../domain/search/groups.ts';
import type { SumUsage, UsageQuery, UsageSums } from '../../pipeline/ports/object-usage.ts';
import { matchOf, nextFolderSql, withinSql, type SqlCondition } from './conditions.ts';
import type { SqliteConnection } from './connection.ts';
import { LATE, unlessLate } from './functions.ts';
import { boundsOf, keyConditions, otherConditions, sqlOf, valuesOf } from './ranges.ts';

const DAY_MS = 86_400_000;

const rowSchema = z.object({ kind: z.number(), name: z.string(), objects: z.number(), bytes: z.number() });

/** Sums. The statement keeps its thread for as long as it takes. */
export function sumUsage(connection: SqliteConnection, query: UsageQuery): Awaited<ReturnType<SumUsage>> {
  try {
    const { sql, values } = statementOf(query, sourceOf(query));
    return sumsOf(
      query,
      connection.use(({ statement }) => statement(sql).all(...values)).map((row) => rowSchema.parse(row)),
    );
  } catch (error) {
    if (error instanceof Error && error.message.includes(LATE)) return 'too-slow';
    throw error;
  }
}

/** The rows by all kinds of groups together, and then by each kind: SQLite reads and sorts the rows once. */
function statementOf(query: UsageQuery, source: SqlCondition): SqlCondition {
  const names = query.by.map((by) => nameSql(by, query));
  const columns = names.map(({ sql }, kind) => `${sql} AS name_${kind}, `).join('');
  // total(), because a sum beyond 2^53 is no number that a program reads from SQLite. Parted, so that the rows are those of the index alone
  const grouped = `SELECT ${names.map((_, kind) => `name_${kind}, `).join('')}count(*) AS objects, total(size) AS bytes
    FROM (SELECT ${columns}size FROM ${source.sql} LIMIT -1)${names.length === 0 ? '' : ` GROUP BY ${names.map((_, kind) => `name_${kind}`).join(', ')}`}`;
  const ofKinds = names.map(
    (_, kind) => `SELECT * FROM (SELECT ${kind} AS kind, name_${kind} AS name, sum(objects) AS objects, total(bytes) AS bytes
      FROM sums GROUP BY name_${kind} ORDER BY objects DESC, name LIMIT ?)`,
  );
  const whole = `SELECT -1 AS kind, '' AS name, ifnull(sum(objects), 0) AS objects, total(bytes) AS bytes FROM sums`;
  return {
    sql: `WITH sums AS MATERIALIZED (${grouped}) ${[whole, ...ofKinds].join(' UNION ALL ')}`,
    values: [...valuesOf(names), ...source.values, ...query.by.map((by) => (orderedNames(by) === undefined ? query.limit : -1))],
  };
}

/** The parts of buckets that are read by the index of facts, or the documents that have the words. */
function sourceOf(query: UsageQuery): SqlCondition {
  const { words, within } = query;
  const late = { sql: unlessLate('objects.id'), values: [performance.now() + query.timeLimitMs] };
  const others = [late, ...otherConditions(query)];
  if (words !== undefined) {
    const conditions = [
      { sql: 'bucket IN (SELECT name FROM buckets WHERE ifnull(name = ?, 1))', values: [query.bucket ?? null] },
      { sql: 'object_words MATCH ?', values: [matchOf(words)] },
      ...keyConditions(query, boundsOf(query)),
      ...(within === undefined ? [] : [withinSql(within)]),
      ...others,
    ];
    // the order of the joins is fixed: without statistics, a whole bucket would be read for a rare word
    const sql = `object_words CROSS JOIN objects ON objects.id = object_words.rowid WHERE deleted = 0 AND ${sqlOf(conditions)}`;
    return { sql, values: valuesOf(conditions) };
  }
  const parts = within === undefined ? ofBuckets(query) : ofParts(overlapping(within, query));
  const conditions = [...keyConditions(query, {}), ...others];
  // a bucket that was removed meanwhile still has some of its documents
  const sql = `${parts.sql} AS part CROSS JOIN buckets USING (name) CROSS JOIN objects INDEXED BY objects_facts
    ON bucket = name AND key >= low AND key < high WHERE deleted = 0 AND ${sqlOf(conditions)}`;
  return { sql, values: [...parts.values, ...valuesOf(conditions)] };
}

function ofBuckets({ bucket, prefix = '' }: UsageQuery): SqlCondition {
  return {
    sql: '(SELECT name, ? AS low, ? AS high FROM buckets WHERE ifnull(name = ?, 1))',
    values: [...boundsOfPart(prefix), bucket ?? null],
  };
}

function ofParts(parts: readonly BucketPart[]): SqlCondition {
  const rows = parts.map(() => '(?, ?, ?)').join(', ');
  const values = rows === '' ? 'SELECT 1 AS column1, 2 AS column2, 3 AS column3 WHERE 0' : `VALUES ${rows}`;
  return {
    sql: `(SELECT column1 AS name, column2 AS low, column3 AS high FROM (${values}))`,
    values: parts.flatMap(({ bucket, prefix }) => [bucket, ...boundsOfPart(prefix)]),
  };
}

/** Every text is before a blob. */
function boundsOfPart(prefix: string): readonly [SQLInputValue, SQLInputValue] {
  return [prefix, firstAfterPrefix(prefix) ?? new Uint8Array()];
}

function nameSql(by: UsageBy, { prefix = '', nowMs }: UsageQuery): SqlCondition {
  switch (by) {
    case 'folder': {
      const { sql, values } = nextFolderSql('key', prefix);
      return { sql: `iif(${sql} = ?, '', ${sql})`, values: [...values, prefix, ...values] };
    }
    case 'extension':
    case 'class':
      return { sql: `ifnull(${by}, '')`, values: [] };
    case 'bucket':
      return { sql: by, values: [] };
    case 'size':
      return caseSql(
        'size <',
        objectSizes.map(({ name, bytes }) => [name, bytes]),
      );
    case 'age':
      return caseSql(
        'modified >=',
        objectAges.map(({ name, days }) => [name, nowMs - days * DAY_MS]),
      );
  }
}

/** The first of these names whose bound holds; the last one has none. Rows without a value have no name. */
function caseSql(compared: string, groups: readonly (readonly [name: string, bound: number])[]): SqlCondition {
  const cases = groups.map(([name, bound]) => (Number.isFinite(bound) ? `WHEN ${compared} ${bound} THEN '${name}'` : `ELSE '${name}'`));
  const [column = ''] = compared.split(' ');
  return { sql: `CASE WHEN ${column} IS NULL THEN '' ${cases.join(' ')} END`, values: [] };
}

function sumsOf({ by }: UsageQuery, rows: readonly z.infer<typeof rowSchema>[]): UsageSums {
  const [whole] = rows;
  return {
    objects: whole?.objects ?? 0,
    bytes: whole?.bytes ?? 0,
    groups: by.map((each, at) => {
      const found = rows.filter(({ kind }) => kind === at).map(({ name, objects, bytes }) => ({ name, objects, bytes }));
      const order = orderedNames(each);
      return order === undefined ? found : order.flatMap((name) => found.find((group) => group.name === name) ?? []);
    }),
  };
}
