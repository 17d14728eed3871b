import type { Store } from '../../pipeline/ports/store.ts';
import { createSqliteAudit } from './audit.ts';
import { createSqliteConnection } from './connection.ts';
import { createSqliteMaintenance } from './maintenance.ts';
import { createSqliteObjects } from './objects.ts';
import { createSqliteProbe } from './probe.ts';
import { createSqliteReaders } from './readers.ts';
import { createSqliteScan } from './scan.ts';
import { createSqliteState } from './state.ts';

export interface SqliteStoreOptions {
  /** The file that contains everything: documents, words, state and the audit. */
  readonly path: string;
  /** How long a call waits for another process's transaction before it throws `index.overloaded`. This process is blocked meanwhile. Default 5 s, a hundred times the duration of a large bulk write. */
  readonly busyTimeoutMs?: number;
}

/**
 * Creates a store in one SQLite file, for one process (see acquireServeLock); a backup may read the file beside it.
 * Only `setup.prepare()` creates the file. Calls other than searches and sums are synchronous
 * internally and finish in the order in which they are made; a signal can stop such a call only before it begins. A write that
 * was answered is on disk.
 */
export function createSqliteStore({ path, busyTimeoutMs = 5_000 }: SqliteStoreOptions): Store {
  const connection = createSqliteConnection(path, busyTimeoutMs);
  const state = createSqliteState(connection);
  const readers = createSqliteReaders({ path, busyTimeoutMs, fileId: () => connection.use((session) => session.fileId) });
  return {
    product: 'sqlite',
    objects: { ...createSqliteObjects(connection, createSqliteProbe(connection, state)), ...readers.objects },
    scan: createSqliteScan(connection),
    state,
    audit: createSqliteAudit(connection),
    maintenance: createSqliteMaintenance(connection),
    usage: readers.usage,
    setup: {
      async prepare(signal) {
        connection.prepare(signal);
      },
    },
    async close() {
      // before the writer, which empties the log when it closes last
      await readers.close();
      connection.close();
    },
  };
}
