import { LRUCache } from 'lru-cache';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { FaultError, type FaultCode } from '../../base/fault.ts';
import { addFunctions } from './conditions.ts';
import { createSchema, hasSchema } from './schema.ts';

/** The operations of one call on the open database. */
export interface SqliteSession {
  /** The file system's identifier of the open file, which changes when a copy is put back. */
  readonly fileId: string;
  /** A statement, compiled once. Values are bound, never written into `sql`. */
  readonly statement: (sql: string) => StatementSync;
  /** Runs `work` as one write transaction: when this returns, all of it is durable; when it throws, nothing was changed. */
  readonly transaction: <Result>(work: () => Result) => Result;
}

export interface SqliteReads {
  /** Runs `work` on the prepared database. Throws `index.state-missing` until it is prepared, and the fault for any error of SQLite. */
  use<Result>(work: (session: SqliteSession) => Result, signal?: AbortSignal): Result;
}

export interface SqliteConnection extends SqliteReads {
  /** Creates the file and its folder if needed, and gives a new file its schema. */
  prepare(signal?: AbortSignal): void;
  /** Whether a write failed because the disk was full, since the last `foundRoom()`. */
  readonly wasFull: boolean;
  foundRoom(): void;
  close(): void;
}

interface OpenDatabase {
  readonly database: DatabaseSync;
  readonly session: SqliteSession;
}

/**
 * Creates a connection that opens its file at the first use. Only {@link SqliteConnection.prepare} creates the file, so
 * that a mistyped path leaves nothing behind. `mode`: `ro` only reads. `isEnded` says whether the reading request is over, because
 * Node's SQLite cannot interrupt a statement otherwise.
 */
export function createSqliteConnection(path: string, mode: 'ro' | 'rw' = 'rw', isEnded?: () => boolean): SqliteConnection {
  let open: OpenDatabase | undefined;
  let wasFull = false;
  let closed = false;

  function opened(): OpenDatabase {
    if (open !== undefined) return open;
    if (!existsSync(path)) throw unprepared(path);
    const database = openDatabase(path, mode);
    try {
      if (!hasSchema(database)) throw unprepared(path);
      addFunctions(database, isEnded);
      open = { database, session: createSession(database, String(statSync(path).ino)) };
      return open;
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
      if (primaryCodeOf(error) === FULL) wasFull = true;
      throw sqliteFault(error, path);
    }
  }

  return {
    use(work, signal) {
      return guarded(() => work(opened().session), signal);
    },

    prepare(signal) {
      guarded(() => {
        if (open !== undefined) return;
        mkdirSync(dirname(path), { recursive: true });
        const database = openDatabase(path, 'rwc');
        try {
          // with write-ahead logging, readers and the one writer do not wait for each other; the mode is stored in the file
          if (!hasSchema(database)) {
            database.exec('PRAGMA journal_mode = WAL');
            createSchema(database);
          }
        } finally {
          database.close();
        }
        opened();
      }, signal);
    },

    get wasFull() {
      return wasFull;
    },
    foundRoom() {
      wasFull = false;
    },

    close() {
      closed = true;
      open?.database.close();
      open = undefined;
    },
  };
}

function unprepared(path: string): FaultError {
  return new FaultError('index.state-missing', `${path} contains no index`);
}

/**
 * The page cache of the writer. A bulk request's keys go to hundreds of places in an index, and the next request needs the same pages,
 * some 4 MB. With SQLite's default of 2 MB, each would have to be read from the file again.
 */
const WRITER_CACHE_KIB = 16_384;
/** The page cache of readers, which read each page once. Half of SQLite's 2 MB fits into a core's cache; with 16 MB, a search takes 10 % longer. */
const READER_CACHE_KIB = 1_024;
/**
 * How many pages of 4 KiB the log has before they are written into the file: 32 MB, of which most are the same pages again and
 * are written once. With SQLite's 1,000 they are written eight times as often, for a third of the CPU time of a write. Each time
 * blocks the process for less than a tenth of a second. The log grows beyond this while one read lasts, since it is reused only
 * from its start, and is cut to LOG_BYTES then. No read outlasts its request.
 */
