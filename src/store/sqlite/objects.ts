import { randomUUID } from 'node:crypto';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { z } from 'zod';
import { documentWords, type ObjectDocument } from '../../ordering/document.ts';
import { FaultError } from '../../base/fault.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex, ObjectMaintenance } from '../store.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { createNumbering, positionOf } from './changes.ts';
import { DOCUMENT_BY_KEY, documentOfRow, HELD_BY_KEY } from './schema.ts';
import { foldedColumn } from './conditions.ts';
import type { SqliteReader } from './reads.ts';

/** How many of a bucket's documents one transaction deletes. It takes about 50 ms and blocks this process. */
const REMOVAL_BATCH = 1_000;

const heldSchema = z.object({
  id: z.number(),
  clock: z.number(),
  deleted: z.number(),
  /** Whether the feed has it: 0 for the tombstone of a key that the index never held. */
  told: z.number(),
});
type Held = z.infer<typeof heldSchema>;
const identitySchema = z.object({ id: z.string() });

type Statement = SqliteSession['statement'];

/**
 * The object index in SQLite. A write request is one transaction: all of it is durable when it is answered. The clock rule applies to
 * what the transaction reads while it holds the write lock.
 */
export function createSqliteObjects(
  connection: SqliteConnection,
  probe: ObjectIndex['probe'],
): Omit<ObjectIndex, keyof SqliteReader['objects']> {
  const beginNumbers = createNumbering();

  return {
    async write(writes, signal) {
      if (writes.length === 0) return [];
      return connection.use((session) => session.transaction(() => writeAll(session, writes, beginNumbers(session))), signal);
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

    async createBucket(bucket, signal) {
      // documents left by an interrupted removal must not return with the bucket
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

    position: async (bucket, signal) => connection.use((session) => positionOf(session, bucket), signal),

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

const PURGE = 'DELETE FROM objects WHERE bucket = ? AND key = ? AND clock = ? AND deleted = 1';

/** Creates the purge of tombstones: one transaction for each call, which blocks the process for at most about 50 ms. */
export function createPurge(connection: SqliteConnection, { tombstones }: Pick<SqliteReader, 'tombstones'>): ObjectMaintenance['purge'] {
  return async function purge(bucket, page, signal) {
    const found = await tombstones(bucket, page, signal);
    return connection.use(
      ({ statement, transaction }) =>
        // A document written in the meantime stays, because it has another clock or is live. Tombstones have no words to delete.
        transaction(() => found.reduce((sum, { key, clock }) => sum + Number(statement(PURGE).run(bucket, key, clock).changes), 0)),
      signal,
    );
  };
}

type Numbers = ReturnType<ReturnType<typeof createNumbering>>;

function writeAll({ statement }: SqliteSession, writes: readonly IndexWrite[], numbers: Numbers): readonly IndexWriteAnswer[] {
  const created = new Map<string, boolean>();
  function isCreated(bucket: string): boolean {
    const known = created.get(bucket) ?? statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) !== undefined;
    created.set(bucket, known);
    return known;
  }
  const answers = writes.map((write): IndexWriteAnswer => {
    const { bucket } = write.document;
    if (!isCreated(bucket)) {
      return { kind: 'fault', fault: { code: 'bucket.index-missing', reason: missingReason(bucket) } };
    }
    return writeOne(statement, write, numbers);
  });
  numbers.store();
  return answers;
}

function missingReason(bucket: string): string {
  return `the index of bucket ${bucket} was never created, or it was removed`;
}

function writeOne(statement: Statement, { document, equalClock }: IndexWrite, numbers: Numbers): IndexWriteAnswer {
  const row = statement(HELD_BY_KEY).get(document.bucket, document.key);
  const held = row === undefined ? undefined : heldSchema.parse(row);
  const refusal = refusalOf(held, document.clock, equalClock);
  if (refusal !== undefined) return { kind: refusal };

  const isTold = !document.deleted || held?.told === 1;
  const columns = columnsOf(document, isTold ? numbers.next() : null);
  const id = held === undefined ? insert(statement, document, columns) : held.id;
  if (held !== undefined) update(statement, held.id, columns);
  writeWords(statement, { id, held, document });
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
    'INSERT INTO objects (bucket, key, folded, size, modified, class, extension, seq, clock, deleted, settled, expires_at, deleted_at, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  ).run(bucket, key, foldedColumn(key), ...columns).lastInsertRowid;
}

function update(statement: Statement, id: number, columns: Columns): void {
  statement(
    'UPDATE objects SET size = ?, modified = ?, class = ?, extension = ?, seq = ?, clock = ?, deleted = ?, settled = ?, expires_at = ?, deleted_at = ?, document = ? WHERE id = ?',
  ).run(...columns, id);
}

/** The values of the columns that both statements write, in column order. */
function columnsOf(document: ObjectDocument, seq: number | null): Columns {
  const { size = null, last_modified: modified, storage_class: storageClass = null, extension = null } = document;
  const { clock, deleted, settled, expires_at: expiresAt = null, deleted_at: deletedAt = null } = document;
  return [
    size,
    modified === undefined ? null : Date.parse(modified),
    storageClass,
    extension,
    seq,
    clock,
    deleted ? 1 : 0,
    settled ? 1 : 0,
    expiresAt,
    deletedAt,
    JSON.stringify(document),
  ];
}

/** Creates the bucket and returns true. If documents of an earlier removal remain, it deletes some of them and returns false instead. */
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
  return changes;
}
