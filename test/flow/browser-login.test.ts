/** People in Chromium, at a registry as a process with a real issuer: logins, their pages, and the panel of who has logged in. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page, Response } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { listen } from '../../src/client/login.ts';
import { canBrowse, openWindow, startChromium, type Window } from '../support/identity/chromium.ts';
import type { Person } from '../support/identity/provider.ts';
import { startBrowserWorld, type BrowserWorld } from '../support/worlds/browser.ts';
import { follow, openMenu, openPanel, overflowOf, railOf, settled } from '../support/worlds/panel.ts';

const canRunHere = canBrowse('people in Chromium');
const never = new AbortController().signal;
const ALICE: Person = { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] };
/** An address without a space, as an address must be. */
const HOSTILE_EMAIL = '"><img/src=x/onerror=alert(1)><script>alert(2)</script>@example.com';
const HOSTILE_MACHINE = '<img src=x onerror=alert(3)>"\'&amp;<script>alert(4)</script>';
const ADMIN = { sub: 's-root', email: 'root@example.com', email_verified: true, groups: ['tally-users', 'tally-admins'] };

/** All that a page keeps or has in its address: what is drawn and typed, where it was, what it read from where, what it stored. */
const KEPT = `JSON.stringify([
  document.documentElement.outerHTML, document.title, location.href, history.state, document.cookie, window.name,
  [...document.querySelectorAll('input, textarea')].map(({ value }) => value),
  performance.getEntries().map(({ name }) => name), { ...localStorage }, { ...sessionStorage },
])`;

let world: BrowserWorld;
let browser: Browser;
const windows: Window[] = [];

beforeAll(async () => {
  if (canRunHere) [world, browser] = await Promise.all([startBrowserWorld(), startChromium()]);
});
afterEach(async () => {
  for (const { context } of windows.splice(0)) await context.close();
});
afterAll(async () => {
  await browser?.close();
  await world?.close();
});

