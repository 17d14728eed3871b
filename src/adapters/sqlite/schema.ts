import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { FaultError } from '../../domain/fault.ts';

/** Marks a SQLite file as Tally's (`tlly`): a file of another program is never written to. https://www.sqlite.org/pragma.html#pragma_application_id */
const APPLICATION_ID = 0x74_6c_6c_79;

/**
 * The schema as a list of migrations. PRAGMA user_version is the number of migrations that were applied to a file.
 * Migrations keep what writing needs, so that a process of the previous version that has the file open can end its work; only
 * one process serves, and it holds the lock. An index that only searches read may be replaced. Never change a migration that
 * was released.
 *
 * - TEXT compares by its UTF-8 bytes (collation BINARY): the order of S3's listings.
 * - `document` is the document as JSON; the other columns are those that searches and decisions use.
 * - `object_words` contains the words of live documents, by objects.id. For the tokenizer `ascii`, words consist of ASCII
 *   letters and digits and all characters beyond ASCII, and only A–Z are folded. Tally's words are in lower case and
 *   contain only letters and digits, so it neither splits nor changes them. (`unicode61` folds ς into σ, for example.)
 * - `formed` is the clock at which the row was written with the words of this version (DOCUMENT_SCHEMA). A process of the
 *   previous version that has the file open fills no new column: a row that it wrote has another clock. The other search
 *   fields follow from the key when a search reads it.
 * - `size`, `modified`, `class` and `built` repeat fields of the document, times in milliseconds, so that `objects_facts` has
 *   all that searches filter, sort and sum by; it replaced `objects_live`. `built` is null where an earlier version wrote the row.
 * - `probe` was written to by the probes of the first version.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE buckets (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  CREATE TABLE objects (
    id INTEGER PRIMARY KEY,
    bucket TEXT NOT NULL,
    key TEXT NOT NULL,
    clock INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    extension TEXT,
    document TEXT NOT NULL,
    UNIQUE (bucket, key)
  ) STRICT;
  CREATE INDEX objects_live ON objects (bucket, key, extension) WHERE deleted = 0;
  CREATE VIRTUAL TABLE object_words USING fts5(words, content='', contentless_delete=1, detail=none, tokenize='ascii');
  CREATE TABLE state (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    record TEXT NOT NULL,
    version TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX state_kind ON state (kind, id);
  CREATE TABLE probe (id INTEGER PRIMARY KEY CHECK (id = 1), writes INTEGER NOT NULL) STRICT;
  INSERT INTO probe (id, writes) VALUES (1, 0);
  `,
  // indexes on expressions: a process of the previous version would not fill a new column
  `
  CREATE INDEX objects_unsettled ON objects (bucket, key, clock) WHERE json_extract(document, '$.settled') = 0;
  CREATE INDEX objects_expiring ON objects (bucket, key, json_extract(document, '$.expires_at'))
    WHERE deleted = 0 AND json_extract(document, '$.expires_at') IS NOT NULL;
  CREATE INDEX objects_tombstones ON objects (bucket, key, json_extract(document, '$.deleted_at'), clock) WHERE deleted = 1;
  `,
  // ids begin with the moment; the other columns are those that queries filter by
  `
  CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    eventname TEXT NOT NULL,
    email TEXT NOT NULL,
    key_name TEXT,
    key_fingerprint TEXT,
    record TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  // columns and not expressions of the document, which every index would read again at each write
  `
  ALTER TABLE objects ADD COLUMN formed INTEGER;
  ALTER TABLE objects ADD COLUMN size INTEGER;
  ALTER TABLE objects ADD COLUMN modified INTEGER;
  ALTER TABLE objects ADD COLUMN class TEXT;
  ALTER TABLE objects ADD COLUMN built INTEGER;
  CREATE INDEX objects_outdated ON objects (bucket, key) WHERE formed IS NOT clock;
  DROP INDEX objects_live;
  CREATE INDEX objects_facts ON objects (bucket, key, extension, size, modified, class, built) WHERE deleted = 0;
  `,
  // random, and another each time that a bucket is created
  `
  ALTER TABLE buckets ADD COLUMN id TEXT;
  `,
  // computed from the record, so that nothing else has to store it
  `
  ALTER TABLE state ADD COLUMN due_at_ms INTEGER AS (json_extract(record, '$.dueAtMs')) VIRTUAL;
  CREATE INDEX state_due ON state (kind, due_at_ms) WHERE due_at_ms IS NOT NULL;
  `,
];

const markSchema = z.object({ application_id: z.number(), user_version: z.number(), tables: z.number() });

/**
 * The number of migrations that were applied to the file. Throws `index.newer` for a file that a newer version has
 * upgraded and `index.damaged` for a database of another program.
 */
export function schemaVersionOf(database: DatabaseSync, steps: readonly string[] = migrations): number {
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
  if (user_version > steps.length) {
    throw new FaultError(
      'index.newer',
      `${database.location() ?? 'the file'} has schema ${user_version}, and this version of Tally supports schemas up to ${steps.length}`,
    );
  }
  return user_version;
}

/** Upgrades the file to this version's schema, in one transaction. Several processes may call it at the same time. */
export function upgradeSchema(database: DatabaseSync, steps: readonly string[] = migrations): void {
  if (schemaVersionOf(database, steps) === steps.length) return;
  // with WAL, readers and the one writer do not wait for each other; the mode is stored in the file
  database.exec('PRAGMA journal_mode = WAL');
  database.exec('BEGIN IMMEDIATE');
  try {
    // read again under the write lock, because another process may have been faster
    for (const step of steps.slice(schemaVersionOf(database, steps))) database.exec(step);
    database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${steps.length}`);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}
