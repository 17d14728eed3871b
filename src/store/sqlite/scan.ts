/** Pages of documents in the order of their keys (collation BINARY, which is that of UTF-8 bytes): what a reconcile compares, and what the calendar asks for. And the latest changes of a bucket. */
import { setImmediate as letOthersRun } from 'node:timers/promises';
import type { SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import { isoOf, type ObjectDocument } from '../../ordering/document.ts';
import type { ObjectMaintenance, ObjectScan, ScannedDocument, ObjectIndex } from '../store.ts';
import type { SqliteReads } from './connection.ts';
import { documentOfRow, scannedOfRow, DOCUMENT_BY_KEY } from './schema.ts';
import { unlessEnded } from './conditions.ts';
import { boundsOf, fromKey, keyConditions, sqlOf, untilKey, valuesOf, chunksOf } from './ranges.ts';
import { compareKeys } from '../../base/key-order.ts';

/** Rows that are read at a time: some 5 ms. */
const CHUNK = 1_000;

type Range = Parameters<ObjectScan['scan']>[1];

/** The live documents of a range. */
export async function scanObjects(
  reads: SqliteReads,
  bucket: string,
  { prefix, after, upTo, limit }: Range,
): Promise<readonly ScannedDocument[]> {
  const documents: ScannedDocument[] = [];
  const bounds = untilKey(boundsOf({ prefix }), upTo, '<=');
  for (let from = after; ;) {
    const wanted = Math.min(CHUNK, limit - documents.length);
    const conditions = [{ sql: 'bucket = ?', values: [bucket] }, ...keyConditions({}, fromKey(bounds, from, '>'))];
    const sql = `SELECT document FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)} ORDER BY key LIMIT ?`;
    const rows = reads.use(({ statement }) => statement(sql).all(...valuesOf(conditions), wanted));
    documents.push(...rows.map(scannedOfRow));
    if (rows.length < wanted || documents.length === limit) return documents;
    from = documents.at(-1)?.key ?? from;
    await letOthersRun();
  }
}

// INDEXED BY fixes the plan, because the planner has no statistics. The condition of the index must be repeated exactly.
const UNSETTLED = 'objects INDEXED BY objects_unsettled WHERE settled = 0 AND clock < ?';
const EXPIRING = 'objects INDEXED BY objects_expiring WHERE deleted = 0 AND expires_at IS NOT NULL AND expires_at < ?';
const TOMBSTONES = 'objects INDEXED BY objects_tombstones WHERE deleted = 1 AND deleted_at < ?';

export async function unsettledDocuments(
  reads: SqliteReads,
  bucket: string,
  { clockBelow, ...page }: Parameters<ObjectMaintenance['unsettled']>[1],
): Promise<readonly ObjectDocument[]> {
  return rowsOf(reads, `SELECT document FROM ${UNSETTLED}`, { bucket, value: clockBelow, ...page }).map(documentOfRow);
}

const bucketSchema = z.object({ bucket: z.string() });

export async function unsettledBuckets(reads: SqliteReads, clockBelow: number): Promise<ReadonlySet<string>> {
  const sql = `SELECT DISTINCT bucket FROM ${UNSETTLED} AND ${unlessEnded('id')}`;
  return new Set(reads.use(({ statement }) => statement(sql).all(clockBelow)).map((row) => bucketSchema.parse(row).bucket));
}

export async function expiringDocuments(
  reads: SqliteReads,
  bucket: string,
  { beforeMs, ...page }: Parameters<ObjectMaintenance['expiring']>[1],
): Promise<readonly ObjectDocument[]> {
  return rowsOf(reads, `SELECT document FROM ${EXPIRING}`, { bucket, value: isoOf(beforeMs), ...page }).map(documentOfRow);
}

const tombstoneSchema = z.object({ key: z.string(), clock: z.number() });

/** The tombstones that are old enough to be purged. */
export async function oldTombstones(
  reads: SqliteReads,
  bucket: string,
  { deletedBeforeMs, limit }: Parameters<ObjectMaintenance['purge']>[1],
): Promise<readonly z.infer<typeof tombstoneSchema>[]> {
  const page = { bucket, value: isoOf(deletedBeforeMs), after: '', limit };
  return rowsOf(reads, `SELECT key, clock FROM ${TOMBSTONES}`, page).map((row) => tombstoneSchema.parse(row));
}

interface Page {
  readonly bucket: string;
  /** With which the rows are compared. */
  readonly value: SQLInputValue;
  readonly after: string;
  readonly limit: number;
}

function rowsOf(reads: SqliteReads, select: string, { bucket, value, after, limit }: Page): readonly unknown[] {
  // a bucket that is not created has no documents, even if an interrupted removal left some
  const created = 'bucket = (SELECT name FROM buckets WHERE name = ?)';
  const sql = `${select} AND ${created} AND key > ? AND ${unlessEnded('id')} ORDER BY key LIMIT ?`;
  return reads.use(({ statement }) => statement(sql).all(value, bucket, after, limit));
}

// ── the latest changes of a bucket ───────────────────────────────────────────────────────────────────────────────────

/** Live documents, then tombstones. */
const SOURCES = ['objects INDEXED BY objects_facts WHERE deleted = 0', 'objects INDEXED BY objects_tombstones WHERE deleted = 1'] as const;

const changeSchema = z.object({ key: z.string(), at: z.number() });
type Change = z.infer<typeof changeSchema>;

/** The newest documents and tombstones below the prefix, in short synchronous calls. */
export async function latestChanges(
  connection: SqliteReads,
  bucket: string,
  { prefix, within, sinceMs, limit }: Parameters<ObjectIndex['changes']>[1],
): Promise<readonly ObjectDocument[]> {
  let latest: readonly Change[] = [];
  for (const from of SOURCES) {
    const source = { filter: { prefix, ...(within && { within }) }, descending: false, from };
    for await (const { conditions } of chunksOf(connection, { bucket, source, after: undefined })) {
      const sql = `SELECT key, built AS at FROM ${from} AND ${sqlOf(conditions)} AND built > ?
        AND bucket IN (SELECT name FROM buckets) ORDER BY at DESC, key LIMIT ?`;
      const found = connection.use(({ statement }) => statement(sql).all(...valuesOf(conditions), sinceMs, limit));
      if (found.length > 0) latest = newest([...latest, ...found.map((row) => changeSchema.parse(row))], limit);
    }
  }
  return connection.use(({ statement }) => {
    const byKey = statement(DOCUMENT_BY_KEY);
    return latest.flatMap(({ key }) => {
      const row = byKey.get(bucket, key);
      return row === undefined ? [] : [documentOfRow(row)];
    });
  });
}

function newest(changes: readonly Change[], limit: number): readonly Change[] {
  return changes.toSorted((a, b) => b.at - a.at || compareKeys(a.key, b.key)).slice(0, limit);
}
