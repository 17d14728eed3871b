/** The stored login: several processes, logout, and files that cannot be trusted. */
import { chmodSync, chownSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { createClient } from '../../../src/cli/client/client.ts';
import { keyToken, readCaller } from '../../../src/cli/client/registry.ts';
import type { SessionAnswer } from '../../../src/registry/contract/login.ts';
import { never, unnamed, openClientWorld, type ClientWorld } from './world.ts';
import { noteNotRun } from '../../support/not-run.ts';

const FAILED = 'Authentication failed. Check your credentials or API key.';

let world: ClientWorld;

beforeEach(async () => {
  world = await openClientWorld();
  await world.logIn();
  world.registry.asked.length = 0;
});

/** As a new process does it. */
async function whoami(): Promise<SessionAnswer> {
  return readCaller(await createClient({ folder: world.folder }).registryOf(unnamed), never);
}

it('a login that is refused ends with the one message, and stays stored', async () => {
  const before = world.textOf(world.file);
  await world.registry.endSessions();
  await expect(whoami()).rejects.toMatchObject({ code: 'authentication.failed', message: FAILED });
  expect(world.textOf(world.file)).toBe(before);
});

describe('a credential', () => {
  it('is sent to its registry only', async () => {
    const other = await openClientWorld();
    const registry = await world.client.registryOf({ ...unnamed, registryUrl: other.registry.url });
    expect(registry).toEqual({ url: other.registry.url });
    const { url } = other.registry;
    await expect(readCaller({ url }, never)).rejects.toThrow(`not logged in at ${url}: run \`tally login ${url}\``);
    expect(other.registry.credentialsSent()).toEqual([]);
  });

  it('is not used once the catalog has another registry', async () => {
    world.store.writeConfig({ catalog_url: world.registry.url, registry_url: 'https://other.example.com' });
    expect((await world.client.registryOf(unnamed)).token).toBeUndefined();
  });

  it('that is an API key precedes the login, and is sent by https only', async () => {
    const secret = world.registry.newKey();
    const registry = await world.client.registryOf({ ...unnamed, registryUrl: world.registry.url, apiKey: ` ${secret}\n` });
    expect((await readCaller(registry, never)).kind).toBe('api_key');
    await expect(world.client.registryOf({ ...unnamed, registryUrl: 'http://registry.example.com', apiKey: secret })).rejects.toThrow(
      'must use https',
    );
    expect(() => keyToken('qk_a\nb')).toThrow(FAILED);
    // so does one that the Python SDK stored
    const addresses = { registry_url: world.registry.url, catalog_url: world.registry.url };
    world.store.writeCredentials({ session: world.session(), api_key: { ...addresses, secret } });
    expect((await whoami()).kind).toBe('api_key');
  });
});

describe('a logout', () => {
  it('ends the session and removes everything', async () => {
    writeFileSync(join(world.folder, '.credentials.json.1.left'), 'half');
    expect(await world.client.logout(never)).toBeUndefined();
    expect(await world.registry.sessions()).toBe(0);
    expect(readdirSync(world.folder)).toEqual(['config.json']);
  });

  it.each([
    ['that has ended already', 0o600, () => world.registry.endSessions()],
    ['that has ended already, and that others can read', 0o644, () => world.registry.endSessions()],
    ['that others can read', 0o644, async () => undefined],
  ])('ends and removes without a complaint a session %s', async (_, mode, before) => {
    chmodSync(world.file, mode);
    await before();
    expect(await world.client.logout(never)).toBeUndefined();
    expect(existsSync(world.file)).toBe(false);
    expect(await world.registry.sessions()).toBe(0);
  });

  it('removes everything here even if the registry cannot be reached', async () => {
    await world.registry.close();
    expect(await world.client.logout(never)).toContain('cannot be reached');
    expect(existsSync(world.file)).toBe(false);
  });

  it('says that the session may still live if another server answers', async () => {
    world.registry.canned.set('POST /login/logout', { body: '<html>Sign in</html>' });
    expect(await world.client.logout(never)).toContain('the registry answered 200');
    expect(existsSync(world.file)).toBe(false);
  });

  it('removes credentials that others can replace without sending them', async () => {
    chmodSync(world.file, 0o666);
    expect(await world.client.logout(never)).toContain('is open to other users');
    expect(existsSync(world.file)).toBe(false);
    expect(world.registry.asked).toEqual([]);
  });
});

const isRoot = process.geteuid?.() === 0;
if (!isRoot) noteNotRun('stored credentials of another user', 'root');

describe('stored credentials', () => {
  async function refused(pattern: RegExp): Promise<void> {
    await expect(world.client.registryOf(unnamed)).rejects.toThrow(pattern);
    await expect(whoami()).rejects.toMatchObject({ code: 'credentials.unusable' });
    expect(world.registry.credentialsSent()).toEqual([]);
  }

  it.each([0o640, 0o604, 0o620, 0o660])('with the mode %o are refused', async (mode) => {
    chmodSync(world.file, mode);
    await refused(/credentials\.json is open to other users: .* chmod 600 /);
  });

  it('in a folder that others can read are refused', async () => {
    chmodSync(world.folder, 0o755);
    await refused(/tally is open to other users: .* chmod 700 /);
  });

  it.skipIf(!isRoot)('of another user are refused', async () => {
    chownSync(world.file, 12_345, 0);
    await refused(/belongs to another user/);
  });

  it.each(['', '{', '[]', '{"format":1,"session":{}}', '{"format":1,"api_key":{"secret":5}}'])(
    'that are damaged are refused: %s',
    async (text) => {
      writeFileSync(world.file, text);
      await refused(/is damaged/);
    },
  );

  it('of a later format, and for an address without https are refused', async () => {
    const right = world.textOf(world.file);
    writeFileSync(world.file, '{"format":2}');
    await refused(/another version of Tally/);
    writeFileSync(world.file, right.replaceAll(world.registry.url, 'http://example.com'));
    await refused(/is damaged/);
  });
});
