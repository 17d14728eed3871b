import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';

/** A SQLite store on a file of its own, not prepared yet. */
export async function openSqliteStore() {
  const folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
  const path = join(folder, 'index.sqlite');
  const store = createSqliteStore(path);
  return {
    store,
    path,
    dispose: async (): Promise<void> => {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}
