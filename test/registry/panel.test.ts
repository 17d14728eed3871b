import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RequestError } from '../../src/base/request-error.ts';
import { startPanelWorld, type PanelWorld } from '../support/worlds/panel.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const files = new Map([
  ['index.html', bytes('<!doctype html><script src="panel-A.js"></script>')],
  ['panel-A.js', bytes('export {};')],
  ['style-B.css', bytes('p {}')],
]);

describe('the files of the panel', () => {
  let world: PanelWorld;

  beforeAll(async () => {
    world = await startPanelWorld({ loadPanel: async () => files });
  });
  afterAll(() => world.close());

  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    fetch(`${world.url}${path}`, { headers, redirect: 'manual' });

  it('are a page under a policy that lets nothing but them run', async () => {
    const answer = await get('/panel/');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await answer.text()).toContain('panel-A.js');
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
  });

  it('are a script and a style sheet that browsers keep', async () => {
    const [script, style] = await Promise.all([get('/panel/panel-A.js'), get('/panel/style-B.css')]);
    expect([script.headers.get('content-type'), style.headers.get('content-type')]).toEqual([
      'text/javascript; charset=utf-8',
      'text/css; charset=utf-8',
    ]);
    for (const { headers } of [script, style]) expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  });

  it('are found without the slash and at the address of the control plane, behind any prefix of a proxy', async () => {
    for (const query of ['', '?page=search&bucket=photos', '?to=//example.com/?a=%0d%0a']) {
      for (const path of ['/panel', '/']) {
        const answer = await get(`${path}${query}`);
        expect([answer.status, answer.headers.get('location')]).toEqual([302, `panel/${query}`]);
      }
    }
  });

  it.each(['/panel/none.js', '/panel/..%2fpackage.json', '/panel/a/b', '/panel/%00'])('are not %s', async (path) => {
    expect([400, 404]).toContain((await get(path)).status);
  });

  it('that cannot be loaded are loaded by the next request', async () => {
    let loads = 0;
    const broken = await startPanelWorld({
      loadPanel: async () => {
        loads += 1;
        if (loads === 1) throw new RequestError('panel.not-built', 'run npm run panel');
        return files;
      },
    });
    const answers = [await fetch(`${broken.url}/panel/`), await fetch(`${broken.url}/panel/`)];
    expect(answers.map(({ status }) => status)).toEqual([503, 200]);
    expect(await answers[0]?.json()).toMatchObject({ code: 'panel.not-built', detail: 'run npm run panel' });
    await broken.close();
  });
});
