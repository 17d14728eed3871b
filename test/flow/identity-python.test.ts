/** The Python SDK as its users have it: its wheel, installed into a fresh environment, at a real registry with a real issuer. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import { updateRecord } from '../../src/store/stored.ts';
import { ROOT } from '../docs/pages.ts';
import { canRun, findProgram, runProgram } from '../docs/programs.ts';
import { noteNotRun } from '../support/not-run.ts';
import { people, startDriver, startRegistryWorld, type PersonName, type RegistryWorld } from '../support/identity/registry-world.ts';
import { get } from '../support/identity/browser.ts';
import { openIndex, type TestIndex } from '../support/worlds/flow.ts';
import { refs } from '../../src/identity/refs.ts';

const SUITE = 'the Python SDK at a real registry';
const PYTHON = { name: 'python3', variable: 'TALLY_TEST_PYTHON' };
/** The first setuptools that builds wheels without another package. */
const CHECK =
  'from importlib.metadata import version; version("pip"); assert tuple(map(int, version("setuptools").split(".")[:2])) >= (70, 1)';
const BUILD = 'import setuptools.build_meta as backend, sys; backend.build_wheel(sys.argv[1])';
const WALK = fileURLToPath(new URL('../support/identity/walk.py', import.meta.url));

function canBuild(): boolean {
  if (!canRun(SUITE, [PYTHON])) return false;
  if (spawnSync(findProgram(PYTHON) ?? '', ['-c', CHECK]).status === 0) return true;
  noteNotRun(SUITE, 'pip and setuptools 70.1 or later (in the Python of TALLY_TEST_PYTHON)');
  return false;
}

describe.skipIf(!canBuild())('the wheel of the Python SDK', () => {
  let world: RegistryWorld;
  let index: TestIndex;
  let python: string;

  async function run(path: string, args: readonly string[], cwd: string): Promise<void> {
    const ended = await runProgram(path, args, { cwd });
    expect(ended.code, ended.stderr).toBe(0);
  }

  beforeAll(async () => {
    index = await openIndex('sqlite');
    world = await startRegistryWorld(index.env);
    const [source, built, environment] = ['source', 'built', 'environment'].map((name) => join(world.folder, name));
    if (source === undefined || built === undefined || environment === undefined) return;
    const filter = (path: string): boolean => !['__pycache__', 'build'].includes(basename(path)) && !path.endsWith('.egg-info');
    cpSync(join(ROOT, 'clients/python'), source, { recursive: true, filter });
    mkdirSync(built);
    const builder = findProgram(PYTHON) ?? '';
    await run(builder, ['-c', BUILD, built], source);
    await run(builder, ['-m', 'venv', '--without-pip', environment], world.folder);
    python = join(environment, 'bin/python');
    const wheels = readdirSync(built).map((name) => join(built, name));
    await run(builder, ['-m', 'pip', '--python', python, 'install', '--quiet', '--no-index', '--no-deps', ...wheels], world.folder);
  });

  afterAll(async () => {
    await world?.close();
    await index?.close();
  });

  /** Keys that are refused, each in its way. */
  async function refusedKeys(): Promise<Readonly<Record<string, string>>> {
    const [alice, bob, root] = [await world.logIn('alice'), await world.logIn('bob'), await world.logIn('root')];
    const expired = await world.createKey(alice.token, 'walk-expired');
    const store = createSqliteStore((index.env['TALLY_INDEX_URL'] ?? '').replace('sqlite:', ''));
    await updateRecord(store.state, refs.apiKey(expired.id), (record) => record && { ...record, expiresAtMs: Date.now() - 1 });
    await store.close();
    const revoked = await world.createKey(alice.token, 'walk-revoked');
    await world.send('DELETE', `/v1/api-keys/${revoked.id}`, { token: alice.token });
    const disabled = await world.createKey(bob.token, 'walk-disabled');
    const { text } = await world.send('GET', '/v1/admin/users', { token: root.token });
    const { items } = JSON.parse(text) as { readonly items: readonly { readonly id: string; readonly email: string }[] };
    const id = items.find(({ email }) => email === 'bob@example.com')?.id ?? '';
    await world.send('PATCH', `/v1/admin/users/${id}`, { token: root.token, body: { disabled: true } });
    return { expired: expired.secret, revoked: revoked.secret, disabled: disabled.secret };
  }

  it('has every operation as specified, and reads no environment variable', async () => {
    const refused = await refusedKeys();
    const home = join(world.folder, 'home');
    const driver = await startDriver(async (address, path) => {
      const start = await get(address);
      const { redirect, code } = await world.decide(personOf(path), start.location ?? '');
      return redirect === undefined ? (code ?? '') : (await fetch(redirect)).text();
    });
    const env = {
      PATH: process.env['PATH'],
      HOME: home,
      XDG_CONFIG_HOME: home,
      ...driver.env,
      WALK_REGISTRY: world.url,
      WALK_REFUSED: JSON.stringify(refused),
    };
    const ended = await runProgram(python, [WALK], { env, cwd: world.folder });
    await driver.close();
    expect(ended.code, `${ended.stdout}${ended.stderr}`).toBe(0);
    expect(ended.stdout).toContain('administers');
    const log = JSON.stringify(world.daemon.log);
    expect(log).toContain('ApiKeyCreate');
    expect(log).not.toMatch(/qk_[0-9A-Za-z]{49}|q[sb]_[0-9A-Za-z]{30}/);
  });
});

/** The person whom the path of an address of the driver names. */
function personOf(path: string): PersonName {
  const name = Object.keys(people).find((each) => path === `/${each}`);
  if (name === undefined) throw new Error(`no person is ${path}`);
  return name as PersonName;
}
