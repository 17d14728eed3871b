import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import { readerMatrix } from '../contracts/reader-matrix.ts';
import { isLong } from '../support/breadth.ts';

readerMatrix(
  'SQLite',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tally-readers-'));
    const store = createSqliteStore(join(folder, 'index.sqlite'));
    return {
      store,
      async dispose() {
        await store.close();
        await rm(folder, { recursive: true });
      },
    };
  },
  isLong ? 20 : 1,
);
