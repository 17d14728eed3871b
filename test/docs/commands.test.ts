/**
 * The commands of README.md, as they are typed there.
 *
 * They run in the project's folder, by a shell on whose PATH Tally is. Only addresses differ: those that the page names are replaced by those of
 * the servers that a test started.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { until } from '../support/servers/aws.ts';
import { startDaemon, type Daemon, type Environment } from '../support/servers/daemon.ts';
import { MAIN } from '../support/servers/program.ts';
import { pages, ROOT, shellBlocksOf, textOf } from './pages.ts';

const README = shellBlocksOf(textOf('README.md'));

/** The one block of a page that has a command with this text. */
function blockWith(blocks: readonly (readonly string[])[], text: string): readonly string[] {
  const found = blocks.filter((block) => block.some((command) => command.includes(text)));
  if (found.length !== 1) throw new Error(`${found.length} blocks have a command with ${text}`);
  return found[0]!;
}

it('every block of commands in README.md is known to a test', () => {
  const known = ['npm start', 'demo:identity', 'npm test', 'explain', 'npm run package', 'export TALLY_INDEX_URL', 'tally jobs'];
  expect(known.map((text) => blockWith(README, text))).toHaveLength(README.length);
});

// package.test.ts installs what `npm run package` makes, python.test.ts what the wheel has
it.each([...pages().filter((page) => !page.startsWith('docs/internals/')), 'clients/python/README.md', 'clients/python/examples/ci.yaml'])(
  'Fix: %s installs nothing from a registry that does not have it',
  (page) =>
    expect(textOf(page)).not.toMatch(
      /npm (?:install|i|pack)[^`\n]* @tally-index\/tally|npx (?:-\S+ )*(?:@tally-index|tally)|pip install[^`\n]* tally-(?:index|sdk)/,
    ),
);

it('README.md and docs/start/local.md install the same', () => {
  const [local = []] = shellBlocksOf(textOf('docs/start/local.md'));
  expect(local.slice(0, 2)).toEqual(blockWith(README, 'npm run package'));
});

it('README.md and docs/start/aws.md, which start-aws.test.ts runs, serve and connect by the same commands', () => {
  const run = new Set(shellBlocksOf(textOf('docs/start/aws.md')).flat());
  const commands = [...blockWith(README, 'export TALLY_INDEX_URL'), ...blockWith(README, 'tally jobs')];
  expect(commands.filter((command) => !run.has(command))).toEqual([expect.stringMatching(/^export TALLY_INDEX_URL=/), 'tally jobs']);
});

const programs = mkdtempSync(join(tmpdir(), 'tally-programs-'));
symlinkSync(MAIN, join(programs, 'tally'));
afterAll(() => rmSync(programs, { recursive: true }));

/** Runs one command as a shell of the project's folder would, and answers what it printed. Fails with its output unless it exits with 0. */
function shell(command: string, env: Environment): Promise<string> {
  const { PATH = '', HOME = '' } = process.env;
  return new Promise((resolve, reject) => {
    execFile('sh', ['-c', command], { cwd: ROOT, env: { PATH: `${programs}:${PATH}`, HOME, ...env } }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${command}\nexit code ${String(error.code)}\n${stdout}\n${stderr}`));
    });
  });
}

describe('README.md: try it', () => {
  let data = '';
  let daemon: Daemon;
  let endpoint = '';

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), 'tally-readme-'));
    daemon = await startDaemon({ TALLY_EMBEDDED_ADDRESS: '127.0.0.1:0', TALLY_EMBEDDED_DATA: data }, ['serve', '--embedded']);
    await daemon.ready();
    // what people are shown is where the addresses that they type come from
    await until('the welcome is printed', () => daemon.text.includes('S3, SQS, SNS'));
    endpoint = /S3, SQS, SNS +(http:\/\/\S+)/.exec(daemon.text)![1]!;
  });

  afterAll(async () => {
    await daemon.stop();
    rmSync(data, { recursive: true });
  });

  it('npm start and npm test are what the page says', () => {
    expect(blockWith(README, 'npm start')).toEqual(['npm ci && npm start']);
    expect(blockWith(README, 'npm test')).toEqual(['npm ci && npm test']);
    expect(blockWith(README, 'demo:identity')).toEqual(['npm ci && npm run demo:identity']);
    expect(packageJson.scripts['demo:identity']).toBe('node test/support/identity/demo.ts');
  });

  it('an object is put, found, explained, compared, deleted and gone', async () => {
    const commands = blockWith(README, 'explain');
    const [put = '', search = '', explain = '', drift = '', remove = '', ...rest] = commands.filter((command) => command !== 'sleep 1');
    expect(rest).toEqual([search]);
    const run = (command: string): Promise<string> =>
      shell(command.replace('http://127.0.0.1:4566', endpoint).replace('http://127.0.0.1:8080', daemon.controlUrl), {
        ...daemon.operator,
      });
    const isFound = async (): Promise<boolean> => (await run(search)).includes('docs/README.md');

    await run(put);
    await until('the search finds the object', isFound);
    expect(await run(explain)).toContain('A search finds it');
    expect(await run(drift)).toMatch(/\bagree\b/);
    await run(remove);
    await until('the search no longer finds the object', async () => !(await isFound()));
  });
});
