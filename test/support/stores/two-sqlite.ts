/** Two connections to one SQLite file, as two processes have them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';
import type { TwoStores } from '../identity/keys-contract.ts';

export async function openTwoSqlite(): Promise<TwoStores> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-two-'));
  const path = join(folder, 'index.sqlite');
  const [a, b] = [createSqliteStore(path), createSqliteStore(path)];
  await a.setup.prepare();
  await b.setup.prepare();
  return {
    a,
    b,
    async dispose() {
      await Promise.all([a.close(), b.close()]);
      await rm(folder, { recursive: true });
    },
  };
}
