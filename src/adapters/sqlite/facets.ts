/** Facets in SQLite: like other sums they read the index of facts in short synchronous calls, each bucket once. */
import { z } from 'zod';
import { groupsInOrder, largestGroups, objectAges, objectSizes, type FacetName, type FacetSum } from '../../domain/search/facets.ts';
import type { FacetSums, FacetsQuery } from '../../pipeline/ports/object-usage.ts';
import { ageSql, wordConditions, type SqlCondition } from './conditions.ts';
import type { SqliteConnection } from './connection.ts';
import { bucketsOf, chunksOf, otherConditions, sqlOf, valuesOf } from './filtered.ts';

const groupSchema = z.object({
  extension: z.string(),
  class: z.string(),
  size: z.string(),
  age: z.string(),
  objects: z.number(),
  bytes: z.number(),
});
type Group = z.infer<typeof groupSchema>;

type Sums = Readonly<Record<FacetName, Map<string, FacetSum>>>;

/** The sums of a search in groups; `too-slow` after its time limit. */
export async function facetsInSqlite(
  connection: SqliteConnection,
  query: FacetsQuery,
  signal: AbortSignal | undefined,
): Promise<FacetSums | 'too-slow'> {
  const untilMs = performance.now() + query.timeLimitMs;
  const sums: Sums = { bucket: new Map(), extension: new Map(), class: new Map(), size: new Map(), age: new Map() };
  for (const bucket of bucketsOf(connection, query, { descending: false, signal })) {
    const source = { filter: query, descending: false };
    for await (const { conditions } of chunksOf(connection, { bucket, source, after: undefined }, signal)) {
      addGroups(sums, bucket, groupsOf(connection, query, conditions, signal));
      if (performance.now() > untilMs) return 'too-slow';
    }
  }
  return facetsOf(sums, query);
}

/** The rows of a range by everything that facets are of: few groups, so that one pass over the index is enough. */
function groupsOf(
  connection: SqliteConnection,
  query: FacetsQuery,
  range: readonly SqlCondition[],
  signal: AbortSignal | undefined,
): readonly Group[] {
  const conditions = [...range, ...wordConditions(query), ...otherConditions(query)];
  const [size, age] = [sizeSql(), ageSql(query.nowMs)];
  // total(), because a sum beyond 2^53 is no number that a program reads from SQLite
  const sql = `SELECT ifnull(extension, '') AS extension, ifnull(class, '') AS class, ${size.sql} AS size, ${age.sql} AS age,
      count(*) AS objects, total(bytes) AS bytes FROM (
        SELECT extension, class, size AS bytes, modified
        FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)} LIMIT -1
      ) GROUP BY 1, 2, 3, 4`;
  return connection.use(
    ({ statement }) =>
      statement(sql)
        .all(...size.values, ...age.values, ...valuesOf(conditions))
        .map((row) => groupSchema.parse(row)),
    signal,
  );
}

function sizeSql(): SqlCondition {
  const limits = objectSizes.filter(({ bytes }) => Number.isFinite(bytes));
  const cases = limits.map(() => 'WHEN bytes < ? THEN ?').join(' ');
  return {
    sql: `CASE WHEN bytes IS NULL THEN '' ${cases} ELSE 'larger' END`,
    values: limits.flatMap(({ name, bytes }) => [bytes, name]),
  };
}

function addGroups(sums: Sums, bucket: string, groups: readonly Group[]): void {
  for (const { extension, class: storageClass, size, age, ...counted } of groups) {
    addTo(sums.bucket, bucket, counted);
    addTo(sums.extension, extension, counted);
    addTo(sums.class, storageClass, counted);
    addTo(sums.size, size, counted);
    addTo(sums.age, age, counted);
  }
}

function addTo(sums: Map<string, FacetSum>, name: string, { objects, bytes }: Pick<FacetSum, 'objects' | 'bytes'>): void {
  const known = sums.get(name);
  sums.set(name, { name, objects: (known?.objects ?? 0) + objects, bytes: (known?.bytes ?? 0) + bytes });
}

function facetsOf(sums: Sums, { groupsMax }: FacetsQuery): FacetSums {
  const largest = (facet: FacetName): readonly FacetSum[] => largestGroups([...sums[facet].values()], groupsMax);
  const all = [...sums.bucket.values()];
  return {
    objects: all.reduce((sum, { objects }) => sum + objects, 0),
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    facets: {
      bucket: largest('bucket'),
      extension: largest('extension'),
      class: largest('class'),
      size: groupsInOrder(objectSizes, [...sums.size.values()]),
      age: groupsInOrder(objectAges, [...sums.age.values()]),
    },
  };
}
