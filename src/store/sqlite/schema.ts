/** The tables of a SQLite index, and the documents in their rows. */
import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { FaultError } from '../../base/fault.ts';
import { objectDocumentSchema, type ObjectDocument } from '../../ordering/document.ts';
import { scannedDocumentSchema, type ScannedDocument } from '../store.ts';

/** Marks a SQLite file as Tally's (`tlly`): a file of another program is never written to. https://www.sqlite.org/pragma.html#pragma_application_id */
const APPLICATION_ID = 0x74_6c_6c_79;

/** The number of the schema, in PRAGMA user_version. It is raised with each change of the tables or of the records in them. */
const SCHEMA_VERSION = 3;

/**
 * - TEXT compares by its UTF-8 bytes (collation BINARY): the order of S3's listings.
 * - `buckets.id` is random, and new each time a bucket is created.
 * - `document` is the document as JSON; the other columns are those that searches and decisions use.
 * - `object_words` contains the words of live documents, by objects.id. For the tokenizer `ascii`, words consist of ASCII
 *   letters and digits and all characters beyond ASCII, and only A–Z are folded. Tally's words are in lower case and
 *   contain only letters and digits, so it neither splits nor changes them. (`unicode61` folds ς into σ, for example.)
 * - `objects_facts` is the only index over all rows, because a second one would make every write 50 % dearer. Uniqueness of a key is
 *   enforced by looking it up in the writing transaction (objects.ts). Live objects are apart from tombstones, so that a search reads
 *   no tombstones.
 * - `size`, `modified` (`last_modified`, in milliseconds) and `class` (`storage_class`) repeat fields of the document, so that
 *   `objects_facts` has everything by which searches filter, sort and sum; the calendar asks for `settled`, `expires_at` and
 *   `deleted_at`. They are columns, because every index would read expressions of the document again at each write.
 * - `seq` numbers the writes of the file, in the order of their commits; null: the tombstone of a key that the index never held. Each
 *   write of a row takes the next number, so `objects_written` grows at one end of each bucket.
 * - `starts` has one row for each process that has written, with the last number that it gave out. A copy of the file that is put
 *   back lacks a start, or ends it earlier, so Tally can tell a follower that its position is lost.
 * - `folded` is the folded form of a key that is not ASCII (or has a NUL). LIKE folds ASCII itself, and calling a function of this
 *   process for each key takes twenty times as long.
 * - The ids of `audit` begin with the moment; its other columns are those that queries filter by.
 */
const SCHEMA = `
  CREATE TABLE buckets (name TEXT PRIMARY KEY, id TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE objects (
    id INTEGER PRIMARY KEY,
    bucket TEXT NOT NULL,
    key TEXT NOT NULL,
    clock INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    extension TEXT,
    size INTEGER,
    modified INTEGER,
    class TEXT,
    seq INTEGER,
    folded TEXT,
    settled INTEGER NOT NULL,
    expires_at TEXT,
    deleted_at TEXT,
    document TEXT NOT NULL
  ) STRICT;
  CREATE INDEX objects_facts ON objects (bucket, deleted, key, folded, size, modified, class, extension, clock);
  CREATE INDEX objects_unsettled ON objects (bucket, key, clock) WHERE settled = 0;
  CREATE INDEX objects_expiring ON objects (bucket, key, expires_at) WHERE deleted = 0 AND expires_at IS NOT NULL;
  CREATE INDEX objects_tombstones ON objects (bucket, key, deleted_at, clock, seq) WHERE deleted = 1;
  CREATE INDEX objects_written ON objects (bucket, seq) WHERE seq IS NOT NULL;
  CREATE TABLE starts (id INTEGER PRIMARY KEY, name TEXT NOT NULL, last INTEGER NOT NULL) STRICT;
  CREATE VIRTUAL TABLE object_words USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');
  CREATE TABLE state (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    record TEXT NOT NULL,
    version TEXT NOT NULL,
    due_at_ms INTEGER AS (CAST(json_extract(record, '$.dueAtMs') AS INTEGER)) VIRTUAL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX state_kind ON state (kind, id);
  CREATE INDEX state_due ON state (kind, due_at_ms) WHERE due_at_ms IS NOT NULL;
  CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), writes INTEGER NOT NULL) STRICT;
  INSERT INTO probe (id, writes) VALUES (1, 0);
  CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    eventname TEXT NOT NULL,
    email TEXT NOT NULL,
    key_name TEXT,
    key_fingerprint TEXT,
    record TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

const markSchema = z.object({ application_id: z.number(), user_version: z.number(), tables: z.number() });

/**
 * Whether the file has the schema. Throws `index.other-version` for a file of another version of Tally, and `index.damaged`
 * for a database of another program.
 */
export function hasSchema(database: DatabaseSync): boolean {
  const { application_id, user_version, tables } = markSchema.parse(
    database
      .prepare(
        `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) AS tables
         FROM pragma_application_id, pragma_user_version`,
      )
      .get(),
  );
  const fresh = application_id === 0 && user_version === 0 && tables === 0;
  if (!fresh && application_id !== APPLICATION_ID) {
    throw new FaultError('index.damaged', `${database.location() ?? 'the file'} is a database of another program`);
  }
  if (fresh || user_version === SCHEMA_VERSION) return !fresh;
  throw new FaultError(
    'index.other-version',
    `${database.location() ?? 'the file'} has schema ${user_version}, and this version of Tally reads schema ${SCHEMA_VERSION}`,
  );
}

/** Gives a new file the schema, in one transaction. Several processes may call it at the same time. */
export function createSchema(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    // read again under the write lock, because another process may have been faster
    if (!hasSchema(database)) database.exec(SCHEMA);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

// ── the rows of documents ────────────────────────────────────────────────────────────────────────────────────────────

const rowSchema = z.object({ document: z.string() });

/** A row by its bucket (?1) and key (?2): a search of the index for a live object, and one for a tombstone. IN (0, 1) would take twice as long. */
function byKeySql(live: string, tombstone: string): string {
  return [live, tombstone]
    .map((columns, deleted) => `SELECT ${columns} FROM objects WHERE bucket = ?1 AND deleted = ${deleted} AND key = ?2`)
    .join(' UNION ALL ');
}

export const DOCUMENT_BY_KEY = byKeySql('document', 'document');
/** `told`: whether the feed has it; all of it is in the indexes. */
export const HELD_BY_KEY = byKeySql('id, clock, deleted, 1 AS told', 'id, clock, deleted, seq IS NOT NULL AS told');

/** The document of a row, which is JSON in the column `document`. */
export function documentOfRow(row: unknown): ObjectDocument {
  return objectDocumentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}

/** The fields of a row's document that a scan returns. */
export function scannedOfRow(row: unknown): ScannedDocument {
  return scannedDocumentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}
