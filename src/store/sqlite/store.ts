import type { Store } from '../store.ts';
import { createSqliteAudit } from './audit.ts';
import { createSqliteConnection } from './connection.ts';
import { createPurge, createSqliteObjects } from './objects.ts';
import { createSqliteState, probeSqlite } from './state.ts';
import { createSqliteReader } from './reads.ts';

/**
 * Creates a store in the SQLite file at `path`, which holds everything (documents, words, state and the audit), for one process (see
 * acquireServeLock); a backup may read the file beside it. The file must not be removed or replaced while the process runs.
 * Only `setup.prepare()` creates the file. Writes, and reads by id, are synchronous internally and finish in the order in which they
 * are made; a signal can stop such a call only before it begins. A write that was answered is on disk, and every read that begins
 * afterwards sees it.
 */
export function createSqliteStore(path: string): Store {
  const connection = createSqliteConnection(path);
  const state = createSqliteState(connection);
  const reader = createSqliteReader(path);
  return {
    product: 'sqlite',
    objects: { ...createSqliteObjects(connection, (signal) => probeSqlite(connection, state, signal)), ...reader.objects },
    scan: {
      ...reader.scan,
      async refresh(_bucket, signal) {
        // nothing is cached, so this only checks that the store is usable
        connection.use(() => undefined, signal);
      },
    },
    state,
    audit: createSqliteAudit(connection),
    maintenance: { ...reader.maintenance, purge: createPurge(connection, reader) },
    usage: reader.usage,
    setup: {
      async prepare(signal) {
        connection.prepare(signal);
      },
    },
    async close() {
      // before the writer, because the last one to close empties the log
      await reader.close();
      connection.close();
    },
  };
}
