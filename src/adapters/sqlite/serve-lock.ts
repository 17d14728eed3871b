import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { FaultError } from '../../domain/fault.ts';
import { openDatabase, sqliteFault } from './connection.ts';

export interface ServeLock {
  release(): void;
}

/** Kept here, since a database that nobody refers to is closed by the garbage collector, and its lock goes with it. */
const databases = new Set<DatabaseSync>();

/**
 * Takes the place of the one `tally serve` that may work on the index at `path`, or answers `held`. The operating system
 * keeps the lock (an exclusive lock on the SQLite file `<path>.lock`) and releases it when the process ends, however it
 * ends; commands that only use the index do not ask for it. Throws `index.unreachable` where the file cannot be made.
 */
export function acquireServeLock(path: string): ServeLock | 'held' {
  const lockPath = `${path}.lock`;
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true });
    database = openDatabase({ path: lockPath, mode: 'rwc', busyTimeoutMs: 0 });
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
