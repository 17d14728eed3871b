import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildPanel } from '../../src/panel/build.ts';
import { facts } from '../../src/panel/facts.ts';
import { startPanelWorld } from '../support/worlds/panel.ts';

/** What a browser loads first, as it is sent. */
const FIRST_PAGE_BYTES_MAX = 90_000;

/** An answer as a browser gets it. Fetch would decompress it. */
async function sent(url: string): Promise<{ readonly encoding: string | undefined; readonly bytes: Buffer }> {
  const [answer] = (await once(get(url, { headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } }), 'response')) as [IncomingMessage];
  return { encoding: answer.headers['content-encoding'], bytes: Buffer.concat((await answer.toArray()) as Buffer[]) };
}

describe('the built panel', () => {
  let files: ReadonlyMap<string, Uint8Array>;
  const text = (name: string): string => new TextDecoder().decode(files.get(name));
  const script = (): string => [...files.keys()].find((name) => name.startsWith('panel-')) ?? '';

  beforeAll(async () => {
    files = await buildPanel();
  });

  /** The names of files that a text names, and that they name in turn. */
  function namedBy(texts: string, known: ReadonlySet<string> = new Set()): ReadonlySet<string> {
    const fresh = [...files.keys()].filter((name) => !known.has(name) && (texts.includes(`"${name}"`) || texts.includes(`"./${name}"`)));
    if (fresh.length === 0) return known;
    // what is imported by a call is loaded later
    const theirs = fresh.map((name) => text(name).replaceAll(/import\("[^"]*"\)/g, ''));
    return namedBy(theirs.join('\n'), new Set([...known, ...fresh]));
  }

  it('is a page, which names its script and its style sheet relatively, and scripts of other pages', () => {
    const named = [...text('index.html').matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address);
    expect(named.map((name) => name.replace(/-[A-Z0-9]{8}\./, '-HASH.'))).toEqual(
      expect.arrayContaining([expect.stringMatching(/^data:image/), 'style-HASH.css', 'panel-HASH.js']),
    );
    for (const name of named.filter((each) => !each.startsWith('data:'))) expect([...files.keys()]).toContain(name);
  });

  it.each(['overview', 'search'])('is sent compressed, all files of the first page together in at most 90 kB: %s', async (first) => {
    const world = await startPanelWorld({ loadPanel: async () => files });
    const page = [...files.keys()].find((name) => name.startsWith(`${first}-`)) ?? '';
    const names = ['index.html', ...namedBy(`${text('index.html')}"${page}"`)];
    expect(names.length).toBeGreaterThan(4);
    const answers = await Promise.all(names.map((name) => sent(`${world.url}/panel/${name === 'index.html' ? '' : name}`)));
    expect(new Set(answers.map(({ encoding }) => encoding))).toEqual(new Set(['gzip']));
    expect(answers.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThan(FIRST_PAGE_BYTES_MAX);
    await world.close();
  });

  it('brings no schema library', () => {
    for (const name of files.keys()) expect(text(name)).not.toMatch(/ZodError|_zod/);
  });

  it('has the same names for the same sources, and keeps the licences of what is in it', async () => {
    expect([...(await buildPanel()).keys()]).toEqual([...files.keys()]);
    expect(text(script())).toContain('Preact, Copyright');
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