describe.skipIf(!canRunHere)('a login in Chromium', () => {
  let window: Window;

  beforeEach(async () => {
    world.provider.personIs(ALICE);
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

describe.skipIf(!canRunHere)('the pages of a login in Chromium', () => {
  /** The program that waits for the browser. */
  let program: Server;
  let redirectUri: string;

  beforeAll(async () => {
    program = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><p>the program has it'));
    await new Promise<void>((resolve) => void program.listen(0, '127.0.0.1', resolve));
    redirectUri = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`;
  });
  afterAll(async () => {
    program?.closeAllConnections();
    await new Promise((resolve) => void program?.close(resolve));
  });

  async function open(options: Parameters<typeof openWindow>[1], person: Person = ALICE): Promise<Window> {
    world.provider.personIs(person);
    const window = await openWindow(browser, options);
    windows.push(window);
    return window;
  }

  /** Opens the page on which the person decides. */
  const ask = (page: Page, machine = 'laptop', more: Readonly<Record<string, string>> = { state: 'mine', redirect_uri: redirectUri }) =>
    page.goto(world.authorize({ ...more, machine }));
  const paste = { no_browser: 'true' };

  it.each([
    ['a usual name', ALICE, 'laptop'],
    ['names without a place to break', { ...ALICE, email: `${'a'.repeat(200)}@example.com` }, 'm'.repeat(100)],
  ])('fit on a screen of 360 pixels, with %s', async (_, person, machine) => {
    const { page, complaints } = await open({ viewport: { width: 360, height: 640 }, isMobile: true, hasTouch: true }, person);
    await ask(page, machine, paste);
    expect(await overflowOf(page)).toBe(0);
    const allow = page.getByRole('button', { name: 'Allow' });
    for (const button of [allow, page.getByRole('button', { name: 'Refuse' })])
      // WCAG 2.5.5: a finger meets 44 pixels
      expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    await allow.tap();
    await page.getByLabel('Login code').waitFor();
    expect(await overflowOf(page)).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('that report a problem fit there too', async () => {
    const { page, complaints } = await open({ viewport: { width: 360, height: 640 }, isMobile: true });
    const answer = await page.goto(`${world.url}/login/consent`);
    expect(answer?.status()).toBe(400);
    expect(await page.getByRole('heading').innerText()).toBe('The login did not succeed');
    expect(await overflowOf(page)).toBe(0);
    // Chromium reports every answer of 400 itself
    expect(complaints.filter((text) => !text.includes('status of 400'))).toEqual([]);
  });

  it('of programs fit there too, and follow a dark screen', async () => {
    const { page, complaints } = await open({ viewport: { width: 360, height: 640 }, isMobile: true, colorScheme: 'dark' });
    const listener = await listen('mine');
    void listener.returned.then((returned) => returned.show({ title: 'The login failed', text: HOSTILE_MACHINE }));
    await page.goto(`${listener.address}?state=mine&code=x`);
    expect(await page.locator('p').innerText()).toContain(HOSTILE_MACHINE);
    expect(await overflowOf(page)).toBe(0);
    expect(await page.evaluate('matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.body).color')).toBe(
      'rgb(255, 255, 255)',
    );
    expect(complaints).toEqual([]);
    listener.close();
  });

  it('work with the keyboard alone', async () => {
    const { page, complaints } = await open({});
    const focused = (): Promise<string> => page.evaluate('document.activeElement.textContent.trim()');
    await ask(page);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Allow');
    const outline = 'getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth';
    expect(await page.evaluate(outline)).toBe('solid3px');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Refuse');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByText('the program has it').waitFor();
    expect(new URL(page.url()).searchParams.get('code')).toMatch(/^\w{44}$/);

    await ask(page, 'notebook', paste);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const code = page.getByLabel('Login code');
    await code.waitFor();
    await expect.poll(focused).toBe(await code.innerText());
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Copy the code');
    expect(complaints).toEqual([]);
  });

  it('tell a screen reader what is asked, and what happened', async () => {
    const { page } = await open({});
    await ask(page, 'notebook', paste);
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Log in to Tally on notebook?');
    expect(await page.evaluate('document.documentElement.lang')).toBe('en');
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByRole('status').getByText('The login was refused').waitFor();
  });

  it('show names that attack the page as text', async () => {
    const { page, complaints } = await open({}, { ...ALICE, email: HOSTILE_EMAIL });
    await ask(page, HOSTILE_MACHINE);
    expect(await page.locator('img, dd script, h1 script').count()).toBe(0);
    const [email, , machine] = await page.locator('dd').allInnerTexts();
    expect([email, machine]).toEqual([HOSTILE_EMAIL, HOSTILE_MACHINE]);
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('the program has it').waitFor();
    expect(complaints).toEqual([]);
  });

  it('show the name of a person who may not log in as text', async () => {
    const { page, complaints } = await open({}, { sub: 's-eve', email: HOSTILE_EMAIL, groups: [] });
    await page.goto(`${world.url}/login/authorize?return_to=/v1/session`);
    expect(await page.locator('main').innerText()).toContain(`${HOSTILE_EMAIL} (not verified) may not log in`);
    expect(await page.locator('img, script').count()).toBe(0);
    expect(complaints.filter((text) => !text.includes('status of 403'))).toEqual([]);
  });

  it('show characters that turn or hide others as what they are', async () => {
    const turned = '\u202Emoc.elpmaxe@ecila\u202C';
    const { page, complaints } = await open({}, { ...ALICE, sub: `s-${turned}`, email: turned });
    await ask(page);
    expect((await page.locator('dd').allInnerTexts())[0]).toContain('s-\\u{202e}moc.elpmaxe@ecila\\u{202c}@');
    const refused = await page.goto(world.authorize({ ...paste, machine: `a\u202Eb` }));
    expect(refused?.status()).toBe(400);
    expect(await page.locator('main').innerText()).toContain('printable characters');
    expect(complaints.filter((text) => !text.includes('status of 400'))).toEqual([]);
  });

  it('run no script that got into them, and load nothing', async () => {
    const { page, complaints } = await open({});
    await ask(page);
    await page.evaluate(
      `document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=x onerror=alert(5)><button onclick=alert(6)>Planted</button>')`,
    );
    await page.getByText('Planted').click();
    await expect.poll(() => complaints.filter((text) => text.includes('policy: ')).length).toBeGreaterThanOrEqual(3);
    expect(complaints.join()).toContain('policy: img-src');
    expect(complaints.join()).toContain('policy: script-src-attr');
    expect(complaints.join()).not.toContain('dialog');
  });

  it('without scripts say what is missing', async () => {
    const { page } = await open({ javaScriptEnabled: false });
    await ask(page);
    expect(await page.locator('noscript').innerText()).toContain('This page needs JavaScript.');
  });

  it.each(['light', 'dark'] as const)('can be read on a %s screen', async (colorScheme) => {
    const { page, complaints } = await open({ colorScheme });
    await ask(page);
    const back = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    expect(luminanceOf(back) > 0.5).toBe(colorScheme === 'light');
    // WCAG 1.4.3
    expect(contrastOf(await page.evaluate('getComputedStyle(document.body).color'), back)).toBeGreaterThanOrEqual(4.5);
    const [text, own] = await page.evaluate<[string, string]>(
      '(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.querySelector("button.main")))',
    );
    expect(contrastOf(text, own)).toBeGreaterThanOrEqual(4.5);
    // WCAG 1.4.11: what can be pressed is seen to be there
    const border = await page.evaluate<string>('getComputedStyle(document.querySelector("button:not(.main)")).borderTopColor');
    expect(contrastOf(border, back)).toBeGreaterThanOrEqual(3);
    expect(complaints).toEqual([]);
  });
});

describe.skipIf(!canRunHere)('the panel in Chromium, of a person who logs in', () => {
  /** Logs the person in from the panel. Collects the answers that refuse something. */
  async function logIn(person: Person, query = ''): Promise<Window & { readonly refused: readonly string[] }> {
    world.provider.personIs(person);
    const window = await openWindow(browser);
    windows.push(window);
    const refused: string[] = [];
    window.context.on('response', (response: Response) => {
      if (response.status() === 403) refused.push(response.url());
    });
    await openPanel(window.page, world.url, query);
    await window.page.getByRole('button', { name: 'Log in' }).click();
    await window.page.locator('.rail').waitFor();
    await settled(window.page);
    return { ...window, refused };
  }

  async function visitAll(page: Page): Promise<void> {
    for (const name of await railOf(page)) {
      await follow(page, name);
      await settled(page);
      expect(await page.getByRole('alert').count(), name).toBe(0);
    }
  }

  /** Chromium reports the answer 401 before the login itself. */
  const complaintsOf = ({ complaints }: Window): readonly string[] => complaints.filter((text) => !text.includes('status of 401'));

  it('Fix: marks an address for which the issuer does not vouch', async () => {
    const { email_verified: _, ...unverified } = ALICE;
    const { page } = await logIn(unverified);
    expect(await page.locator('.person').innerText()).toMatch(/^alice@example\.com\s+\(not verified\) \(user\)$/);
    const { page: other } = await logIn({ ...ALICE, sub: 's-verified' });
    expect(await other.locator('.person').innerText()).toMatch(/^alice@example\.com\s+\(user\)$/);
  });

  it('shows a user what users may do, and returns to the page that was asked for', async () => {
    const window = await logIn(ALICE, '?page=keys');
    const { page, refused } = window;
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('API keys');
    expect(new URL(page.url()).search).toBe('?page=keys');
    expect(await railOf(page)).toEqual(['buckets', 'search', 'usage', 'keys']);
    await visitAll(page);
    await page.goto(`${world.url}/panel/?page=bucket&bucket=demo`);
    await page.getByRole('link', { name: 'Search in this bucket' }).waitFor();
    for (const name of ['Re-Index and Repair', 'Save…', 'Disconnect…', 'Show the plan', 'Show the script', 'Pause notification…', 'Clean…'])
      expect(await page.getByRole('button', { name }).count(), name).toBe(0);
    expect(await page.getByRole('link', { name: 'Ask the doctor' }).count()).toBe(0);
    for (const hidden of ['overview', 'doctor', 'jobs', 'gaps', 'letters', 'access', 'all-keys', 'users', 'audit', 'health']) {
      await openPanel(page, world.url, `?page=${hidden}`);
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Not permitted');
    }
    expect(refused).toEqual([]);
    expect(complaintsOf(window)).toEqual([]);
  });

  it('shows an administrator every page', async () => {
    const window = await logIn(ADMIN);
    expect(await railOf(window.page)).toEqual([
      'overview',
      'buckets',
      'search',
      'usage',
      'jobs',
      'letters',
      'keys',
      'access',
      'all-keys',
      'users',
      'audit',
      'health',
    ]);
    await visitAll(window.page);
    expect(window.refused).toEqual([]);
    expect(complaintsOf(window)).toEqual([]);
  });

  it('shows the secret of a new key once, and the audit names who created it', async () => {
    const window = await logIn(ADMIN, '?page=keys');
    const { page } = window;
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('nightly <b>export</b>');
    await page.getByLabel('Days until it ends').fill('7');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const secret = await page.locator('.secret').innerText();
    expect(secret).toMatch(/^qk_[0-9A-Za-z]{49}$/);
    const answer = await fetch(`${world.url}/v1/session`, { headers: { authorization: `Bearer ${secret}` } });
    expect(answer.status).toBe(200);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByText('nightly <b>export</b>').first().waitFor();
    expect(await page.evaluate<string>(KEPT)).not.toContain(secret);
    // neither do Back and Forward show it again
    await follow(page, 'buckets');
    await page.goBack();
    await page.getByRole('button', { name: 'Create key' }).waitFor();
    await settled(page);
    expect(await page.evaluate<string>(KEPT)).not.toContain(secret);
    await page.reload();
    // it ends within 14 days
    await page.getByText('Your API key').waitFor();
    await page.getByRole('button', { name: 'Revoke nightly' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('You have no key.').waitFor();
    await follow(page, 'audit');
    await page.getByRole('rowheader', { name: 'ApiKeyRevoke' }).first().waitFor();
    expect(await page.getByRole('region', { name: 'Acts of the audit' }).innerText()).toContain('root@example.com');
    expect(complaintsOf(window)).toEqual([]);
  });

  it('keeps what was typed when the session ends, and continues after a login in another tab', async () => {
    const { page, context } = await logIn(ALICE, '?page=keys');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('typed before the end');
    const cookies = await context.cookies();
    await context.clearCookies();
    const create = page.getByRole('dialog', { name: 'Create' });
    await create.getByRole('button', { name: 'Create' }).click();
    const ended = page.getByRole('dialog', { name: 'Your session has ended' });
    await ended
      .getByRole('link', { name: 'Log in' })
      .or(ended.getByRole('button', { name: 'Log in' }))
      .waitFor();
    await page.keyboard.press('Escape');
    await ended.getByRole('button', { name: 'Continue' }).click();
    // nobody has logged in yet
    await ended.waitFor();
    await context.addCookies(cookies);
    await ended.getByRole('button', { name: 'Continue' }).click();
    await ended.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Name').inputValue()).toBe('typed before the end');
    await create.getByRole('button', { name: 'Create' }).click();
    await page.getByText(/qk_[0-9A-Za-z]{49}/).waitFor();
  });

  it('logs out', async () => {
    const { page } = await logIn(ALICE);
    await openMenu(page);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('button', { name: 'Log in' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Log in' }).waitFor();
  });
});

/** The relative luminance of `rgb(r, g, b)`, as WCAG defines it. */
function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = [...color.matchAll(/\d+/g)].map(([part]) => {
    const share = Number(part) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrastOf(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((left, right) => left - right);
  return (lighter + 0.05) / (darker + 0.05);
}
