import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildPanel } from '../../src/panel/build.ts';
import { facts } from '../../src/panel/facts.ts';

/** What a browser loads first, compressed. */
const FIRST_PAGE_BYTES_MAX = 150_000;

describe('the built panel', () => {
  let files: ReadonlyMap<string, Uint8Array>;
  const text = (end: string): string => new TextDecoder().decode([...files].find(([name]) => name.endsWith(end))?.[1]);

  beforeAll(async () => {
    files = await buildPanel();
  });

  it('is a page, a script and a style sheet, which the page names relatively', () => {
    expect([...files.keys()].map((name) => name.replace(/-[A-Z0-9]{8}\./, '-HASH.')).toSorted()).toEqual([
      'index.html',
      'panel-HASH.js',
      'style-HASH.css',
    ]);
    const named = [...text('index.html').matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address);
    expect(named.toSorted()).toEqual(['data:,', ...files.keys()].filter((name) => name !== 'index.html').toSorted());
  });

  it('is small, and brings no schema library', () => {
    const bytes = [...files.values()].reduce((sum, file) => sum + gzipSync(file).length, 0);
    expect(bytes).toBeLessThan(FIRST_PAGE_BYTES_MAX);
    expect(text('.js')).not.toMatch(/ZodError|_zod/);
  });

  it('has the same names for the same sources, and keeps the licences of what is in it', async () => {
    expect([...(await buildPanel()).keys()]).toEqual([...files.keys()]);
    expect(text('.css')).toContain('Licensed under MIT');
    expect(text('.js')).toContain('Preact, Copyright');
  });
});

describe('the facts of the panel', () => {
  it('permit what the authorisation table permits', () => {
    const { local, user, admin } = facts.permitted;
    expect(local).toContain('POST /v1/buckets');
    expect(local).not.toContain('POST /v1/api-keys');
    expect(local).not.toContain('GET /v1/admin/users');
    expect(user).toEqual(expect.arrayContaining(['GET /v1/objects', 'POST /v1/api-keys']));
    expect(user).not.toContain('POST /v1/buckets/{bucket}/reindex');
    expect(admin).toEqual(expect.arrayContaining([...user, 'POST /v1/admin/grants', 'GET /readyz']));
  });
});
