import { randomUUID } from 'node:crypto';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import { documentWords, type ObjectDocument } from '../../domain/documents/document.ts';
import { FaultError } from '../../domain/fault.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex } from '../../pipeline/ports/object-index.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { DOCUMENT_BY_KEY, documentOfRow, HELD_BY_KEY } from './document.ts';
import { latestChanges } from './changes.ts';
import { foldedColumn } from './conditions.ts';
import { countFiltered, searchFiltered, type ShareRanges } from './filtered.ts';
import { isPlain, searchObjects } from './search.ts';
import { createSumChanges, deleteSums, type Facts, type SumChanges } from './sums.ts';

/** Documents of a bucket that one transaction deletes. It takes about 50 ms, during which this process does nothing else. */
const REMOVAL_BATCH = 1_000;

const heldSchema = z.object({
  id: z.number(),
  clock: z.number(),
  deleted: z.number(),
  size: z.number().nullable(),
  modified: z.number().nullable(),
  class: z.string().nullable(),
  extension: z.string().nullable(),
});
type Held = z.infer<typeof heldSchema>;
const identitySchema = z.object({ id: z.string() });

type Statement = SqliteSession['statement'];

/**
 * The object index in SQLite. A write request is one transaction: all of it is durable when it is answered. The clock rule
 * is applied to what the transaction reads while it holds the write lock. `share`: for long searches. Default: this thread reads all.
 */
export function createSqliteObjects(connection: SqliteConnection, probe: ObjectIndex['probe'], share?: ShareRanges): ObjectIndex {
  return {
    async write(writes, signal) {
      if (writes.length === 0) return [];
      return connection.use((session) => session.transaction(() => writeAll(session, writes)), signal);
    },

    async getMany(bucket, keys, signal) {
      return connection.use(({ statement }) => {
        const byKey = statement(DOCUMENT_BY_KEY);
        return keys.map((key) => {
          const row = byKey.get(bucket, key);
          return row === undefined ? undefined : documentOfRow(row);
        });
      }, signal);
    },

    async search(query, signal) {
      if (!isPlain(query)) return searchFiltered(connection, query, { signal, share });
      return connection.use((session) => searchObjects(session, query), signal);
    },

    async count(filter, max, signal) {
      return countFiltered(connection, { filter, max }, signal);
    },

    async changes(bucket, page, signal) {
      return latestChanges(connection, { bucket, ...page }, signal);
    },

    async createBucket(bucket, signal) {
      // documents that an interrupted removal left must not return with the bucket
      while (!connection.use((session) => createUnlessRemains(session, bucket), signal)) await letOthersRun();
    },

    async identities(buckets, signal) {
      return connection.use(({ statement, fileId }) => {
        const byName = statement('SELECT id FROM buckets WHERE name = ?');
        return buckets.map((bucket) => {
          const row = byName.get(bucket);
          return row === undefined ? undefined : `${identitySchema.parse(row).id}.${fileId}`;
        });
      }, signal);
    },

    async removeBucket(bucket, signal) {
      connection.use(({ statement }) => statement('DELETE FROM buckets WHERE name = ?').run(bucket), signal);
      while (!connection.use((session) => deleteSome(session, bucket), signal)) await letOthersRun();
    },

    probe,

    async probeBucket(bucket, signal) {
      connection.use(({ statement }) => {
        if (statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) === undefined)
          throw new FaultError('bucket.index-missing', missingReason(bucket));
        statement('UPDATE probe SET writes = writes + 1').run();
      }, signal);
    },
  };
}

function writeAll({ statement }: SqliteSession, writes: readonly IndexWrite[]): readonly IndexWriteAnswer[] {
  const sums = createSumChanges();
  const created = new Map<string, boolean>();
  function isCreated(bucket: string): boolean {
    const known = created.get(bucket) ?? statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) !== undefined;
    created.set(bucket, known);
    return known;
  }
  const answers = writes.map((write): IndexWriteAnswer => {
    const { bucket } = write.document;
    if (!isCreated(bucket)) {
      return { kind: 'fault', code: 'bucket.index-missing', reason: missingReason(bucket) };
    }
    return writeOne(statement, write, sums);
  });
  sums.store(statement);
  return answers;
}

function missingReason(bucket: string): string {
  return `the index of bucket ${bucket} was never created, or it was removed`;
}

