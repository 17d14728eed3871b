import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import { enrichmentContract } from '../../contracts/enrichment-contract.ts';

async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
  const store = createSqliteStore({ path: join(folder, 'index.sqlite') });
  return {
    store,
    async dispose() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

enrichmentContract('SQLite', { open, takesAnyLength: true });
