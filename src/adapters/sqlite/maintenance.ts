import { setImmediate } from 'node:timers/promises';
import type { SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import type { AgedPage, ObjectMaintenance } from '../../pipeline/ports/object-index.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { documentOfRow } from './document.ts';
import { boundsOf, fromKey, keyConditions, sqlOf, valuesOf } from './ranges.ts';

/**
 * The rows of an index that one synchronous call reads, in about 3 ms: a bucket may have a million objects that expire next
 * year, and finding none that has expired would block the process for two seconds. Between two calls the event loop runs.
 */
const ROWS_MAX = 2_000;

// A bucket that is not created has no documents to maintain, even if an interrupted removal left some.
const CREATED = 'SELECT 1 FROM buckets WHERE name = ?';
// INDEXED BY fixes the plan, because the planner has no statistics. The statement must repeat the condition of the index exactly.

/** What is read from one index: its rows of one bucket in key order, and which of them are wanted. */
interface Query {
  readonly columns: string;
  readonly index: string;
  /** The index's own condition. */
  readonly condition: string;
  /** Which rows are wanted: a comparison with one value, read from the index alone. */
  readonly wanted: string;
}

const UNSETTLED: Query = {
  columns: 'document',
  index: 'objects_unsettled',
  condition: 'settled = 0',
  wanted: 'clock < ?',
};
const EXPIRING: Query = {
  columns: 'document',
  index: 'objects_expiring',
  condition: 'deleted = 0 AND expires_at IS NOT NULL',
  wanted: 'expires_at < ?',
};
const TOMBSTONES: Query = {
  columns: 'key, clock',
  index: 'objects_tombstones',
  condition: 'deleted = 1',
  wanted: 'deleted_at < ?',
};
// others write between the calls that find tombstones and the one that deletes them
const PURGE = 'DELETE FROM objects WHERE bucket = ? AND key = ? AND clock = ? AND deleted = 1';

const keySchema = z.object({ key: z.string() });
const tombstoneSchema = z.object({ key: z.string(), clock: z.number() });
const readSchema = z.object({ key: z.string(), document: z.string().nullable() });

type Row = Record<string, unknown>;

/** The maintenance of documents by the calendar, in SQLite.  No other call blocks the process for longer than a few ms, except a purge: one transaction of at most about 50 ms. */
export function createSqliteMaintenance(connection: SqliteConnection): ObjectMaintenance {
  /** Reads the wanted rows after a key, at most ROWS_MAX rows of the index at a time. */
  async function wantedRows(
    query: Query,
    {
      bucket,
      after,
      value,
      limit,
    }: { readonly bucket: string; readonly after: string; readonly value: SQLInputValue; readonly limit: number },
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    const rows: Row[] = [];
    for (let from: string | undefined = after; from !== undefined && rows.length < limit;) {
      await setImmediate();
      const range: WantedRange = { bucket, after: from, value, limit: limit - rows.length };
      const found = connection.use((session) => wantedInRange(session, query, range), signal);
      rows.push(...found.rows);
      from = found.next;
    }
    return rows;
  }

  return {
    async unsettled(bucket, { clockBelow, after, limit }, signal) {
      return (await wantedRows(UNSETTLED, { bucket, after, value: clockBelow, limit }, signal)).map(documentOfRow);
    },
    // to ask a bucket costs no request here
    unsettledBuckets: () => Promise.resolve(undefined),
    async expiring(bucket, { beforeMs, after, limit }, signal) {
      return (await wantedRows(EXPIRING, { bucket, after, value: isoOf(beforeMs), limit }, signal)).map(documentOfRow);
    },
    async aged(bucket, page, signal) {
      // one call reads as many documents as the page is long
      await setImmediate();
      return connection.use((session) => agedDocuments(session, bucket, page), signal);
    },
    async purge(bucket, { deletedBeforeMs, after, limit }, signal) {
      const rows = await wantedRows(TOMBSTONES, { bucket, after, value: isoOf(deletedBeforeMs), limit }, signal);
      const tombstones = rows.map((row) => tombstoneSchema.parse(row));
      const last = tombstones.length < limit ? undefined : tombstones.at(-1)?.key;
      const purged = connection.use(
        ({ statement, transaction }) =>
          // a tombstone has no words that would have to be deleted too
          transaction(() => tombstones.reduce((sum, { key, clock }) => sum + Number(statement(PURGE).run(bucket, key, clock).changes), 0)),
        signal,
      );
      return { purged, ...(last !== undefined && { next: last }) };
    },
  };
}

interface WantedRange {
  readonly bucket: string;
  readonly after: string;
  readonly value: SQLInputValue;
  readonly limit: number;
}

/** The wanted ones of the next ROWS_MAX rows. `next`: where the rows after them begin; undefined if there are none. */
function wantedInRange(
  { statement }: SqliteSession,
  { columns, index, condition, wanted }: Query,
  { bucket, after, value, limit }: WantedRange,
): { readonly rows: readonly Row[]; readonly next: string | undefined } {
  if (statement(CREATED).get(bucket) === undefined) return { rows: [], next: undefined };
  const from = `FROM objects INDEXED BY ${index} WHERE ${condition} AND bucket = ? AND key > ?`;
  const end = statement(`SELECT key ${from} ORDER BY key LIMIT 1 OFFSET ${ROWS_MAX - 1}`).get(bucket, after);
  const next = end === undefined ? undefined : keySchema.parse(end).key;
  const rows = statement(`SELECT ${columns} ${from}${next === undefined ? '' : ' AND key <= ?'} AND ${wanted} ORDER BY key LIMIT ?`).all(
    bucket,
    after,
    ...(next === undefined ? [] : [next]),
    value,
    limit,
  );
  return { rows, next };
}

/** Reads the next `limit` live documents and returns the old ones. An index on their age would cost every write more than a daily read costs. */
function agedDocuments({ statement }: SqliteSession, bucket: string, { prefix, after, limit, ...age }: AgedPage) {
  if (statement(CREATED).get(bucket) === undefined) return { documents: [] };
  const range = [{ sql: 'bucket = ?', values: [bucket] }, ...keyConditions({}, fromKey(boundsOf({ prefix }), after, '>'))];
  // a comparison with an unknown value is null, and counts as true: the document may be old enough and of a fitting size
  const rows = statement(
    `SELECT key, CASE WHEN ifnull(json_extract(document, '$.last_modified') <= ?, 1)
       AND ifnull(json_extract(document, '$.size') > ?, 1) AND ifnull(json_extract(document, '$.size') < ?, 1)
       THEN document END AS document
     FROM (SELECT key, document FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(range)} ORDER BY key LIMIT ?)`,
  ).all(isoOf(age.modifiedUntilMs), age.sizeAbove ?? -1, age.sizeBelow ?? Number.MAX_SAFE_INTEGER, ...valuesOf(range), limit);
  const read = rows.map((row) => readSchema.parse(row));
  const last = read.length < limit ? undefined : read.at(-1)?.key;
  const documents = rows.filter((_, at) => read[at]?.document !== null).map(documentOfRow);
  return { documents, ...(last !== undefined && { next: last }) };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
