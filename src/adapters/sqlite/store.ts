import type { Store } from '../../pipeline/ports/store.ts';
import { createSqliteConnection } from './connection.ts';
import { createSqliteMaintenance } from './maintenance.ts';
import { createSqliteObjects } from './objects.ts';
import { createSqliteScan } from './scan.ts';
import { createSqliteState } from './state.ts';

export interface SqliteStoreOptions {
  /** The file that holds everything: documents, words and state. */
  readonly path: string;
  /** How long a call waits for another process's transaction before it is `index.overloaded`; this process stands still meanwhile. Default 5 s: a hundred times a large bulk's. */
  readonly busyTimeoutMs?: number;
}

/**
 * A store in one SQLite file, for one machine. Several processes may share the file; one of them should serve (see
 * acquireServeLock). The file is made by `setup.prepare()` and by nothing else. Calls are synchronous underneath and
 * finish in the order in which they are made; a signal can stop one only before it begins. What is answered is on the disk.
 */
export function createSqliteStore({ path, busyTimeoutMs = 5_000 }: SqliteStoreOptions): Store {
  const connection = createSqliteConnection(path, busyTimeoutMs);
  return {
    product: 'sqlite',
    objects: createSqliteObjects(connection),
    scan: createSqliteScan(connection),
    state: createSqliteState(connection),
    maintenance: createSqliteMaintenance(connection),
    setup: {
      async prepare(signal) {
        connection.prepare(signal);
      },
    },
    async close() {
      connection.close();
    },
  };
}
