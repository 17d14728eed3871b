/** The Python SDK: its tests with the Pythons that it supports, the check of its types, and what is published of it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readCaller } from '../../src/cli/client/registry.ts';
import { never, unnamed, openClientWorld, type ClientWorld } from '../cli/client/world.ts';
import { ROOT, textOf } from '../docs/pages.ts';
import { canRun, findProgram, runProgram, type Program } from '../docs/programs.ts';
import { isLong } from '../support/breadth.ts';

const FOLDER = `${ROOT}clients/python`;
const PYTHON = { name: 'python3', variable: 'TALLY_TEST_PYTHON' };
const MYPY = { name: 'mypy', variable: 'TALLY_TEST_MYPY' };

/** Compiled once for each Python, and not into the working tree. */
const compiled = mkdtempSync(join(tmpdir(), 'tally-python-'));
afterAll(() => rmSync(compiled, { recursive: true }));

function environment(): Record<string, string | undefined> {
  return { ...process.env, PYTHONDONTWRITEBYTECODE: '', PYTHONPYCACHEPREFIX: compiled, PYTHONPATH: FOLDER };
}

/** Those that pyproject.toml names, as people install them beside each other. */
const SUPPORTED = [...textOf('clients/python/pyproject.toml').matchAll(/Python :: (3\.\d+)"/g)].map(([, version = '']) => ({
  name: `python${version}`,
  variable: `TALLY_TEST_PYTHON_${version.replace('.', '_')}`,
}));

/** pyenv puts a program on the PATH for every version, and most of them refuse to run. */
const runs = (program: Program): boolean => {
  const found = findProgram(program);
  return found !== undefined && spawnSync(found, ['--version']).status === 0;
};

/** The one that builds wheels; of the others, the oldest each day. */
const played = [PYTHON, ...(isLong ? SUPPORTED : SUPPORTED.slice(0, 1))];

describe.each(played)('the Python SDK with $name', (program) => {
  const isRun = canRun(`the tests of clients/python with ${program.name}`, [program], runs);
  it.skipIf(!isRun)('passes its tests', { concurrent: true }, async () => {
    // what is published is tested once: the others have no tool that builds it
    const env = { ...environment(), ...(program !== PYTHON && { CI: '' }) };
    const ended = await runProgram(findProgram(program) ?? '', ['-m', 'unittest', 'discover', '-t', '.', '-s', 'tests'], {
      cwd: FOLDER,
      env,
    });
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toMatch(/^Ran \d{2,} tests/m);
  });
});

describe.skipIf(!canRun('the shared credentials of clients/python', [PYTHON]))(
  'the files of the command line and of the Python SDK',
  () => {
    const python = (world: ClientWorld, code: string) =>
      runProgram(findProgram(PYTHON) ?? '', ['-c', `import tally_sdk as sdk\n${code}`], {
        env: { ...environment(), XDG_CONFIG_HOME: world.home },
      });

    it('are the same: each uses what the other stored', async () => {
      const world = await openClientWorld();
      await world.logIn();
      const used = await python(world, 'print(sdk.logged_in(), sdk.whoami().user.email)');
      expect(used).toMatchObject({ code: 0, stdout: `${world.registry.url} alice@example.com\n` });
      const registry = await world.client.registryOf(unnamed);
      expect((await readCaller(registry, never)).kind).toBe('session');
      expect((await python(world, 'sdk.logout()')).code).toBe(0);
      expect((await world.client.registryOf(unnamed)).token).toBeUndefined();
      expect(await world.registry.sessions()).toBe(0);

      const secret = world.registry.newKey();
      const stored = await python(world, `sdk.login_with_api_key('${secret}', registry_url='${world.registry.url}', persist=True)`);
      expect(stored.code, stored.stderr).toBe(0);
      const keyed = await world.client.registryOf(unnamed);
      expect((await readCaller(keyed, never)).kind).toBe('api_key');
    });
  },
);

describe.skipIf(!canRun('the check of the types of clients/python', [MYPY]))('the types of the Python SDK', () => {
  it('are complete and right, for Python 3.9', async () => {
    const ended = await runProgram(findProgram(MYPY) ?? '', ['--cache-dir', '/dev/null'], { cwd: FOLDER, env: process.env });
    expect(ended.stdout + ended.stderr).toMatch(/^Success: no issues found in \d+ source files/m);
  });
});
