import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildPanel } from '../../src/panel/build.ts';
import { facts } from '../../src/panel/facts.ts';
import { startPanelWorld } from '../support/worlds/panel.ts';

/** What a browser loads first, as it is sent. */
const FIRST_PAGE_BYTES_MAX = 150_000;

/** An answer as a browser gets it. Fetch would decompress it. */
async function sent(url: string): Promise<{ readonly encoding: string | undefined; readonly bytes: Buffer }> {
  const [answer] = (await once(get(url, { headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } }), 'response')) as [IncomingMessage];
  return { encoding: answer.headers['content-encoding'], bytes: Buffer.concat((await answer.toArray()) as Buffer[]) };
}

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

  it('is sent compressed, all files of the first page together in at most 150 kB', async () => {
    const world = await startPanelWorld({ loadPanel: async () => files });
    const answers = await Promise.all([...files.keys()].map((name) => sent(`${world.url}/panel/${name === 'index.html' ? '' : name}`)));
    expect(answers.map(({ encoding }) => encoding)).toEqual(['gzip', 'gzip', 'gzip']);
    expect(answers.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThan(FIRST_PAGE_BYTES_MAX);
    await world.close();
  });

  it('brings no schema library', () => {
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
