/** The interactive login: by the browser, by a pasted code, and what is refused. */
import { existsSync, mkdirSync } from 'node:fs';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createClient, requireVersion } from '../../../src/cli/client/client.ts';
import { listen } from '../../../src/cli/client/login.ts';
import { RequestError } from '../../../src/base/request-error.ts';
import { never, unnamed, openClientWorld, type ClientWorld } from './world.ts';

let world: ClientWorld;

beforeEach(async () => {
  world = await openClientWorld();
});

describe('a login by the browser', () => {
  it('stores addresses and token for this user only, and shows neither code nor token', async () => {
    await world.logIn();
    const { registry, folder, file, shown, pages } = world;
    expect(world.store.readConfig()).toEqual({ catalog_url: registry.url, registry_url: registry.url });
    expect([world.modeOf(folder), world.modeOf(file)]).toEqual([0o700, 0o600]);
    expect(registry.places()).toEqual(['GET /config.json', 'GET /v1/session', 'POST /login/token', 'GET /v1/session']);
    expect(await pages[0]).toContain('You are logged in as alice@example.com');
    const text = [...shown, await pages[0]].join();
    expect(text).not.toContain(world.session().token);
    const { code } = JSON.parse(registry.asked[2]?.body ?? '') as { readonly code: string };
    expect(code).toMatch(/^\w{44}$/);
    expect(text).not.toContain(code);
    expect(registry.credentialsSent()).toEqual([`Bearer ${world.session().token}`]);
    // nor does any user of the machine see the secret parts of the address
    expect(shown.join()).not.toMatch(/state|challenge/);
    expect(shown[0]).toMatch(/http:\/\/127\.0\.0\.1:\d+\/start\/[0-9a-f]{32}$/);
  });

  it('ends if another user of the machine opens its address as well', async () => {
    const ports = {
      ...world.browser,
      openBrowser: async (address: string) => {
        // the other one is the first
        await fetch(address, { redirect: 'manual' });
        expect((await fetch(address, { redirect: 'manual' })).status).toBe(409);
        return true;
      },
    };
    await expect(world.client.login(world.registry.url, ports, never)).rejects.toThrow('was opened twice');
    expect(world.registry.places()).not.toContain('POST /login/token');
  });

  it('uses the catalog of the last login by default', async () => {
    await expect(world.client.login(undefined, world.browser, never)).rejects.toMatchObject({ code: 'address.invalid' });
    await world.logIn();
    await world.client.login(undefined, world.browser, never);
    expect(await world.registry.sessions()).toBe(2);
  });

  it('is refused at once where no one logs in, because no page would lead back', async () => {
    world.registry.canned.set('GET /v1/session', { body: { kind: 'local', role: 'admin' } });
    await expect(world.logIn()).rejects.toMatchObject({ code: 'login.failed', message: expect.stringContaining('has no login') });
    expect(world.pages).toEqual([]);
  });

  it('is refused if another server answers', async () => {
    world.changed['iss'] = 'https://evil.example.com';
    await expect(world.logIn()).rejects.toMatchObject({ code: 'login.failed', message: expect.stringContaining('a server other than') });
    expect(await world.pages[0]).toContain('The login failed');
    expect(world.registry.places()).not.toContain('POST /login/token');
    expect(existsSync(world.file)).toBe(false);
  });

  it('shows why the registry refuses it, in terminal and page, without its markup', async () => {
    world.registry.issuer.failWith(new RequestError('login.refused', '<b>not allowed</b>\u{1b}[2J'));
    await expect(world.logIn()).rejects.toThrow(String.raw`the login was refused: <b>not allowed</b>\u{1b}[2J`);
    expect(await world.pages[0]).toContain('&#60;b&#62;not allowed');
  });

  it.each([
    ['the registry does not say who it is', (opened: ClientWorld) => opened.registry.canned.set('GET /v1/session', { status: 500 })],
    ['the login cannot be stored', (opened: ClientWorld) => mkdirSync(opened.folder, { mode: 0o755 })],
  ])('Fix: leaves no session behind if %s', async (_, prevent) => {
    prevent(world);
    await expect(world.logIn()).rejects.toThrow();
    expect(world.registry.places().at(-1)).toBe('POST /login/logout');
    expect(await world.registry.sessions()).toBe(0);
    expect(await world.pages[0]).toContain('The login failed');
    expect(existsSync(world.file)).toBe(false);
  });
});

