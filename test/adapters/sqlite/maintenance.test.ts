import { mkdtemp, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { migrations, upgradeSchema } from '../../../src/adapters/sqlite/schema.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import type { ObjectDocument } from '../../../src/domain/documents/document.ts';

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

function documentOf(key: string): ObjectDocument {
  const past = '2026-01-01T00:00:00.000Z';
  const facts = { bucket: 'photos', key, clock: 1, settled: false, source: 'check', indexed_at: past } as const;
  return key === 'gone' ? { ...facts, deleted: true, deleted_at: past } : { ...facts, deleted: false, expires_at: past };
}

/** As a process of the first schema writes. */
function write(database: DatabaseSync, key: string): void {
  const document = documentOf(key);
  database
    .prepare('INSERT INTO objects (bucket, key, clock, deleted, extension, document) VALUES (?, ?, ?, ?, ?, ?)')
    .run('photos', key, document.clock, document.deleted ? 1 : 0, null, JSON.stringify(document));
}

describe('a file of the first schema', () => {
  it('is looked after once it is upgraded, with what a process of the version before still writes into it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
    folders.push(folder);
    const path = join(folder, 'index.sqlite');
    const old = new DatabaseSync(path);
    upgradeSchema(old, migrations.slice(0, 1));
    old.exec("INSERT INTO buckets (name) VALUES ('photos')");
    write(old, 'before');
    write(old, 'gone');

    const store = createSqliteStore({ path });
    await store.setup.prepare();
    write(old, 'after');
    old
      .prepare('UPDATE objects SET clock = 2, document = ? WHERE key = ?')
      .run(JSON.stringify({ ...documentOf('before'), settled: true }), 'before');
    old.close();
    const page = { after: '', limit: 10 };
    const keysOf = (found: readonly { readonly key: string }[]): string[] => found.map(({ key }) => key);
    expect(keysOf(await store.maintenance.unsettled('photos', { ...page, clockBelow: 9 }))).toEqual(['after', 'gone']);
    expect(keysOf(await store.maintenance.expiring('photos', { ...page, beforeMs: Date.now() }))).toEqual(['after', 'before']);
    expect(keysOf(await store.maintenance.tombstones('photos', { ...page, deletedBeforeMs: Date.now() }))).toEqual(['gone']);
    expect(await store.maintenance.purge('photos', [{ key: 'gone', clock: 1 }])).toBe(1);
    await store.close();
  });
});
