/** The package as npm packs and installs it, in a folder with nothing else: it has no dependencies, and contains the built panel. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writePackage } from '../../config/tooling/package.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { startEmbeddedRegistry } from '../support/servers/embedded-registry.ts';

const run = promisify(execFile);
const ROOT = new URL('../../', import.meta.url).pathname;

describe('the package', () => {
  let folder: string;
  let main: string;
  let app: string;

  beforeAll(async () => {
    // a name that an address would encode
    folder = await mkdtemp(join(tmpdir(), 'tally package '));
    await writePackage(join(folder, 'package'));
    app = join(folder, 'app');
    await mkdir(app);
    await writeFile(join(app, 'package.json'), '{"private":true}');
    const env = { ...process.env, PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}` };
    await run('npm', ['pack', join(folder, 'package'), '--pack-destination', folder], { env });
    const archive = join(folder, `tally-index-tally-${packageJson.version}.tgz`);
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', archive], { cwd: app, env });
    main = join(app, 'node_modules', '.bin', 'tally');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('brings all that it needs, with the notices of others, in less than 12 MB', async () => {
    const { stdout } = await run('du', ['-sk', join(app, 'node_modules')]);
    expect(Number.parseInt(stdout, 10)).toBeLessThan(12_000);
    expect(await readFile(join(app, 'node_modules/@tally-index/tally/THIRD-PARTY-NOTICES.txt'), 'utf8')).toMatch(/^zod [^]*MIT License/m);
  });

  it('runs where npm puts it, without a warning', async () => {
    expect(await run(process.execPath, [main, '--version'])).toEqual({ stdout: `${packageJson.version}\n`, stderr: '' });
  });

  it('serves the panel that was built when it was packed', async () => {
    const registry = await startEmbeddedRegistry(main);
    const answer = await fetch(`${registry.controlUrl}/panel/`);
    const page = await answer.text();
    expect(answer.status, page).toBe(200);
    expect(page).toBe(await readFile(join(app, 'node_modules/@tally-index/tally/dist/panel/index.html'), 'utf8'));
    for (const [, file = ''] of page.matchAll(/(?:src|href)="((?:panel|style)-[^"]+)"/g))
      expect((await fetch(`${registry.controlUrl}/panel/${file}`)).status, file).toBe(200);
    await registry.close();
  });
});