function writeOne(statement: Statement, { document, equalClock }: IndexWrite, sums: SumChanges): IndexWriteAnswer {
  const row = statement(HELD_BY_KEY).get(document.bucket, document.key);
  const held = row === undefined ? undefined : heldSchema.parse(row);
  const refusal = refusalOf(held, document.clock, equalClock);
  if (refusal !== undefined) return { kind: refusal };

  const facts = factsOf(document);
  const columns = columnsOf(document, facts);
  const id = held === undefined ? insert(statement, document, columns) : held.id;
  if (held !== undefined) update(statement, held.id, columns);
  writeWords(statement, { id, held, document });
  if (held !== undefined && held.deleted === 0) sums.add(document, held, -1);
  if (!document.deleted) sums.add(document, facts, 1);
  return { kind: 'written' };
}

/** The words are those of the key, so they change only if the object is created or deleted. */
function writeWords(
  statement: Statement,
  { id, held, document }: { readonly id: number | bigint; readonly held: Held | undefined; readonly document: ObjectDocument },
): void {
  const hadWords = held !== undefined && held.deleted === 0;
  if (hadWords === !document.deleted) return;
  if (hadWords) statement('DELETE FROM object_words WHERE rowid = ?').run(id);
  else statement('INSERT INTO object_words (rowid, words) VALUES (?, ?)').run(id, documentWords(document).join(' '));
}

/** The clock rule: a higher clock always wins, an equal clock only if `equalClock` accepts it. */
function refusalOf(held: Held | undefined, clock: number, equalClock: IndexWrite['equalClock']): 'superseded' | 'equal' | undefined {
  if (held === undefined || clock > held.clock) return undefined;
  if (clock < held.clock) return 'superseded';
  return equalClock === 'refuse' ? 'equal' : undefined;
}

type Columns = readonly (string | number | null)[];

function insert(statement: Statement, { bucket, key }: ObjectDocument, columns: Columns): number | bigint {
  return statement(
    'INSERT INTO objects (bucket, key, folded, size, modified, class, extension, built, clock, deleted, settled, expires_at, deleted_at, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  ).run(bucket, key, foldedColumn(key), ...columns).lastInsertRowid;
}

function update(statement: Statement, id: number, columns: Columns): void {
  statement(
    'UPDATE objects SET size = ?, modified = ?, class = ?, extension = ?, built = ?, clock = ?, deleted = ?, settled = ?, expires_at = ?, deleted_at = ?, document = ? WHERE id = ?',
  ).run(...columns, id);
}

/** The fields of a document that its sums depend on, as `Held` has them. */
function factsOf({ size, last_modified: modified, storage_class: storageClass, extension }: ObjectDocument): Facts {
  const modifiedMs = modified === undefined ? null : Date.parse(modified);
  return { size: size ?? null, modified: modifiedMs, class: storageClass ?? null, extension: extension ?? null };
}

/** The values of the columns that both statements write, in their order. */
function columnsOf(document: ObjectDocument, { size, modified, class: storageClass, extension }: Facts): Columns {
  const { indexed_at: indexedAt, clock, deleted, settled, expires_at: expiresAt = null, deleted_at: deletedAt = null } = document;
  return [
    size,
    modified,
    storageClass,
    extension,
    Date.parse(indexedAt),
    clock,
    deleted ? 1 : 0,
    settled ? 1 : 0,
    expiresAt,
    deletedAt,
    JSON.stringify(document),
  ];
}

/** Creates the bucket and returns true, unless documents of an earlier removal remain: then it deletes some of them and returns false. */
function createUnlessRemains({ statement, transaction }: SqliteSession, bucket: string): boolean {
  return transaction(() => {
    if (statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) !== undefined) return true;
    if (deleteBatch(statement, bucket) > 0) return false;
    statement('INSERT INTO buckets (name, id) VALUES (?, ?)').run(bucket, randomUUID());
    return true;
  });
}

/** Deletes some documents of a removed bucket. Returns true if none is left, or if the bucket was created again meanwhile. */
function deleteSome({ statement, transaction }: SqliteSession, bucket: string): boolean {
  return transaction(() => {
    if (statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) !== undefined) return true;
    return deleteBatch(statement, bucket) === 0;
  });
}

function deleteBatch(statement: Statement, bucket: string): number | bigint {
  const batch = 'SELECT id FROM objects WHERE bucket = ? ORDER BY deleted, key LIMIT ?';
  statement(`DELETE FROM object_words WHERE rowid IN (${batch})`).run(bucket, REMOVAL_BATCH);
  const { changes } = statement(`DELETE FROM objects WHERE id IN (${batch})`).run(bucket, REMOVAL_BATCH);
  return Number(changes) > 0 ? changes : deleteSums(statement, bucket, REMOVAL_BATCH);
}
