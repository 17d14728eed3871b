/** The credential of commands, as processes. `tally login` and `tally logout`: flow/browser-login.test.ts. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ROOT } from '../docs/pages.ts';
import { createFakeControl } from '../support/fakes/control.ts';
import { listenControlPlane } from '../support/servers/control-plane.ts';
import { runProgram, type ProgramEnd } from '../docs/programs.ts';
import { openClientWorld, type ClientWorld } from './world.ts';

const SECRET = 'qk_0123456789';
const FAILED = 'Authentication failed. Check your credentials or API key.';

let world: ClientWorld;

beforeEach(async () => {
  world = await openClientWorld();
});

afterEach(() => world.close());

async function tally(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ProgramEnd> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const given = { PATH, NODE_COMPILE_CACHE, HOME: world.home, XDG_CONFIG_HOME: world.home, ...env };
  return runProgram(process.execPath, [join(ROOT, 'src/tally.js'), ...args], { env: given, cwd: world.home });
}

describe('the command line', () => {
  it('sends an API key to the registry that the command names, and shows it nowhere', async () => {
    const { registry } = world;
    registry.keys.add(SECRET);
    const env = { TALLY_API_KEY: ` ${SECRET} ` };
    const whoami = await tally(['whoami', '--registry', registry.url], env);
    expect([whoami.code, whoami.stdout]).toEqual([
      0,
      expect.stringMatching(/photos\/2026\/[^]*api_key[^]*nightly \(qk_0123…6789\)[^]*2027-02-20/),
    ]);
    const shown = await tally(['whoami', '--registry', registry.url, '--json'], env);
    expect(JSON.parse(shown.stdout)).toMatchObject({ key: { fingerprint: 'qk_0123…6789', last_used_at: null } });
    expect((await tally(['search', 'cat', '--registry', registry.url], env)).code).toBe(0);
    expect(new Set(registry.credentialsSent())).toEqual(new Set([`Bearer ${SECRET}`]));
    const config = await tally(['config'], env);
    expect(config.stdout).toContain('TALLY_API_KEY=***\n');
    expect(config.stdout).not.toContain(SECRET);
  });

  it('reports a wrong key, a text that is not a key, and an address without https', async () => {
    const wrong = await tally(['search', 'cat', '--registry', world.registry.url], { TALLY_API_KEY: SECRET });
    expect(wrong).toMatchObject({
      code: 1,
      stderr: 'tally: Authentication failed. Check your credentials or API key. (authentication.failed)\n',
    });
    world.registry.received.length = 0;
    const none = await tally(['search', 'cat', '--registry', world.registry.url], { TALLY_API_KEY: 'abc' });
    expect([none.code, none.stderr]).toEqual([78, "tally: TALLY_API_KEY: API key must start with 'qk_' prefix\n"]);
    // the registry that is named is the catalog of a login that names none
    const named = await tally(['login', '--registry', 'http://127.0.0.1:1']);
    expect([named.code, named.stderr]).toEqual([69, expect.stringContaining('http://127.0.0.1:1')]);
    const unnamed = await tally(['login']);
    expect([unnamed.code, unnamed.stderr]).toEqual([64, expect.stringContaining('name the catalog')]);
    const plain = await tally(['search', 'cat', '--registry', 'http://registry.example.com'], { TALLY_API_KEY: SECRET });
    expect([plain.code, plain.stderr]).toEqual([64, expect.stringContaining('must use https')]);
    expect(world.registry.received).toEqual([]);
  });

  it('acts on the store of this machine where there is one, whatever the login', async () => {
    await world.logIn();
    world.registry.received.length = 0;
    const url = `sqlite:${join(world.home, 'index.sqlite')}`;
    await tally(['bucket', 'list', '--json'], { TALLY_INDEX_URL: url });
    mkdirSync(join(world.home, 'data'));
    writeFileSync(join(world.home, 'data', 'index.sqlite'), '');
    await tally(['bucket', 'list', '--json']);
    expect(world.registry.received).toEqual([]);
    // who the registry knows is not who those commands act for
    expect((await tally(['whoami'])).stderr).toContain(`With --registry ${world.registry.url} they use this registry.`);
    expect((await tally(['whoami', '--registry', world.registry.url])).stderr).toBe('');
  });

  it('Fix: never drops an API key in favour of a login or of the store of this machine', async () => {
    await world.logIn();
    const store = { TALLY_INDEX_URL: `sqlite:${join(world.home, 'index.sqlite')}` };
    const key = { TALLY_API_KEY: 'qk_bogus' };
    for (const [command, env] of [
      ['whoami', key],
      ['buckets', key],
      ['buckets', { ...key, ...store }],
    ] as const) {
      const ended = await tally(command === 'buckets' ? ['bucket', 'list'] : [command], env);
      expect([ended.code, ended.stderr]).toEqual([64, expect.stringContaining('name it with --registry or TALLY_REGISTRY_URL')]);
    }
  });

  it('Fix: a registry without an issuer refuses a key', async () => {
    const plane = await listenControlPlane({ operations: createFakeControl().checked });
    try {
      for (const command of [['whoami'], ['bucket', 'list'], ['search', 'cat'], ['keys', 'list']]) {
        const ended = await tally([...command, '--registry', plane.url], { TALLY_API_KEY: 'qk_bogus' });
        expect([ended.code, ended.stderr]).toEqual([1, `tally: ${FAILED} (authentication.failed)\n`]);
      }
      expect((await tally(['whoami', '--registry', plane.url])).code).toBe(0);
    } finally {
      await plane.close();
    }
  });

  it('never reads SERVICE_ variables', async () => {
    world.registry.keys.add(SECRET);
    const env = { SERVICE_API_KEY: SECRET, SERVICE_REGISTRY_URL: world.registry.url };
    expect((await tally(['whoami'], env)).code).toBe(1);
    const { url } = world.registry;
    const search = await tally(['search', 'cat', '--registry', url], env);
    expect([search.code, search.stderr]).toEqual([
      1,
      `tally: not logged in at ${url}: run \`tally login ${url}\`, or set TALLY_API_KEY_FILE\n`,
    ]);
    expect(world.registry.credentialsSent()).toEqual([]);
  });
});
