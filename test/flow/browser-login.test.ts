/** Logins in Chromium: a real issuer, a registry as a process, and the programs that wait for the browser. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { canBrowse, openWindow, startChromium, type Window } from '../support/identity/chromium.ts';
import { startBrowserWorld, type BrowserWorld } from '../support/worlds/browser.ts';

const never = new AbortController().signal;

describe.skipIf(!canBrowse('logins in Chromium'))('a login in Chromium', () => {
  let world: BrowserWorld;
  let browser: Browser;
  let window: Window;

  beforeAll(async () => {
    [world, browser] = await Promise.all([startBrowserWorld(), startChromium()]);
  });
  afterAll(async () => {
    await browser?.close();
    await world?.close();
  });
  beforeEach(async () => {
    world.provider.personIs({ sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] });
    window = await openWindow(browser);
  });
  afterEach(() => window.context.close());

  /** Opens the address, passes through the issuer, and answers on the consent page. */
  async function answer(address: string, button: 'Allow' | 'Refuse'): Promise<void> {
    await window.page.goto(address);
    await window.page.getByRole('button', { name: button }).click();
  }

  const seen = (text: string) => window.page.getByText(text, { exact: false }).first().waitFor();

  it('leads from the command through issuer and consent page back to the command, which acts for the person then', async () => {
    const login = await world.tally(['login', world.url], async (address) => {
      await window.page.goto(address);
      expect(await window.page.title()).toBe('Log in · Tally');
      expect(await window.page.locator('dl').innerText()).toContain('alice@example.com');
      await window.page.getByRole('button', { name: 'Allow' }).click();
      await seen('You are logged in');
      expect(new URL(window.page.url()).pathname).toBe('/callback');
    });
    expect(login, login.stderr).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`You are logged in at ${world.url} as alice@example.com.`),
    });
    const whoami = await world.tally(['whoami', '--json']);
    expect(JSON.parse(whoami.stdout)).toMatchObject({ kind: 'session', role: 'user', user: { email: 'alice@example.com' } });
    expect((await world.tally(['bucket', 'list', '--json'])).code).toBe(0);
    const reindex = await world.tally(['reindex', 'demo']);
    expect([reindex.code, reindex.stderr]).toEqual([1, expect.stringContaining('authorization.denied')]);
    expect((await world.tally(['logout'])).code).toBe(0);
    expect((await world.audited()).map(({ eventname }) => eventname)).toEqual(expect.arrayContaining(['Login', 'Logout']));
    expect(window.complaints).toEqual([]);
    // nothing of a login stays in the browser
    expect((await window.context.cookies(world.url)).filter(({ name }) => name.startsWith('tally'))).toEqual([]);
  });

  it('that the person refuses ends the command with the reason', async () => {
    const login = await world.tally(['login', world.url], async (address) => {
      await answer(address, 'Refuse');
      await seen('The login failed');
    });
    expect([login.code, login.stderr]).toEqual([1, expect.stringContaining('the login was refused in the browser')]);
    expect((await world.tally(['whoami'])).stderr).toContain('not logged in');
    expect(window.complaints).toEqual([]);
  });

  it('of a person whom no rule admits ends in the command and in its page', async () => {
    world.provider.personIs({ sub: 's-eve', email: 'eve@example.com', email_verified: true, groups: [] });
    const login = await world.tally(['login', world.url], async (address) => {
      await window.page.goto(address);
      await seen('eve@example.com may not log in');
    });
    expect([login.code, login.stderr]).toEqual([1, expect.stringContaining('eve@example.com may not log in')]);
    expect(window.complaints).toEqual([]);
  });

  it('without a browser on the machine shows a code, which the person copies into the program', async () => {
    await window.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: world.url });
    const client = createClient({ folder: join(world.home, 'elsewhere') });
    let address = '';
    await client.login(
      world.url,
      {
        machine: 'notebook',
        nowMs: () => Date.now(),
        say: (text) => {
          address = /https?:\S+/.exec(text)?.[0] ?? '';
        },
        ask: async () => {
          await answer(address, 'Allow');
          await seen('It is valid for one minute');
          expect(await window.page.evaluate('document.activeElement.tagName')).toBe('OUTPUT');
          const shown = await window.page.getByLabel('Login code').innerText();
          await window.page.getByRole('button', { name: 'Copy the code' }).click();
          await seen('The code was copied.');
          expect(await window.page.evaluate('navigator.clipboard.readText()')).toBe(shown);
          return `${shown}\n`;
        },
      },
      never,
    );
    const registry = client.registryOf({});
    expect(registry && (await client.whoami(registry, never))).toMatchObject({ kind: 'session', user: { email: 'alice@example.com' } });
    expect(window.complaints).toEqual([]);
  });

  it('of a person who refuses to show a code says so', async () => {
    await answer(world.authorize({ no_browser: 'true', machine: 'notebook' }), 'Refuse');
    await seen('The login was refused. You can close this page.');
    expect(await window.page.getByRole('button').count()).toBe(0);
    expect(window.complaints).toEqual([]);
  });

  it('that another tab has answered says so, and changes nothing', async () => {
    const second = await window.context.newPage();
    await window.page.goto(world.authorize({ no_browser: 'true' }));
    await second.goto(`${world.url}/login/consent`);
    await second.getByRole('button', { name: 'Refuse' }).click();
    await second.getByText('The login was refused').waitFor();
    await window.page.getByRole('button', { name: 'Allow' }).click();
    await seen('this login has ended');
    expect(await window.page.getByLabel('Login code').isVisible()).toBe(false);
  });

  describe('of a page of the registry', () => {
    /** A page that the registry might have, and that may send requests. */
    async function ownPage(): Promise<void> {
      await window.page.route(`${world.url}/page-of-the-test`, (route) =>
        route.fulfill({ contentType: 'text/html', body: '<!doctype html>' }),
      );
      await window.page.goto(`${world.url}/page-of-the-test`);
    }

    const send = (path: string, init: object): Promise<number> =>
      window.page.evaluate(`fetch(${JSON.stringify(path)}, ${JSON.stringify(init)}).then(({ status }) => status)`);

    it('sets a cookie that scripts cannot see, and the session ends with the logout', async () => {
      await window.page.goto(`${world.url}/login/authorize?return_to=/v1/session`);
      expect(window.page.url()).toBe(`${world.url}/v1/session`);
      expect(await window.page.locator('body').innerText()).toContain('alice@example.com');
      const cookies = (await window.context.cookies(world.url)).filter(({ name }) => name.startsWith('tally'));
      expect(cookies).toMatchObject([{ name: `tally-${new URL(world.url).port}`, httpOnly: true, sameSite: 'Lax', path: '/' }]);
      expect(window.complaints).toEqual([]);
      await ownPage();
      expect(await window.page.evaluate('document.cookie')).not.toContain('tally');
      expect(await send('/login/logout', { method: 'POST', headers: { 'x-tally-csrf': '1' } })).toBe(204);
      expect(await send('/v1/session', {})).toBe(401);
    });

    it('permits changes to pages of the registry, and to no page of another port', async () => {
      await window.page.goto(`${world.url}/login/authorize?return_to=/v1/session`);
      await ownPage();
      const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"by cookie"}' };
      expect(await send('/v1/api-keys', json)).toBe(403);
      expect(await send('/v1/api-keys', { ...json, headers: { ...json.headers, 'x-tally-csrf': '1' } })).toBe(201);

      // to cookies, another port is the same site: only the registry's checks are between this page and a change
      const foreign = createServer((request, response) => void request.toArray().then(() => response.end('<!doctype html>')));
      await new Promise<void>((resolve) => void foreign.listen(0, '127.0.0.1', resolve));
      const { port } = foreign.address() as AddressInfo;
      await window.page.goto(`http://127.0.0.1:${port}/`);
      const key = (init: string): Promise<string> =>
        window.page.evaluate(
          `fetch('${world.url}/v1/api-keys', { method: 'POST', credentials: 'include', ${init} }).then(() => 'answered', () => 'failed')`,
        );
      expect(await key(`headers: { 'content-type': 'application/json', 'x-tally-csrf': '1' }, body: '{"name":"forged"}'`)).toBe('failed');
      expect(await key(`mode: 'no-cors', body: '{"name":"forged"}'`)).toBe('failed');
      const form = `const form = document.createElement('form'); form.method = 'post'; form.enctype = 'text/plain';
        form.action = '${world.url}/v1/api-keys'; form.innerHTML = '<input name=\\'{"name":"forged","x":"\\' value=\\'"}\\'>';
        document.body.append(form); form.submit();`;
      await Promise.all([window.page.waitForURL(`${world.url}/**`), window.page.evaluate(form)]);
      expect(await window.page.locator('body').innerText()).toMatch(/request\.(forbidden-origin|unsupported-media-type)/);
      await new Promise((resolve) => {
        foreign.close(resolve);
        foreign.closeAllConnections();
      });
      await ownPage();
      const names = await window.page.evaluate(
        `fetch('/v1/api-keys').then((a) => a.json()).then(({ items }) => items.map(({ name }) => name))`,
      );
      expect(names).toEqual(['by cookie']);
    });
  });
});
