import type { ObjectIndex } from '../object-index.ts';
import { createStateProbe } from '../probe.ts';
import type { StateStore } from '../state.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';

/** More than a usual request takes: 1,000 documents with their words and indexes are about 2 MiB. */
const ROOM_BYTES = 4 * 1024 * 1024;
const ROOM_ID = 'lock:probe-room';

/**
 * Creates the probe of a SQLite store. A record can be swapped on a full disk, because it reuses the space of its former
 * version. So after a write for which the disk had no room, the probe first takes the room of a usual request and returns it.
 */
export function createSqliteProbe(connection: SqliteConnection, state: StateStore): ObjectIndex['probe'] {
  const swap = createStateProbe(state);
  return async function probe(signal) {
    if (connection.wasFull) {
      connection.use(takeRoom, signal);
      connection.foundRoom();
    }
    await swap(signal);
  };
}

function takeRoom({ statement, transaction }: SqliteSession): void {
  // valid JSON, should anything read it
  const record = JSON.stringify({}).padEnd(ROOM_BYTES);
  transaction(() => statement("INSERT OR REPLACE INTO state (id, kind, record, version) VALUES (?, 'lock', ?, '')").run(ROOM_ID, record));
  try {
    // the log may have had the room; the checkpoint shows whether the file has it too
    statement('PRAGMA wal_checkpoint(PASSIVE)').get();
  } finally {
    transaction(() => statement('DELETE FROM state WHERE id = ?').run(ROOM_ID));
  }
}
