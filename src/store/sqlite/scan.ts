/** Pages of documents in key order (collation BINARY, that is UTF-8 bytes), for reconciles and for the calendar. */
import type { SQLInputValue } from 'node:sqlite';
import { z } from 'zod';
import { isoOf, type ObjectDocument } from '../../ordering/document.ts';
import type { ObjectMaintenance, ObjectScan, ScannedDocument } from '../store.ts';
import type { SqliteReads } from './connection.ts';
import { positionOf, SHARD } from './changes.ts';
import { documentOfRow, scannedOfRow } from './schema.ts';
import { unlessEnded, boundsOf, fromKey, rangeConditions, sqlOf, untilKey, valuesOf } from './conditions.ts';

type Range = Parameters<ObjectScan['scan']>[1];

/** The live documents of a range. */
export async function scanObjects(
  reads: SqliteReads,
  bucket: string,
  { prefix, after, upTo, limit }: Range,
): Promise<readonly ScannedDocument[]> {
  const bounds = fromKey(untilKey(boundsOf({ prefix }), upTo, '<='), after, '>');
  const conditions = rangeConditions({ bucket, bounds });
  const sql = `SELECT document FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)} ORDER BY key LIMIT ?`;
  return reads.use(({ statement }) => statement(sql).all(...valuesOf(conditions), limit)).map(scannedOfRow);
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
  { deletedBeforeMs, upTo, limit }: Parameters<ObjectMaintenance['purge']>[1],
): Promise<readonly z.infer<typeof tombstoneSchema>[]> {
  const now = reads.use((session) => positionOf(session, bucket))[SHARD];
  const mark = upTo[SHARD];
  // in a bucket's recreated index
  if (mark === undefined || mark.history !== now?.history) return [];
  const page = { bucket, value: isoOf(deletedBeforeMs), after: '', limit };
  return rowsOf(reads, `SELECT key, clock FROM ${TOMBSTONES} AND ifnull(seq, 0) <= ${mark.at}`, page).map((row) =>
    tombstoneSchema.parse(row),
  );
}

interface Page {
  readonly bucket: string;
  /** The values with which the rows are compared. */
  readonly value: SQLInputValue;
  readonly after: string;
  readonly limit: number;
}

function rowsOf(reads: SqliteReads, select: string, { bucket, value, after, limit }: Page): readonly unknown[] {
  // a bucket that doesn't exist has no documents, even if an interrupted removal left some
  const created = 'bucket = (SELECT name FROM buckets WHERE name = ?)';
  const sql = `${select} AND ${created} AND key > ? AND ${unlessEnded('id')} ORDER BY key LIMIT ?`;
  return reads.use(({ statement }) => statement(sql).all(value, bucket, after, limit));
}
