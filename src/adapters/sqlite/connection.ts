import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { FaultError, type FaultCode } from '../../domain/fault.ts';
import { schemaSteps, schemaVersionOf, upgradeSchema } from './schema.ts';

/** What one call may do with the open database. */
export interface SqliteSession {
  /** The statement, compiled once. `sql` is one of a fixed set: values are bound, never written into it. */
  readonly statement: (sql: string) => StatementSync;
  /** Runs `work` as one write transaction: all of it is durable when this returns, or none of it happened. */
  readonly transaction: <Result>(work: () => Result) => Result;
}

export interface SqliteConnection {
  /** Runs `work` on the prepared database. Throws `index.state-missing` until it is prepared, else the fault that SQLite's error amounts to. */
  use<Result>(work: (session: SqliteSession) => Result, signal?: AbortSignal): Result;
  /** Creates the file and its folder where they are missing, and upgrades the schema. */
  prepare(signal?: AbortSignal): void;
  close(): void;
}

/**
 * A connection that opens its file at the first use and never creates it: only {@link SqliteConnection.prepare} does, so
 * that a command given a mistyped path leaves nothing behind. `busyTimeoutMs`: how long a call waits (and with it this
 * process) for another process's transaction before it is `index.overloaded`.
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
      if (schemaVersionOf(database) < schemaSteps.length) throw unprepared(path);
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
  return new FaultError('index.state-missing', `${path} holds no index, or one that this version has not upgraded yet`);
}

interface OpenOptions {
  readonly path: string;
  /** `rw` fails where there is no file; `rwc` creates it. */
  readonly mode: 'rw' | 'rwc';
  readonly busyTimeoutMs: number;
}

/** Opens a file; throws SQLite's own error. */
export function openDatabase({ path, mode, busyTimeoutMs }: OpenOptions): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set('mode', mode);
  const database = new DatabaseSync(url, { timeout: busyTimeoutMs });
  // A message is deleted from its queue once its effect is stored, so a commit must survive a power cut: FULL syncs the
  // log at every commit. One commit carries a whole bulk, which makes that one sync per thousand documents.
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
    // IMMEDIATE: takes the write lock before anything is read, so what is decided is decided on the latest state
    statement('BEGIN IMMEDIATE').run();
    try {
      const result = work();
      statement('COMMIT').run();
      return result;
    } catch (error) {
      // a full disk has rolled back already
      if (database.isTransaction) statement('ROLLBACK').run();
      throw error;
    }
  }

  return { statement, transaction };
}

/** SQLite's primary result codes (https://www.sqlite.org/rescode.html) that have a meaning of their own here. */
const faultCodes: ReadonlyMap<number, FaultCode> = new Map([
  [5, 'index.overloaded'], // BUSY: another process holds the write lock for longer than the busy time-out
  [6, 'index.overloaded'], // LOCKED
  [8, 'index.blocked'], // READONLY
  [10, 'index.unreachable'], // IOERR
  [11, 'index.damaged'], // CORRUPT
  [13, 'index.blocked'], // FULL
  [14, 'index.unreachable'], // CANTOPEN
  [26, 'index.damaged'], // NOTADB
]);

const sqliteErrorSchema = z.object({ code: z.literal('ERR_SQLITE_ERROR'), errcode: z.number(), message: z.string() });

/** The fault that an error thrown while working on `path` amounts to. */
export function sqliteFault(error: unknown, path: string): unknown {
  if (error instanceof FaultError) return error;
  const parsed = sqliteErrorSchema.safeParse(error);
  if (!parsed.success) return isFileError(error) ? new FaultError('index.unreachable', error.message, { cause: error }) : error;
  const { errcode, message } = parsed.data;
  // extended codes carry the primary one in their lowest byte
  const code = faultCodes.get(errcode & 0xff) ?? 'internal.unexpected';
  return new FaultError(code, `${path}: ${message} (SQLite ${errcode})`, { cause: error });
}

function isFileError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}
