/** The latest changes of a bucket, read from an index that has them in their order. */
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import { firstAfterPrefix } from '../../domain/documents/key-order.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import type { SqliteConnection } from './connection.ts';
import { documentOfRow } from './document.ts';

/** The rows of the index that one synchronous call reads: some 3 ms. */
const CHUNK_ROWS = 5_000;
/** After 50,000 changes, what is below the prefix is old news: the search by prefix has it. */
const CHUNKS_MAX = 10;

const INDEXED_AT = `json_extract(document, '$.indexed_at')`;
const FROM = `FROM objects INDEXED BY objects_changes WHERE bucket = ? AND ${INDEXED_AT} > ? AND ${INDEXED_AT} <= ?
  AND bucket IN (SELECT name FROM buckets)`;
const LAST = `SELECT ${INDEXED_AT} AS at ${FROM} ORDER BY ${INDEXED_AT} DESC LIMIT 1 OFFSET ${CHUNK_ROWS - 1}`;
const CHANGES = `SELECT document ${FROM} AND key >= ? AND (? IS NULL OR key < ?) ORDER BY ${INDEXED_AT} DESC, key LIMIT ?`;

/** Every time sorts before it. */
const AFTER_ALL_TIMES = '~';

const atSchema = z.object({ at: z.string() });

interface Changes {
  readonly bucket: string;
  readonly prefix: string;
  readonly sinceMs: number;
  readonly limit: number;
}

export async function latestChanges(
  connection: SqliteConnection,
  { bucket, prefix, sinceMs, limit }: Changes,
  signal: AbortSignal | undefined,
): Promise<readonly ObjectDocument[]> {
  const since = new Date(sinceMs).toISOString();
  const end = firstAfterPrefix(prefix) ?? null;
  const found: ObjectDocument[] = [];
  let before: string | undefined = AFTER_ALL_TIMES;
  for (let chunk = 0; chunk < CHUNKS_MAX && before !== undefined && found.length < limit; chunk += 1) {
    await letOthersRun();
    const upTo: string = before;
    before = connection.use(({ statement }) => {
      const row = statement(LAST).get(bucket, since, upTo);
      const last = row === undefined ? undefined : atSchema.parse(row).at;
      // all changes of one moment are in one chunk
      const from = last === undefined ? since : justBefore(last);
      const rows = statement(CHANGES).all(bucket, from, upTo, prefix, end, end, limit - found.length);
      found.push(...rows.map(documentOfRow));
      return last === undefined ? undefined : justBefore(last);
    }, signal);
  }
  return found;
}

/** The time one millisecond earlier. */
function justBefore(time: string): string {
  return new Date(Date.parse(time) - 1).toISOString();
}
