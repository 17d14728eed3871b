/** The Python SDK as its users have it: its wheel, installed into a fresh environment, at a real registry with a real issuer. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSqliteStore } from '../../src/adapters/sqlite/store.ts';
import { refs, updateRecord } from '../../src/pipeline/records/stored.ts';
import { ROOT } from '../docs/pages.ts';
import { canRun, findProgram, runProgram } from '../docs/programs.ts';
import { openWalk, request, type Walk } from '../support/identity/walk.ts';

const SUITE = 'the Python SDK at a real registry';
const PYTHON = { name: 'python3', variable: 'TALLY_TEST_PYTHON' };
/** The first setuptools that builds wheels without another package. */
const CHECK =
  'from importlib.metadata import version; version("pip"); assert tuple(map(int, version("setuptools").split(".")[:2])) >= (70, 1)';
const BUILD = 'import setuptools.build_meta as backend, sys; backend.build_wheel(sys.argv[1])';
const WALK = fileURLToPath(new URL('../support/identity/walk.py', import.meta.url));
const BROWSER = fileURLToPath(new URL('../support/identity/driven-browser.ts', import.meta.url));

function canBuild(): boolean {
  if (!canRun(SUITE, [PYTHON])) return false;
  if (process.env['CI'] === 'true' || spawnSync(findProgram(PYTHON) ?? '', ['-c', CHECK]).status === 0) return true;
  console.warn(`\n NOT RUN: ${SUITE}: this Python has no pip, or no setuptools 70.1 or later\n`);
  return false;
}

describe.skipIf(!canBuild())('the wheel of the Python SDK', () => {
  let walk: Walk;
  let python: string;

  async function run(path: string, args: readonly string[], cwd: string): Promise<void> {
    const ended = await runProgram(path, args, { cwd });
    expect(ended.code, ended.stderr).toBe(0);
  }

  beforeAll(async () => {
    walk = await openWalk('sqlite');
    const [source, built, environment] = ['source', 'built', 'environment'].map((name) => join(walk.folder, name));
    if (source === undefined || built === undefined || environment === undefined) return;
    const filter = (path: string): boolean => !['__pycache__', 'build'].includes(basename(path)) && !path.endsWith('.egg-info');
    cpSync(join(ROOT, 'clients/python'), source, { recursive: true, filter });
    mkdirSync(built);
    const builder = findProgram(PYTHON) ?? '';
    await run(builder, ['-c', BUILD, built], source);
    await run(builder, ['-m', 'venv', '--without-pip', environment], walk.folder);
    python = join(environment, 'bin/python');
    const wheels = readdirSync(built).map((name) => join(built, name));
    await run(builder, ['-m', 'pip', '--python', python, 'install', '--quiet', '--no-index', '--no-deps', ...wheels], walk.folder);
  });

  afterAll(() => walk[Symbol.asyncDispose]());

  /** Keys that are refused, each in its way. */
  async function refusedKeys(): Promise<Readonly<Record<string, string>>> {
    const [alice, bob, root] = [await walk.logIn('alice'), await walk.logIn('bob'), await walk.logIn('root')];
    const send = async (method: string, path: string, token: string, body?: unknown): Promise<unknown> => {
      const { text } = await request(method, `${walk.url()}${path}`, { token, body });
      return text === '' ? undefined : JSON.parse(text);
    };
    const create = async (name: string, { access_token: token }: { readonly access_token: string }) => {
      const { key, secret } = (await send('POST', '/v1/api-keys', token, { name })) as {
        readonly key: { readonly id: string };
        readonly secret: string;
      };
      return { id: key.id, secret };
    };
    const expired = await create('walk-expired', alice);
    const store = createSqliteStore({ path: (walk.env['TALLY_INDEX_URL'] ?? '').replace('sqlite:', '') });
    await updateRecord(store.state, refs.apiKey(expired.id), (record) => record && { ...record, expiresAtMs: Date.now() - 1 });
    await store.close();
    const revoked = await create('walk-revoked', alice);
    await send('DELETE', `/v1/api-keys/${revoked.id}`, alice.access_token);
    const disabled = await create('walk-disabled', bob);
    const { items } = (await send('GET', '/v1/admin/users', root.access_token)) as {
      readonly items: readonly { readonly id: string; readonly email: string }[];
    };
    const id = items.find(({ email }) => email === 'bob@example.com')?.id ?? '';
    await send('POST', `/v1/admin/users/${id}/disable`, root.access_token);
    return { expired: expired.secret, revoked: revoked.secret, disabled: disabled.secret };
  }

  it('has every operation as specified, reads no environment variable, and keeps ten processes logged in', async () => {
    const embedded = { TALLY_ROLES: 'ingest,reindex,http', TALLY_EMBEDDED_DATA: join(walk.folder, 'data') };
    const registry = await walk.start(0, embedded, ['serve', '--embedded']);
    const refused = await refusedKeys();
    const home = join(walk.folder, 'home');
    const env = {
      PATH: process.env['PATH'],
      HOME: home,
      XDG_CONFIG_HOME: home,
      BROWSER: `${process.execPath} ${BROWSER} %s`,
      WALK_REGISTRY: walk.url(),
      WALK_DRIVER: walk.driverUrl,
      WALK_REFUSED: JSON.stringify(refused),
    };
    const ended = await runProgram(python, [WALK], { env, cwd: walk.folder });
    expect(ended.code, `${ended.stdout}${ended.stderr}`).toBe(0);
    expect(ended.stdout).toContain('shares_one_login_in_ten_processes');
    const log = JSON.stringify(registry.log);
    expect(log).toContain('ApiKeyCreate');
    expect(log).not.toMatch(/qk_[0-9A-Za-z]{49}|q[sb]_[0-9A-Za-z]{30}/);
  });
});
