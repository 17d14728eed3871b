/** What makes a release: the workflows, the notes, the version, and the promise that the API breaks no client. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import packageJson from '../../package.json' with { type: 'json' };
import { openApiDocument } from '../../config/tooling/openapi.ts';
import { releaseNotes } from '../../config/tooling/release-notes.ts';
import { ROOT, textOf } from '../docs/pages.ts';
import { canRun, findProgram, runProgram } from '../docs/programs.ts';

const ACTIONLINT = { name: 'actionlint', variable: 'TALLY_TEST_ACTIONLINT' };
const ZIZMOR = { name: 'zizmor', variable: 'TALLY_TEST_ZIZMOR' };
const OASDIFF = { name: 'oasdiff', variable: 'TALLY_TEST_OASDIFF' };

const FOLDER = '.github/workflows';
const workflows = readdirSync(join(ROOT, FOLDER)).map((name) => `${FOLDER}/${name}`);

describe('the workflows', () => {
  it.skipIf(!canRun('the check of the workflows', [ACTIONLINT]))('are right', async () => {
    const { code, stdout } = await runProgram(findProgram(ACTIONLINT) ?? '', ['-no-color', ...workflows], { cwd: ROOT });
    expect(stdout).toBe('');
    expect(code).toBe(0);
  });

  it.skipIf(!canRun('the check of the security of the workflows', [ZIZMOR]))('are secure', async () => {
    const ended = await runProgram(findProgram(ZIZMOR) ?? '', ['--offline', '--no-progress', ...workflows], { cwd: ROOT });
    expect(ended.code, ended.stdout + ended.stderr).toBe(0);
  });

  it('use only actions of GitHub itself, each by its commit', () => {
    const uses = workflows.flatMap((path) => [...textOf(path).matchAll(/\buses: (\S+.*)$/gm)].map(([, used = '']) => used));
    const others = uses.filter((used) => !used.startsWith('./'));
    expect(others.filter((used) => !/^actions\/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(used))).toEqual([]);
  });
});

describe('the notes of a release', () => {
  const changelog =
    '# Changelog\n\n## 1.2.0 — unreleased\n\nNew.\n\n## 1.1.0 — 2026-12-01\n\nOld.\n\n- **One.** Two.\n\n## 1.0.0 — 2026-11-01\n\nFirst.\n';

  it('are the section of its version, once that has a date', () => {
    expect(releaseNotes(changelog, '1.1.0')).toBe('Old.\n\n- **One.** Two.\n');
    expect(() => releaseNotes(changelog, '1.2.0')).toThrow('CHANGELOG.md gives 1.2.0 no date');
    expect(() => releaseNotes(changelog, '1.3.0')).toThrow('has no section "## 1.3.0 — DATE"');
  });
});

const documentSchema = z.looseObject({
  info: z.looseObject({ version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
});
const majorOf = (version: string): string | undefined => version.split('.')[0];

describe.skipIf(!canRun('the comparison of the API with its last release', [OASDIFF]))('the API', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tally-openapi-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  const frozen = textOf('clients/openapi.json');
  const breaks = async (text: string): Promise<string> => {
    const path = join(folder, 'openapi.json');
    writeFileSync(path, text);
    const args = ['breaking', join(ROOT, 'clients/openapi.json'), path, '--fail-on', 'ERR', '--format', 'singleline'];
    const { code, stdout, stderr } = await runProgram(findProgram(OASDIFF) ?? '', args, {
      env: { ...process.env, OASDIFF_NO_TELEMETRY: '1' },
    });
    // 1: something breaks; others: it could not compare
    if (code !== 0 && code !== 1) throw new Error(stderr);
    return code === 1 ? stdout : '';
  };

  it('takes everything that clients of its last release send and read, unless the major version is another', async () => {
    const present = openApiDocument();
    const [before = '', now = ''] = [frozen, present].map((text) => documentSchema.parse(JSON.parse(text)).info.version);
    // a version without a date in the changelog has no clients yet
    const hasClients = textOf('CHANGELOG.md').includes(`\n## ${before} — 2`);
    expect(hasClients && majorOf(now) === majorOf(before) ? await breaks(present) : '').toBe('');
  });

  it('would not lose an operation unseen', async () => {
    const document = documentSchema.parse(JSON.parse(frozen));
    const { '/v1/objects': _objects, ...paths } = document.paths;
    expect(await breaks(JSON.stringify({ ...document, paths }))).toContain('/v1/objects');
  });
});

describe('the version', () => {
  it('is that of package.json wherever a file must repeat it', () => {
    const { version } = packageJson;
    expect(textOf('Dockerfile')).toContain(`image.version="${version}"`);
    expect(textOf('CHANGELOG.md')).toContain(`## ${version} — `);
    expect(textOf('package-lock.json').match(/"version": "([^"]+)"/)?.[1]).toBe(version);
    expect(textOf('clients/python/tally_sdk/_version.py')).toContain(`VERSION = "${version}"`);
    expect(textOf('config/helm/tally/Chart.yaml').match(/^(version|appVersion): .*$/gm)).toEqual([
      `version: ${version}`,
      `appVersion: ${version}`,
    ]);
    expect(new Set(textOf('docs/guides/systemd.md').match(/tally-\d[\d.]*\d/g))).toEqual(new Set([`tally-${version}`]));
    expect(textOf('docs/guides/kubernetes.md').match(/tally:\d\S+/g)).toEqual([`tally:${version}`, `tally:${version}`]);
  });

  it('is published with the same home everywhere', () => {
    const [home = ''] = packageJson.homepage.split('#');
    expect(packageJson.repository.url).toBe(`git+${home}.git`);
    const texts = ['clients/python/pyproject.toml', 'clients/python/README.md'].map(textOf).join('\n');
    const addresses = [...texts.matchAll(/https:\/\/github\.com\/[\w-]+\/[\w-]+/g)].map(([address]) => address);
    expect(new Set(addresses)).toEqual(new Set([home]));
  });
});