describe('a login by a pasted code', () => {
  it('is for machines without a browser, and follows when it cannot be opened', async () => {
    await world.client.login(world.registry.url, world.terminal, never);
    expect(world.registry.asked.find(({ path }) => path === '/login/token')?.body).not.toContain('redirect_uri');
    const before = world.shown.length;
    await world.client.login(world.registry.url, { ...world.terminal, openBrowser: async () => false }, never);
    expect(world.shown).toHaveLength(before + 2);
    expect(world.session().registry_url).toBe(world.registry.url);
  });

  it('is refused for a wrong code', async () => {
    const ports = { ...world.terminal, ask: async () => 'wrong' };
    await expect(world.client.login(world.registry.url, ports, never)).rejects.toThrow('the registry refused the code');
  });
});

describe('a catalog', () => {
  it('is refused below version 1.67, compared as numbers', () => {
    for (const version of ['1.67', '1.67.0', '1.100.0', '2.0.0', '1.67.0-rc.1']) expect(() => requireVersion(version, 'x')).not.toThrow();
    for (const version of ['1.66.9', '0.100.0', '1.6.70']) {
      expect(() => requireVersion(version, 'x')).toThrow(`x has version ${version}: version 1.67 or later is needed`);
    }
    expect(() => requireVersion('latest', 'x')).toThrow('x has version latest');
    expect(() => requireVersion(undefined, 'x')).toThrow('x has version none');
  });

  it('is asked for its version before a login begins', async () => {
    world.registry.configure({ version: '1.66.9' });
    await expect(world.logIn()).rejects.toMatchObject({ code: 'platform.too-old' });
    expect(world.registry.places()).toEqual(['GET /config.json']);
  });

  it.each(['http://example.com', 'http://127.0.0.1.example.com', 'http://10.0.0.1:8080'])('needs https: %s', async (address) => {
    await expect(world.client.login(address, world.browser, never)).rejects.toThrow('must use https');
  });

  it.each(['', 'example.com', 'ftp://a', 'https://a?b', 'https://a#b', String.raw`https://a\b`, 'https://'])(
    'is an address: %s',
    async (address) => {
      await expect(world.client.login(address, world.browser, never)).rejects.toMatchObject({ code: 'address.invalid' });
    },
  );

  it('is refused with a password, which is not repeated', async () => {
    const refused = world.client.login('https://ada:hunter2@example.com', world.browser, never);
    await expect(refused).rejects.toThrow(/^the address of the catalog must not contain a user or password$/);
  });

  it('is refused with a registry without https, and with a redirect', async () => {
    world.registry.configure({ registryUrl: 'http://registry.example.com' });
    await expect(world.logIn()).rejects.toThrow(/registryUrl .* must use https/);
    world.registry.canned.set('GET /config.json', { status: 302, headers: { location: '/elsewhere' } });
    await expect(world.logIn()).rejects.toMatchObject({ code: 'registry.unreachable' });
    expect(world.registry.places()).not.toContain('GET /elsewhere');
  });
});

it('the listener of a login ignores what does not belong to the login, and answers once', async () => {
  const listener = await listen('right');
  onTestFinished(() => listener.close());
  const base = new URL(listener.address);
  const status = async (path: string, headers = {}): Promise<number> => (await fetch(new URL(path, base), { headers })).status;
  expect(await status('/callback?state=wrong&code=a')).toBe(404);
  expect(await status('/callback?code=a')).toBe(404);
  expect(await status('/callback?state=right&state=right&code=a')).toBe(404);
  expect(await status('/other?state=right&code=a')).toBe(404);
  expect((await fetch(new URL('/callback?state=right&code=a', base), { method: 'POST' })).status).toBe(404);
  const first = fetch(new URL('/callback?state=right&code=a', base));
  const returned = await listener.returned;
  expect(await status('/callback?state=right&code=b')).toBe(409);
  await returned.show({ title: 'Done', text: '<&>' });
  expect(await (await first).text()).toContain('<h1>Done</h1><p>&#60;&#38;&#62;</p>');
  expect(returned.parameters.get('code')).toBe('a');
});

it('a user without a home is not logged in, and cannot store a login', async () => {
  const client = createClient({ folder: undefined });
  expect((await client.registryOf(unnamed)).token).toBeUndefined();
  await expect(client.login(world.registry.url, world.browser, never)).rejects.toThrow('this user has no home folder');
});
