/** A SQLite index's file: the serving process's lock, and who else may read it. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { FaultError } from '../../base/fault.ts';
import { openDatabase, sqliteFault } from './connection.ts';

export interface ServeLock {
  release(): void;
}

/** Keeps references, because the garbage collector closes an unreferenced database, which releases its lock. */
const databases = new Set<DatabaseSync>();

/**
 * Takes the lock of the one `tally serve` that may work on the index at `path`. Returns `held` if another process has it.
 * It is an exclusive lock on the SQLite file `<path>.lock`, which the operating system releases when the process ends, even
 * after a crash. Commands that only use the index do not take it. Throws `index.unreachable` if the file cannot be created.
 */
export function acquireServeLock(path: string): ServeLock | 'held' {
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
