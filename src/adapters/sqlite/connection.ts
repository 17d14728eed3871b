import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { FaultError, type FaultCode } from '../../domain/fault.ts';
import { migrations, schemaVersionOf, upgradeSchema } from './schema.ts';

/** The operations of one call on the open database. */
export interface SqliteSession {
  /** The statement, which is compiled once. `sql` is one of a fixed set of texts: values are bound, never written into it. */
  readonly statement: (sql: string) => StatementSync;
  /** Runs `work` as one write transaction: when this returns, all of it is durable; when it throws, nothing was changed. */
  readonly transaction: <Result>(work: () => Result) => Result;
}

export interface SqliteConnection {
  /** Runs `work` on the prepared database. Throws `index.state-missing` until it is prepared, and the fault for any error of SQLite. */
  use<Result>(work: (session: SqliteSession) => Result, signal?: AbortSignal): Result;
  /** Creates the file and its folder if they do not exist, and upgrades the schema. */
  prepare(signal?: AbortSignal): void;
  close(): void;
}

/**
 * Creates a connection that opens its file at the first use. Only {@link SqliteConnection.prepare} creates the file, so
 * that a command with a mistyped path leaves nothing behind. `busyTimeoutMs`: how long a call waits for another process's
 * transaction, which blocks this process, before it throws `index.overloaded`.
 */
export function createSqliteConnection(path: string, busyTimeoutMs: number): SqliteConnection {
  let open: { readonly database: DatabaseSync; readonly session: SqliteSession } | undefined;
  let closed = false;

  function adopt(database: DatabaseSync): SqliteSession {
    open = { database, session: createSession(database) };
    return open.session;
  }

  function opened(): SqliteSession {
    if (open !== undefined) return open.session;
    if (!existsSync(path)) throw unprepared(path);
    const database = openDatabase({ path, mode: 'rw', busyTimeoutMs });
    try {
      if (schemaVersionOf(database) < migrations.length) throw unprepared(path);
      return adopt(database);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  function guarded<Result>(work: () => Result, signal: AbortSignal | undefined): Result {
    signal?.throwIfAborted();
    if (closed) throw new FaultError('index.unreachable', `${path} was closed by this process`);
    try {
      return work();
    } catch (error) {
      throw sqliteFault(error, path);
    }
  }

  return {
    use: (work, signal) => guarded(() => work(opened()), signal),

    prepare(signal) {
      guarded(() => {
        if (open !== undefined) return;
        mkdirSync(dirname(path), { recursive: true });
        const database = openDatabase({ path, mode: 'rwc', busyTimeoutMs });
        try {
          upgradeSchema(database);
          adopt(database);
        } catch (error) {
          database.close();
          throw error;
        }
      }, signal);
    },

    close() {
      closed = true;
      open?.database.close();
      open = undefined;
    },
  };
}

function unprepared(path: string): FaultError {
  return new FaultError('index.state-missing', `${path} contains no index, or an index that this version has not upgraded yet`);
}

interface OpenOptions {
  readonly path: string;
  /** `rw` fails if the file does not exist; `rwc` creates it. */
  readonly mode: 'rw' | 'rwc';
  readonly busyTimeoutMs: number;
}

/** Opens a database file. Throws SQLite's own error. */
export function openDatabase({ path, mode, busyTimeoutMs }: OpenOptions): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set('mode', mode);
  const database = new DatabaseSync(url, { timeout: busyTimeoutMs });
  // A message is deleted from its queue once its effect is stored, so a commit must survive a power cut: FULL syncs the
  // log at every commit. One commit contains a whole bulk request, so there is about one sync per thousand documents.
  database.exec('PRAGMA synchronous = FULL');
  return database;
}

function createSession(database: DatabaseSync): SqliteSession {
  const statements = new Map<string, StatementSync>();

  function statement(sql: string): StatementSync {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const compiled = database.prepare(sql);
    statements.set(sql, compiled);
    return compiled;
  }

  function transaction<Result>(work: () => Result): Result {
    // IMMEDIATE takes the write lock before anything is read, so that decisions use the latest state
    statement('BEGIN IMMEDIATE').run();
    try {
      const result = work();
      statement('COMMIT').run();
      return result;
    } catch (error) {
      // if the disk was full, SQLite has rolled back already
      if (database.isTransaction) statement('ROLLBACK').run();
      throw error;
    }
  }

  return { statement, transaction };
}

/** The faults of SQLite's primary result codes (https://www.sqlite.org/rescode.html); any other is `internal.unexpected`. */
const faultCodes: ReadonlyMap<number, FaultCode> = new Map([
  [5, 'index.overloaded'], // BUSY: another process held the write lock for longer than the busy time-out
  [6, 'index.overloaded'], // LOCKED
  [8, 'index.blocked'], // READONLY
  [10, 'index.unreachable'], // IOERR
  [11, 'index.damaged'], // CORRUPT
  [13, 'index.blocked'], // FULL
  [14, 'index.unreachable'], // CANTOPEN
  [26, 'index.damaged'], // NOTADB
]);

const sqliteErrorSchema = z.object({ code: z.literal('ERR_SQLITE_ERROR'), errcode: z.number(), message: z.string() });

/** The fault for an error that was thrown during work on `path`. An error of neither SQLite nor the file system is returned unchanged. */
export function sqliteFault(error: unknown, path: string): unknown {
  if (error instanceof FaultError) return error;
  const parsed = sqliteErrorSchema.safeParse(error);
  if (!parsed.success) return isFileError(error) ? new FaultError('index.unreachable', error.message, { cause: error }) : error;
  const { errcode, message } = parsed.data;
  // the lowest byte of an extended code is the primary code
  const code = faultCodes.get(errcode & 0xff) ?? 'internal.unexpected';
  return new FaultError(code, `${path}: ${message} (SQLite ${errcode})`, { cause: error });
}

function isFileError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}
