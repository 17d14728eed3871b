import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import type { ObjectScan, ScannedDocument } from '../../pipeline/ports/object-index.ts';
import type { SqlCondition } from './conditions.ts';
import type { SqliteConnection } from './connection.ts';
import { scannedOfRow } from './document.ts';
import { boundsOf, fromKey, keyConditions, sqlOf, untilKey, valuesOf } from './ranges.ts';

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
  function readChunk(range: KeyRange, limit: number, signal: AbortSignal | undefined): readonly ScannedDocument[] {
    const { sql, values } = keysIn(range);
    return connection.use(
      ({ statement }) =>
        statement(`SELECT document ${sql}`)
          .all(...values, limit)
          .map(scannedOfRow),
      signal,
    );
  }

  function countChunk(range: KeyRange, signal: AbortSignal | undefined): z.infer<typeof countSchema> {
    const { sql, values } = keysIn(range);
    const count = `SELECT count(*) AS live, max(key) AS last FROM (SELECT key ${sql})`;
    return connection.use(({ statement }) => countSchema.parse(statement(count).get(...values, COUNT_CHUNK)), signal);
  }

  return {
    async scan(bucket, { prefix, after, upTo, limit }, signal) {
      const documents: ScannedDocument[] = [];
      let from = after;
      while (documents.length < limit) {
        if (documents.length > 0) await letOthersRun();
        const wanted = Math.min(CHUNK, limit - documents.length);
        const chunk = readChunk({ bucket, prefix, after: from, upTo }, wanted, signal);
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
        const counted = countChunk({ bucket, prefix, after, upTo: undefined }, signal);
        live += counted.live;
        after = counted.live < COUNT_CHUNK ? undefined : (counted.last ?? undefined);
      }
      return live;
    },
  };
}

interface KeyRange {
  readonly bucket: string;
  readonly prefix: string;
  readonly after: string;
  readonly upTo: string | undefined;
}

/** The live rows of a range in the order of keys. The limit is bound after the values. */
function keysIn({ bucket, prefix, after, upTo }: KeyRange): SqlCondition {
  const bounds = untilKey(fromKey(boundsOf({ prefix }), after, '>'), upTo, '<=');
  const conditions = [{ sql: 'bucket = ?', values: [bucket] }, ...keyConditions({}, bounds)];
  return {
    sql: `FROM objects INDEXED BY objects_facts WHERE deleted = 0 AND ${sqlOf(conditions)} ORDER BY key LIMIT ?`,
    values: valuesOf(conditions),
  };
}
