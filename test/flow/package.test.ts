/** The package as npm packs and installs it: it starts from below node_modules, and contains the built panel. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { startEmbeddedRegistry } from '../support/servers/embedded-registry.ts';

const run = promisify(execFile);
const ROOT = new URL('../../', import.meta.url).pathname;
/** What the package is made of. */
const SOURCES = [...packageJson.files.filter((name) => !name.startsWith('dist')), 'package.json', 'tsconfig.json', 'README.md', 'LICENSE'];

describe('the package', () => {
  let folder: string;
  let main: string;

  beforeAll(async () => {
    // a name that an address would encode
    folder = await mkdtemp(join(tmpdir(), 'tally package '));
    // the build is written beside the sources, where servers of other tests would find it
    const copy = join(folder, 'copy');
    for (const name of SOURCES) await cp(join(ROOT, name), join(copy, name), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const options = { cwd: copy, env: { ...process.env, PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}` } };
    await run('npm', ['pack', '--pack-destination', folder], options);

    const modules = join(folder, 'app', 'node_modules');
    await mkdir(modules, { recursive: true });
    await run('tar', ['-xzf', join(folder, `tally-${packageJson.version}.tgz`), '-C', modules]);
    await rename(join(modules, 'package'), join(modules, 'tally'));
    for (const name of Object.keys(packageJson.dependencies)) {
      await mkdir(dirname(join(modules, name)), { recursive: true });
      await symlink(join(ROOT, 'node_modules', name), join(modules, name));
    }
    main = join(modules, 'tally', packageJson.bin.tally);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('runs where npm puts it, without a warning', async () => {
    expect(await run(process.execPath, [main, '--version'])).toEqual({ stdout: `${packageJson.version}\n`, stderr: '' });
  });

  it('serves the panel that was built when it was packed', async () => {
    const registry = await startEmbeddedRegistry(main);
    const answer = await fetch(`${registry.controlUrl}/panel/`);
    const page = await answer.text();
    expect(answer.status, page).toBe(200);
    expect(page).toBe(await readFile(join(dirname(main), '..', 'dist', 'panel', 'index.html'), 'utf8'));
    for (const [, file = ''] of page.matchAll(/(?:src|href)="((?:panel|style)-[^"]+)"/g))
      expect((await fetch(`${registry.controlUrl}/panel/${file}`)).status, file).toBe(200);
    await registry.close();
  });
});