const LOG_PAGES = 8_000;
/** Including the 24-byte header that each page has in the log. */
const LOG_BYTES = LOG_PAGES * (4_096 + 24);

/**
 * How long a call waits for another program that has the file's lock, before it throws `index.overloaded`: ten times the duration of a
 * large bulk write. It blocks this process, with its health checks, and many calls wait in turn.
 */
const BUSY_MS = 500;

/** Opens a database file: `ro` and `rw` fail if it does not exist, and `rwc` creates it. Throws SQLite's own error. */
export function openDatabase(path: string, mode: 'ro' | 'rw' | 'rwc', busyMs = BUSY_MS): DatabaseSync {
  const url = pathToFileURL(path);
  url.searchParams.set('mode', mode);
  const database = new DatabaseSync(url, { timeout: busyMs });
  // A message is deleted from its queue once its effect is stored, so a commit must survive a power cut: FULL syncs the
  // log at every commit. One commit contains a whole bulk request, so there is about one sync for 200 events in a backlog.
  database.exec('PRAGMA synchronous = FULL');
  const cacheKib = mode === 'ro' ? READER_CACHE_KIB : WRITER_CACHE_KIB;
  database.exec(`PRAGMA cache_size = ${-cacheKib}; PRAGMA wal_autocheckpoint = ${LOG_PAGES}; PRAGMA journal_size_limit = ${LOG_BYTES}`);
  return database;
}

/** The most compiled statements to keep. Searches have many shapes, and compiling one again takes some 50 µs. */
const STATEMENTS_MAX = 500;

function createSession(database: DatabaseSync, fileId: string): SqliteSession {
  const statements = new LRUCache<string, StatementSync>({ max: STATEMENTS_MAX });

  function statement(sql: string): StatementSync {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const compiled = database.prepare(sql);
    statements.set(sql, compiled);
    return compiled;
  }

  return {
    fileId,
    statement,
    transaction(work) {
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
    },
  };
}

/** The primary result code while another process has the lock. */
const BUSY = 5;
/** The primary result code of a write for which the disk has no space. */
const FULL = 13;

/** The faults of SQLite's primary result codes (https://www.sqlite.org/rescode.html); any other is `internal.unexpected`. */
const faultCodes: ReadonlyMap<number, FaultCode> = new Map([
  [BUSY, 'index.overloaded'], // another process held the write lock for longer than the busy time-out
  [6, 'index.overloaded'], // LOCKED
  [8, 'index.blocked'], // READONLY
  [10, 'index.unreachable'], // IOERR
  [11, 'index.damaged'], // CORRUPT
  [FULL, 'index.blocked'],
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
  const code = faultCodes.get(primaryCode(errcode)) ?? 'internal.unexpected';
  return new FaultError(code, `${path}: ${message} (SQLite ${errcode})`, { cause: error });
}

function primaryCodeOf(error: unknown): number | undefined {
  const parsed = sqliteErrorSchema.safeParse(error);
  return parsed.success ? primaryCode(parsed.data.errcode) : undefined;
}

/** The lowest byte of an extended code is the primary code. */
function primaryCode(errcode: number): number {
  return errcode & 0xff;
}

function isFileError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}

// ── one process serves a file ──────────────────────────────────────────────────────────────────────────────────────

/** Keeps references, because the garbage collector closes an unreferenced database, which releases its lock. */
const databases = new Set<DatabaseSync>();

/**
 * Takes the lock of the one `tally serve` that may work on the index at `path`. Returns `held` if another process has it.
 * It is an exclusive lock on the SQLite file `<path>.lock`, which the operating system releases when the process ends, even
 * after a crash. Commands that only use the index do not take it. Throws `index.unreachable` if the file cannot be created.
 */
export function acquireServeLock(path: string): { release(): void } | 'held' {
  const lockPath = `${path}.lock`;
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true });
    database = openDatabase(lockPath, 'rwc', 0);
    database.exec('BEGIN EXCLUSIVE');
    const held = database;
    databases.add(held);
    return {
      release() {
        databases.delete(held);
        held.close();
      },
    };
  } catch (error) {
    database?.close();
    const fault = sqliteFault(error, lockPath);
    if (fault instanceof FaultError && fault.code === 'index.overloaded') return 'held';
    throw fault;
  }
}
