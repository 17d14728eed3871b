import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import { keysContract } from '../support/identity/keys-contract.ts';

// two connections to one file, as two processes have them
keysContract('one SQLite file', async () => {
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
});
