/**
 * What was written to a bucket's index, in the order of the writes. Each transaction takes its numbers while it holds the write lock, so
 * the order of the numbers is that of the commits: a reader that sees one number sees every lower one.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import type { ObjectDocument } from '../../ordering/document.ts';
import type { Position } from '../../records/position.ts';
import { overlapping } from '../readable.rules.ts';
import type { Changes, ChangesPage, ObjectIndex } from '../store.ts';
import { withinSql, type SqlCondition } from './conditions.ts';
import type { SqliteReads, SqliteSession } from './connection.ts';
import { documentOfRow } from './schema.ts';

/** The file is one shard. */
export const SHARD = '0';
/** How many starts are remembered: a month's, if a process starts every five minutes. */
const STARTS_MAX = 10_000;
/** How many index rows one statement reads: some 5 ms. */
const CHUNK_ROWS = 20_000;

const startSchema = z.object({ name: z.string(), last: z.number() });
const bucketSchema = z.object({ id: z.string() });
const seqSchema = z.object({ seq: z.number() });
const lastSchema = z.object({ last: z.number() });

/** Numbers this process's writes. */
export function createNumbering(): (session: SqliteSession) => { next(): number; store(): void } {
  let id: number | bigint = 0;

  /** Begins within a transaction. Its numbers count only if `store` is called before the commit. */
  return function begin({ statement }) {
    let row = statement('SELECT last FROM starts WHERE id = ?').get(id);
    // the first transaction, or the first one was rolled back
    if (row === undefined) {
      const insert = 'INSERT INTO starts (name, last) SELECT ?, (SELECT ifnull(max(last), 0) FROM starts)';
      id = statement(insert).run(randomUUID()).lastInsertRowid;
      statement('DELETE FROM starts WHERE id <= ?').run(Number(id) - STARTS_MAX);
      row = statement('SELECT last FROM starts WHERE id = ?').get(id);
    }
    let { last } = lastSchema.parse(row);
    return {
      next: () => (last += 1),
      store: () => void statement('UPDATE starts SET last = ? WHERE id = ?').run(last, id),
    };
  };
}

/** The position after every committed write; empty if the bucket was not created. */
export function positionOf({ statement }: SqliteSession, bucket: string): Position {
  const created = statement('SELECT id FROM buckets WHERE name = ?').get(bucket);
  if (created === undefined) return {};
  const row = statement('SELECT name, last FROM starts ORDER BY id DESC LIMIT 1').get();
  const { name, last } = row === undefined ? { name: '', last: 0 } : startSchema.parse(row);
  return { [SHARD]: { history: bucketSchema.parse(created).id, at: last, start: name } };
}

/** Whether the file still has everything that it had at the position. A copy that was put back lacks the start, or its last writes. */
function isKept({ statement }: SqliteSession, { at, start }: Position[string]): boolean {
  if (start === '' || start === undefined) return at <= 0;
  const row = statement('SELECT last FROM starts WHERE name = ?').get(start);
  return row !== undefined && at <= lastSchema.parse(row).last;
}

/** See {@link ObjectIndex.changes}. */
export async function changesOf(
  reads: SqliteReads,
  bucket: string,
  { after, limit, ...filter }: Parameters<ObjectIndex['changes']>[1],
): Promise<Changes | 'lost'> {
  return reads.use((session): Changes | 'lost' => {
    // first, so that whatever is read afterwards contains every write up to here
    const end = positionOf(session, bucket)[SHARD];
    if (end === undefined) return Object.keys(after).length === 0 ? { documents: [], position: {}, more: false } : 'lost';
    const from = after[SHARD] ?? { ...end, at: 0, start: '' };
    if (from.history !== end.history || !isKept(session, from)) return 'lost';
    const part = `objects INDEXED BY objects_written WHERE seq IS NOT NULL AND bucket = ? AND seq > ? AND seq <= ?`;
    const { statement } = session;
    // a narrow prefix must not read the whole index in one statement
    const far = statement(`SELECT seq FROM ${part} ORDER BY seq LIMIT 1 OFFSET ?`).get(bucket, from.at, end.at, CHUNK_ROWS - 1);
    const upTo = far === undefined ? end.at : seqSchema.parse(far).seq;
    const { sql, values } = conditionOf(bucket, filter);
    const rows = statement(`SELECT seq, document FROM ${part} AND ${sql} ORDER BY seq LIMIT ?`).all(
      bucket,
      from.at,
      upTo,
      ...values,
      limit,
    );
    const at = rows.length < limit ? upTo : seqSchema.parse(rows.at(-1)).seq;
    return { documents: rows.map(documentOfRow), position: { [SHARD]: { ...end, at } }, more: at < end.at };
  });
}

/** See {@link ObjectIndex.latest}. */
export async function latestOf(reads: SqliteReads, bucket: string, { limit, ...filter }: ChangesPage): Promise<readonly ObjectDocument[]> {
  const { sql, values } = conditionOf(bucket, filter);
  const part = `objects INDEXED BY objects_written WHERE seq IS NOT NULL AND bucket = (SELECT name FROM buckets WHERE name = ?) AND seq < ?`;
  const documents: ObjectDocument[] = [];
  for (let before = Number.MAX_SAFE_INTEGER; ;) {
    const page = reads.use(({ statement }) => {
      const far = statement(`SELECT seq FROM ${part} ORDER BY seq DESC LIMIT 1 OFFSET ?`).get(bucket, before, CHUNK_ROWS - 1);
      const from = far === undefined ? 0 : seqSchema.parse(far).seq;
      const select = `SELECT document FROM ${part} AND seq >= ? AND ${sql} ORDER BY seq DESC LIMIT ?`;
      return { from, rows: statement(select).all(bucket, before, from, ...values, limit - documents.length) };
    });
    documents.push(...page.rows.map(documentOfRow));
    if (page.from === 0 || documents.length === limit) return documents;
    before = page.from;
    await letOthersRun();
  }
}

function conditionOf(bucket: string, { prefix, within }: Omit<ChangesPage, 'limit'>): SqlCondition {
  return withinSql(within === undefined ? [{ bucket, prefix }] : overlapping(within, { bucket, prefix }));
}
