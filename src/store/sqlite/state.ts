/** The state store in SQLite: Tally's own records, each with a version, and their lists by kind and by due time. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { StateEntry, StateStore } from '../store.ts';
import { stateKinds } from '../../records/state-kind.ts';
import type { SqliteConnection, SqliteSession } from './connection.ts';
import { probeState } from '../stored.ts';

const rowSchema = z.object({ id: z.string(), kind: z.enum(stateKinds), record: z.string(), version: z.string() });
const versionSchema = rowSchema.pick({ version: true });
const idSchema = rowSchema.pick({ id: true });
const countSchema = z.object({ count: z.number() });

/** The state in SQLite. A version is a random id of one write, so no later entry with the same id has it. Each compare-and-swap is one statement, which is atomic across processes. */
export function createSqliteState(connection: SqliteConnection): StateStore {
  return {
    async get(id, signal) {
      return connection.use(({ statement }) => {
        const row = statement('SELECT id, kind, record, version FROM state WHERE id = ?').get(id);
        return row === undefined ? undefined : entryOf(row);
      }, signal);
    },

    async version(id, signal) {
      return connection.use(({ statement }) => {
        const row = statement('SELECT version FROM state WHERE id = ?').get(id);
        return row === undefined ? undefined : versionSchema.parse(row).version;
      }, signal);
    },

    async put({ id, kind, record }, expected, signal) {
      const json = JSON.stringify(record);
      const version = randomUUID();
      return connection.use(({ statement }) => {
        const { changes } =
          expected === null
            ? statement('INSERT INTO state (id, kind, record, version) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING').run(
                id,
                kind,
                json,
                version,
              )
            : statement('UPDATE state SET kind = ?, record = ?, version = ? WHERE id = ? AND version = ?').run(
                kind,
                json,
                version,
                id,
                expected,
              );
        return changes === 1 ? { id, kind, record, version } : 'conflict';
      }, signal);
    },

    async remove(id, expected, signal) {
      return connection.use(({ statement, transaction }) => {
        const stored = transaction(() => {
          statement('DELETE FROM state WHERE id = ? AND version = ?').run(id, expected);
          return statement('SELECT 1 FROM state WHERE id = ?').get(id);
        });
        return stored === undefined ? 'removed' : 'conflict';
      }, signal);
    },

    async list(kind, { after, limit }, signal) {
      return connection.use(
        ({ statement }) =>
          // no id is empty, so every id is after the empty one
          statement('SELECT id, kind, record, version FROM state WHERE kind = ? AND id > ? ORDER BY id LIMIT ?')
            .all(kind, after ?? '', limit)
            .map(entryOf),
        signal,
      );
    },

    async due({ nowMs, aheadMaxMs, limit }, signal) {
      return connection.use(({ statement }) => {
        return statement(
          `SELECT id FROM state
           WHERE kind = 'job' AND due_at_ms IS NOT NULL AND (due_at_ms <= ? OR due_at_ms > ?) ORDER BY random() LIMIT ?`,
        )
          .all(nowMs, nowMs + aheadMaxMs, limit)
          .map((row) => idSchema.parse(row).id);
      }, signal);
    },

    async count(kind, signal) {
      return connection.use(
        ({ statement }) => countSchema.parse(statement('SELECT count(*) AS count FROM state WHERE kind = ?').get(kind)).count,
        signal,
      );
    },
  };
}

function entryOf(row: unknown): StateEntry {
  const { id, kind, record, version } = rowSchema.parse(row);
  return { id, kind, record: JSON.parse(record), version };
}

// ── the probe ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** More than a usual request needs: 1,000 documents with their words and indexes take about 2 MiB. */
const ROOM_BYTES = 4 * 1024 * 1024;
const ROOM_ID = 'lock:probe-room';

/**
 * Throws the fault that prevents records from being written now. A record can be swapped on a full disk, because it reuses its former
 * version's space. So once a write has met a full disk, the probe first takes the space of a usual request and gives it back.
 */
export async function probeSqlite(connection: SqliteConnection, state: StateStore, signal?: AbortSignal): Promise<void> {
  if (connection.wasFull) {
    connection.use(takeRoom, signal);
    connection.foundRoom();
  }
  await probeState(state, signal);
}

function takeRoom({ statement, transaction }: SqliteSession): void {
  // valid JSON, should anything read it
  const record = JSON.stringify({}).padEnd(ROOM_BYTES);
  transaction(() => statement("INSERT OR REPLACE INTO state (id, kind, record, version) VALUES (?, 'lock', ?, '')").run(ROOM_ID, record));
  try {
    // the log may have had the space; the checkpoint shows whether the file has it too
    statement('PRAGMA wal_checkpoint(PASSIVE)').get();
  } finally {
    transaction(() => statement('DELETE FROM state WHERE id = ?').run(ROOM_ID));
  }
}
