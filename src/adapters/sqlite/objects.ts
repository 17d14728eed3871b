import { setImmediate as breathe } from 'node:timers/promises';
import { z } from 'zod';
import { documentWords, type ObjectDocument } from '../../domain/documents/document.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex } from '../../pipeline/ports/object-index.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { documentOfRow } from './document.ts';
import { searchObjects } from './search.ts';

/** Documents of a bucket that one transaction deletes: some 50 ms, in which nothing else is served. */
const REMOVAL_BATCH = 1_000;

const heldSchema = z.object({ id: z.number(), clock: z.number(), deleted: z.number() });
type Held = z.infer<typeof heldSchema>;

type Statement = SqliteSession['statement'];

/**
 * The object index in SQLite. A write request is one transaction: it is durable as a whole when it is answered. The clock
 * rule is decided on what the transaction, which holds the write lock, reads.
 */
export function createSqliteObjects(connection: SqliteConnection): ObjectIndex {
  return {
    async write(writes, signal) {
      if (writes.length === 0) return [];
      return connection.use((session) => session.transaction(() => writeAll(session, writes)), signal);
    },

    async getMany(bucket, keys, signal) {
      return connection.use(({ statement }) => {
        const byKey = statement('SELECT document FROM objects WHERE bucket = ? AND key = ?');
        return keys.map((key) => {
          const row = byKey.get(bucket, key);
          return row === undefined ? undefined : documentOfRow(row);
        });
      }, signal);
    },

    async search(query, signal) {
      return connection.use((session) => searchObjects(session, query), signal);
    },

    async createBucket(bucket, signal) {
      // what an interrupted removal left must not come back with the bucket
      while (!connection.use((session) => createUnlessRemains(session, bucket), signal)) await breathe();
    },

    async removeBucket(bucket, signal) {
      connection.use(({ statement }) => statement('DELETE FROM buckets WHERE name = ?').run(bucket), signal);
      while (!connection.use((session) => deleteSome(session, bucket), signal)) await breathe();
    },

    async probe(signal) {
      // a real commit: only that finds a full disk
      connection.use(({ statement }) => statement('UPDATE probe SET writes = writes + 1').run(), signal);
    },
  };
}

function writeAll({ statement }: SqliteSession, writes: readonly IndexWrite[]): readonly IndexWriteAnswer[] {
  const asked = new Map<string, boolean>();
  function isCreated(bucket: string): boolean {
    const known = asked.get(bucket) ?? statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) !== undefined;
    asked.set(bucket, known);
    return known;
  }
  return writes.map((write) => {
    const { bucket } = write.document;
    if (!isCreated(bucket)) {
      return { kind: 'fault', code: 'bucket.index-missing', reason: `the index of bucket ${bucket} was never created, or was removed` };
    }
    return writeOne(statement, write);
  });
}

function writeOne(statement: Statement, { document, equalClock }: IndexWrite): IndexWriteAnswer {
  const row = statement('SELECT id, clock, deleted FROM objects WHERE bucket = ? AND key = ?').get(document.bucket, document.key);
  const held = row === undefined ? undefined : heldSchema.parse(row);
  const refusal = refusalOf(held, document.clock, equalClock);
  if (refusal !== undefined) return { kind: refusal };

  const id = held === undefined ? insert(statement, document) : held.id;
  if (held !== undefined) update(statement, held.id, document);
  // the words are the key's, so they change only where the object comes or goes
  const wasLive = held !== undefined && held.deleted === 0;
  if (wasLive && document.deleted) statement('DELETE FROM object_words WHERE rowid = ?').run(id);
  if (!wasLive && !document.deleted) {
    statement('INSERT INTO object_words (rowid, words) VALUES (?, ?)').run(id, documentWords(document).join(' '));
  }
  return { kind: 'written' };
}

/** The clock rule: a higher clock always wins, an equal one only where it is accepted. */
function refusalOf(held: Held | undefined, clock: number, equalClock: IndexWrite['equalClock']): 'stale' | 'equal' | undefined {
  if (held === undefined || clock > held.clock) return undefined;
  if (clock < held.clock) return 'stale';
  return equalClock === 'refuse' ? 'equal' : undefined;
}

function insert(statement: Statement, document: ObjectDocument): number | bigint {
  return statement('INSERT INTO objects (bucket, key, clock, deleted, extension, document) VALUES (?, ?, ?, ?, ?, ?)').run(
    document.bucket,
    document.key,
    ...columnsOf(document),
  ).lastInsertRowid;
}

function update(statement: Statement, id: number, document: ObjectDocument): void {
  statement('UPDATE objects SET clock = ?, deleted = ?, extension = ?, document = ? WHERE id = ?').run(...columnsOf(document), id);
}

/** The values of clock, deleted, extension and document. */
function columnsOf(document: ObjectDocument): [number, number, string | null, string] {
  return [document.clock, document.deleted ? 1 : 0, document.extension ?? null, JSON.stringify(document)];
}

/** Creates the bucket, unless documents of an earlier removal remain: then deletes some of them and answers false. */
function createUnlessRemains({ statement, transaction }: SqliteSession, bucket: string): boolean {
  return transaction(() => {
    if (statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) !== undefined) return true;
    if (deleteBatch(statement, bucket) > 0) return false;
    statement('INSERT INTO buckets (name) VALUES (?)').run(bucket);
    return true;
  });
}

/** Deletes some documents of a removed bucket; true when none is left, or when the bucket was created again meanwhile. */
function deleteSome({ statement, transaction }: SqliteSession, bucket: string): boolean {
  return transaction(() => {
    if (statement('SELECT 1 FROM buckets WHERE name = ?').get(bucket) !== undefined) return true;
    return deleteBatch(statement, bucket) === 0;
  });
}

function deleteBatch(statement: Statement, bucket: string): number | bigint {
  const batch = 'SELECT id FROM objects WHERE bucket = ? ORDER BY key LIMIT ?';
  statement(`DELETE FROM object_words WHERE rowid IN (${batch})`).run(bucket, REMOVAL_BATCH);
  return statement(`DELETE FROM objects WHERE id IN (${batch})`).run(bucket, REMOVAL_BATCH).changes;
}
