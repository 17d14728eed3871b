import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import { compareKeys, firstAfterPrefix } from '../../domain/documents/key-order.ts';
import type { ObjectScan, ScannedDocument } from '../../pipeline/ports/object-index.ts';
import type { SqliteConnection } from './connection.ts';
import { scannedOfRow } from './document.ts';

/** Rows that are read at a time. It takes about 5 ms, during which this process does nothing else. */
const CHUNK = 1_000;

/** Rows that are counted at a time, from the index alone. It takes about 3 ms. */
const COUNT_CHUNK = 10_000;

const countSchema = z.object({ live: z.number(), last: z.string().nullable() });

/**
 * The scan in SQLite. It reads ranges of the index over live documents, whose order (BINARY) is that of UTF-8 bytes. It
 * sees every write that was answered.
 */
export function createSqliteScan(connection: SqliteConnection): ObjectScan {
  function readChunk(bucket: string, range: KeyRange, signal: AbortSignal | undefined): readonly ScannedDocument[] {
    return connection.use(({ statement }) => {
      const { sql, values } = conditionsOf(range);
      return statement(`SELECT document FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND bucket = ?${sql} ORDER BY key LIMIT ?`)
        .all(bucket, ...values, range.limit)
        .map(scannedOfRow);
    }, signal);
  }

  function countChunk(bucket: string, bounds: KeyBounds, signal: AbortSignal | undefined): z.infer<typeof countSchema> {
    return connection.use(({ statement }) => {
      const { sql, values } = conditionsOf(bounds);
      const keys = `SELECT key FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND bucket = ?${sql} ORDER BY key LIMIT ?`;
      return countSchema.parse(statement(`SELECT count(*) AS live, max(key) AS last FROM (${keys})`).get(bucket, ...values, COUNT_CHUNK));
    }, signal);
  }

  return {
    async scan(bucket, { prefix, after, upTo, limit }, signal) {
      const documents: ScannedDocument[] = [];
      let from = after;
      while (documents.length < limit) {
        if (documents.length > 0) await letOthersRun();
        const wanted = Math.min(CHUNK, limit - documents.length);
        const chunk = readChunk(bucket, { prefix, after: from, upTo, limit: wanted }, signal);
        documents.push(...chunk);
        from = chunk.at(-1)?.key ?? from;
        if (chunk.length < wanted) break;
      }
      return documents;
    },

    async refresh(_bucket, signal) {
      // nothing is cached, so this only checks that the store can be used
      connection.use(() => undefined, signal);
    },

    async countLive(bucket, prefix, signal) {
      let live = 0;
      for (let after: string | undefined = ''; after !== undefined;) {
        if (live > 0) await letOthersRun();
        const counted = countChunk(bucket, { prefix, after, upTo: undefined }, signal);
        live += counted.live;
        after = counted.live < COUNT_CHUNK ? undefined : (counted.last ?? undefined);
      }
      return live;
    },
  };
}

interface KeyBounds {
  readonly prefix: string;
  readonly after: string;
  readonly upTo: string | undefined;
}

interface KeyRange extends KeyBounds {
  readonly limit: number;
}

/** The bounds of the key as one of a fixed set of SQL texts, and the values to bind. There is one lower bound, because a range of an index has only one. */
function conditionsOf({ prefix, after, upTo }: KeyBounds): { readonly sql: string; readonly values: readonly string[] } {
  const end = firstAfterPrefix(prefix);
  const lower = compareKeys(after, prefix) >= 0 ? { sql: ' AND key > ?', value: after } : { sql: ' AND key >= ?', value: prefix };
  return {
    sql: `${lower.sql}${upTo === undefined ? '' : ' AND key <= ?'}${end === undefined ? '' : ' AND key < ?'}`,
    values: [lower.value, ...(upTo === undefined ? [] : [upTo]), ...(end === undefined ? [] : [end])],
  };
}
