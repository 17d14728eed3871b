/** The package as npm packs, publishes and installs it, in a folder with nothing else: it has no dependencies, and contains the built panel. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { shellBlocksOf, textOf } from '../docs/pages.ts';
import { until } from '../support/servers/aws.ts';
import { startEmbeddedRegistry } from '../support/servers/embedded-registry.ts';

const run = promisify(execFile);
const ROOT = new URL('../../', import.meta.url).pathname;

describe('the package', () => {
  let folder: string;
  let main: string;
  let app: string;
  let archive: string;
  let printed: string;
  // with the Node of this project, and without settings of Tally
  const outer = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TALLY_')));
  const env = { ...outer, PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}` };

  beforeAll(async () => {
    // a name that an address would encode
    folder = await mkdtemp(join(tmpdir(), 'tally package '));
    ({ stdout: printed } = await run('npm', ['run', '--silent', 'package', '--', join(folder, 'package')], { cwd: ROOT, env }));
    app = join(folder, 'app');
    await mkdir(app);
    await writeFile(join(app, 'package.json'), '{"private":true}');
    archive = join(folder, `tally-index-tally-${packageJson.version}.tgz`);
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', archive], { cwd: app, env });
    main = join(app, 'node_modules', '.bin', 'tally');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('Fix: says where it is, and how it is installed', () => {
    const shown = `./${relative(ROOT, archive)}`;
    expect(printed).toBe(`The package is ${shown}. Install it where Node 24.5 or later runs:\n\n  npm install --global "${shown}"\n\n`);
  });

  it('brings all that it needs, with the notices of others, in less than 12 MB', async () => {
    const { stdout } = await run('du', ['-sk', join(app, 'node_modules')]);
    expect(Number.parseInt(stdout, 10)).toBeLessThan(12_000);
    expect(await readFile(join(app, 'node_modules/@tally-index/tally/THIRD-PARTY-NOTICES.txt'), 'utf8')).toMatch(/^zod [^]*MIT License/m);
  });

  it('can be published: npm corrects nothing in its manifest, and shows it to everyone', async () => {
    // nothing is sent in a dry run, and no registry is asked
    const options = ['--dry-run', '--json', '--registry', 'http://127.0.0.1:1', '--fetch-retries', '0', '--no-provenance'];
    const { stdout, stderr } = await run('npm', ['publish', join(folder, 'package'), ...options], { env });
    expect(stdout).toContain(`"id": "${packageJson.name}@${packageJson.version}"`);
    const warnings = stderr.split('\n').filter((line) => line.startsWith('npm warn') && !line.includes('requires you to be logged in'));
    expect(warnings).toEqual([]);
    const manifest: unknown = JSON.parse(await readFile(join(folder, 'package', 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ publishConfig: { access: 'public' }, repository: packageJson.repository });
    expect(manifest).not.toHaveProperty('private');
    expect(manifest).not.toHaveProperty('dependencies');
  });

  it('runs where npm puts it, without a warning, and by npx with its full name', async () => {
    expect(await run(process.execPath, [main, '--version'])).toEqual({ stdout: `${packageJson.version}\n`, stderr: '' });
    expect((await run('npx', [packageJson.name, '--version'], { cwd: app, env })).stdout).toBe(`${packageJson.version}\n`);
  });

  it('keeps what it compiled beside itself, where no other user can put something that it would run', async () => {
    // vitest names another place to the processes that it starts
    const { NODE_COMPILE_CACHE: _, ...own } = outer;
    await run(process.execPath, [main, '--version'], { env: own });
    const kept = join(app, 'node_modules/@tally-index/tally/dist/node_modules/.cache/tally');
    expect(await readdir(kept)).toHaveLength(1);
  });

  it('is installed for the machine as docs/start/local.md says, and is typed by its name then', async () => {
    const [commands = []] = shellBlocksOf(textOf('docs/start/local.md'));
    expect(commands).toEqual([
      'npm ci && npm run package',
      'npm install --global ./dist/tally-index-tally-*.tgz',
      'tally serve --embedded',
    ]);
    const prefix = join(folder, 'machine');
    await run('npm', ['install', '--global', '--prefix', prefix, '--offline', '--no-audit', '--no-fund', archive], { env });
    const { stdout } = await run(join(prefix, 'bin/tally'), ['search', '--help'], { env });
    expect(stdout).toContain('Usage: tally search');
  });

  it('indexes an object, its command finds it, and it serves the panel that was built when it was packed', async () => {
    const registry = await startEmbeddedRegistry(main);
    onTestFinished(() => registry.close());
    await registry.put('demo', ['docs/annual report.pdf']);
    const search = ['search', 'annual', '--json', '--registry', registry.controlUrl];
    let found = '';
    await until('the object is found', async () => {
      found = (await run(process.execPath, [main, ...search], { env })).stdout;
      return found.includes('docs/annual report.pdf');
    });
    expect(JSON.parse(found)).toMatchObject({ items: [{ bucket: 'demo', key: 'docs/annual report.pdf' }] });

    const served = async (path: string): Promise<string> => {
      const answer = await fetch(`${registry.controlUrl}/panel/${path}`);
      expect(answer.status, path).toBe(200);
      return answer.text();
    };
    const page = await served('');
    expect(page).toBe(await readFile(join(app, 'node_modules/@tally-index/tally/dist/panel/index.html'), 'utf8'));
    const files = await Promise.all([...page.matchAll(/(?:src|href)="((?:panel|style)-[^"]+)"/g)].map(([, file = '']) => served(file)));
    // what bundled packages demand
    expect(files.join('\n')).toMatch(/Copyright.*MIT/is);
  });
});
