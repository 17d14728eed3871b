/** Facets in SQLite: one pass over the index of facts, or over the documents with the words, in short synchronous calls. */
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import {
  facetNames,
  groupsInOrder,
  largestGroups,
  objectAges,
  objectSizes,
  type FacetName,
  type FacetSum,
} from '../../domain/search/facets.ts';
import type { FacetSums, FacetsQuery } from '../../pipeline/ports/object-usage.ts';
import { matchOf, withinSql, type SqlCondition } from './conditions.ts';
import type { SqliteConnection } from './connection.ts';
import { unlessEnded } from './functions.ts';
import { addTo, noCounts, type FacetCounts } from './facets-function.ts';
import { boundsOf, bucketsOf, chunksOf, keyConditions, otherConditions, sqlOf, valuesOf } from './ranges.ts';

/** Documents with the words that one call reads, each a row of its table. */
const WORDS_ROWS = 1_000;

const groupsSchema = z.array(z.tuple([z.string(), z.number(), z.number()]));
const sumsSchema = z.object({ sums: z.string() });
const chunkSchema = z
  .object({ bucket: groupsSchema, extension: groupsSchema, class: groupsSchema, size: groupsSchema, age: groupsSchema })
  .strict() satisfies z.ZodType<Record<FacetName, z.infer<typeof groupsSchema>>>;
const rowsSchema = z.object({ found: z.string() });
const rowidsSchema = z.array(z.number());

/** The sums of a search in groups; `too-slow` after its time limit. */
export async function facetsInSqlite(
  connection: SqliteConnection,
  query: FacetsQuery,
  signal: AbortSignal | undefined,
): Promise<FacetSums | 'too-slow'> {
  const untilMs = performance.now() + query.timeLimitMs;
  const counts = noCounts();
  const statements = query.words === undefined ? rangeStatements(connection, query, signal) : wordsStatements(connection, query, signal);
  for await (const { sql, values } of statements) {
    const { sums } = connection.use(({ statement }) => sumsSchema.parse(statement(sql).get(...values)), signal);
    const chunk = chunkSchema.parse(JSON.parse(sums));
    for (const facet of facetNames) for (const [name, objects, bytes] of chunk[facet]) addTo(counts[facet], name, objects, bytes);
    if (performance.now() > untilMs) return 'too-slow';
  }
  return facetsOf(counts, query);
}

const SUMS = 'SELECT tally_facets(?, bucket, extension, class, size, modified) AS sums';

/** A statement for each range of the index of facts. */
async function* rangeStatements(
  connection: SqliteConnection,
  query: FacetsQuery,
  signal: AbortSignal | undefined,
): AsyncGenerator<SqlCondition> {
  for (const bucket of bucketsOf(connection, query, { descending: false, signal })) {
    const source = { filter: query, descending: false };
    for await (const range of chunksOf(connection, { bucket, source, after: undefined }, signal)) {
      const conditions = [...range.conditions, ...otherConditions(query)];
      yield {
        sql: `${SUMS} FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)}`,
        values: [query.nowMs, ...valuesOf(conditions)],
      };
    }
  }
}

/** A statement for each thousand of the documents that have the words. */
async function* wordsStatements(
  connection: SqliteConnection,
  query: FacetsQuery,
  signal: AbortSignal | undefined,
): AsyncGenerator<SqlCondition> {
  const match = matchOf(query.words ?? []);
  const conditions = [
    query.bucket === undefined
      ? { sql: 'bucket IN (SELECT name FROM buckets)', values: [] }
      : { sql: 'bucket IN (SELECT name FROM buckets WHERE name = ?)', values: [query.bucket] },
    ...keyConditions(query, boundsOf(query)),
    ...(query.within === undefined ? [] : [withinSql(query.within)]),
    ...otherConditions(query),
  ];
  // once, because each reading of the words costs as much as the lookup of thousands of rows
  const found = connection.use(
    ({ statement }) =>
      rowsSchema.parse(
        statement(`SELECT json_group_array(rowid) AS found FROM object_words WHERE object_words MATCH ? AND ${unlessEnded('rowid')}`).get(
          match,
        ),
      ).found,
    signal,
  );
  const rows = rowidsSchema.parse(JSON.parse(found));
  // an empty search sums nothing as well
  for (let from = 0; from < Math.max(1, rows.length); from += WORDS_ROWS) {
    await letOthersRun();
    yield {
      sql: `${SUMS} FROM (SELECT value AS found FROM json_each(?)) CROSS JOIN objects ON objects.id = found WHERE deleted = 0 AND ${sqlOf(conditions)}`,
      values: [query.nowMs, JSON.stringify(rows.slice(from, from + WORDS_ROWS)), ...valuesOf(conditions)],
    };
  }
}

function facetsOf(counts: FacetCounts, { groupsMax }: FacetsQuery): FacetSums {
  const largest = (facet: FacetName): readonly FacetSum[] => largestGroups([...counts[facet].values()], groupsMax);
  const all = [...counts.bucket.values()];
  return {
    objects: all.reduce((sum, { objects }) => sum + objects, 0),
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    facets: {
      bucket: largest('bucket'),
      extension: largest('extension'),
      class: largest('class'),
      size: groupsInOrder(objectSizes, [...counts.size.values()]),
      age: groupsInOrder(objectAges, [...counts.age.values()]),
    },
  };
}
