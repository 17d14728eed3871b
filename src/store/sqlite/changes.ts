/** The latest changes of a bucket. All of its facts are read for it: an index in the order of changes would cost every write more. */
import { z } from 'zod';
import { compareKeys } from '../../base/key-order.ts';
import type { ObjectDocument } from '../../ordering/document.ts';
import type { ObjectIndex } from '../object-index.ts';
import type { SqliteReads } from './connection.ts';
import { DOCUMENT_BY_KEY, documentOfRow } from './document.ts';
import { chunksOf, sqlOf, valuesOf } from './ranges.ts';

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
