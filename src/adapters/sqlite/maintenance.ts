import type { SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import type { AgedPage, ObjectMaintenance } from '../../pipeline/ports/object-index.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { documentOfRow } from './document.ts';
import { firstAfterPrefix } from '../../domain/documents/key-order.ts';

// A bucket that is not created has no documents to maintain, even if an interrupted removal left some. INDEXED BY fixes the
// plan, because the planner has no statistics. The statement must repeat the condition of the index exactly.
const CREATED = 'bucket IN (SELECT name FROM buckets WHERE name = ?)';
const UNSETTLED = `
  SELECT document FROM objects INDEXED BY objects_unsettled
  WHERE json_extract(document, '$.settled') = 0 AND ${CREATED} AND key > ? AND clock < ? ORDER BY key LIMIT ?`;
const EXPIRING = `
  SELECT document FROM objects INDEXED BY objects_expiring
  WHERE deleted = 0 AND json_extract(document, '$.expires_at') IS NOT NULL AND ${CREATED} AND key > ?
    AND json_extract(document, '$.expires_at') < ? ORDER BY key LIMIT ?`;
const TOMBSTONES = `
  SELECT key, clock FROM objects INDEXED BY objects_tombstones
  WHERE deleted = 1 AND ${CREATED} AND key > ? AND json_extract(document, '$.deleted_at') < ? ORDER BY key LIMIT ?`;
const PURGE = 'DELETE FROM objects WHERE bucket = ? AND key = ? AND clock = ? AND deleted = 1';

const tombstoneSchema = z.object({ key: z.string(), clock: z.number() });
const readSchema = z.object({ key: z.string(), document: z.string().nullable() });

/** The maintenance of documents by the calendar, in SQLite. A purge is one transaction of at most about 50 ms. */
export function createSqliteMaintenance(connection: SqliteConnection): ObjectMaintenance {
  function documents(sql: string, values: readonly SQLInputValue[], signal: AbortSignal | undefined): readonly ObjectDocument[] {
    return connection.use(
      ({ statement }) =>
        statement(sql)
          .all(...values)
          .map(documentOfRow),
      signal,
    );
  }

  return {
    async unsettled(bucket, { clockBelow, after, limit }, signal) {
      return documents(UNSETTLED, [bucket, after, clockBelow, limit], signal);
    },
    async expiring(bucket, { beforeMs, after, limit }, signal) {
      return documents(EXPIRING, [bucket, after, isoOf(beforeMs), limit], signal);
    },
    async aged(bucket, page, signal) {
      return connection.use((session) => agedDocuments(session, bucket, page), signal);
    },
    async tombstones(bucket, { deletedBeforeMs, after, limit }, signal) {
      const rows = connection.use(({ statement }) => statement(TOMBSTONES).all(bucket, after, isoOf(deletedBeforeMs), limit), signal);
      return rows.map((row) => tombstoneSchema.parse(row));
    },
    async purge(bucket, tombstones, signal) {
      return connection.use(
        ({ statement, transaction }) =>
          // a tombstone has no words that would have to be deleted too
          transaction(() => tombstones.reduce((sum, { key, clock }) => sum + Number(statement(PURGE).run(bucket, key, clock).changes), 0)),
        signal,
      );
    },
  };
}

/** Reads the next `limit` live documents and returns the old ones. An index on their age would cost every write more than a daily read costs. */
function agedDocuments({ statement }: SqliteSession, bucket: string, { prefix, after, limit, ...age }: AgedPage) {
  const end = firstAfterPrefix(prefix);
  const range = [`deleted = 0 AND ${CREATED} AND key > ? AND key >= ?`, ...(end === undefined ? [] : ['key < ?'])].join(' AND ');
  // a comparison with an unknown value is null, and counts as true: the document may be old enough and of a fitting size
  const rows = statement(
    `SELECT key, CASE WHEN ifnull(json_extract(document, '$.last_modified') <= ?, 1)
       AND ifnull(json_extract(document, '$.size') > ?, 1) AND ifnull(json_extract(document, '$.size') < ?, 1)
       THEN document END AS document
     FROM (SELECT key, document FROM objects INDEXED BY objects_live WHERE ${range} ORDER BY key LIMIT ?)`,
  ).all(
    isoOf(age.modifiedUntilMs),
    age.sizeAbove ?? -1,
    age.sizeBelow ?? Number.MAX_SAFE_INTEGER,
    bucket,
    after,
    prefix,
    ...(end === undefined ? [] : [end]),
    limit,
  );
  const read = rows.map((row) => readSchema.parse(row));
  const last = read.length < limit ? undefined : read.at(-1)?.key;
  const documents = rows.filter((_, at) => read[at]?.document !== null).map(documentOfRow);
  return { documents, ...(last !== undefined && { next: last }) };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
