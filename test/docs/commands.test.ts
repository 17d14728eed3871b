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
import { z } from 'zod';
import packageJson from '../../package.json' with { type: 'json' };
import { createTestAws, until, type TestAws } from '../support/servers/aws.ts';
import { startDaemon, type Daemon, type Environment } from '../support/servers/daemon.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { MAIN, nodeOptions } from '../support/servers/program.ts';
import { pages, ROOT, shellBlocksOf, textOf } from './pages.ts';

/** The minute for late events, and what comes before and after it on a busy machine. */
const FIRST_REINDEX_MS = 300_000;

const checksSchema = z.object({ checks: z.object({ index: z.object({ status: z.string() }) }) });

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
    expect(packageJson.scripts.start).toBe(`node ${nodeOptions().join(' ')} src/tally.js serve --embedded`);
    for (const check of ['types', 'lint', 'format:check', 'deadcode']) expect(packageJson.scripts.test).toContain(check);
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

describe.skipIf(awsEndpoint() === undefined)('README.md: run it', () => {
  let data = '';
  let aws: TestAws;

  beforeAll(() => {
    data = mkdtempSync(join(tmpdir(), 'tally-readme-run-'));
    aws = createTestAws(awsEndpoint()!);
  });

  afterAll(async () => {
    await aws.dispose();
    rmSync(data, { recursive: true });
  });

  it(
    'a bucket is connected, served and re-indexed',
    async () => {
      const commands = blockWith(README, 'export TALLY_INDEX_URL');
      const [plan = '', add = '', jobs = '', ...rest] = blockWith(README, 'tally jobs');
      const exported = Object.fromEntries(
        commands.flatMap((command) => [...command.matchAll(/^export (\w+)=(.+)$/g)].map(([, name, value]) => [name, value])),
      );
      expect(Object.keys(exported)).toEqual(['AWS_REGION', 'TALLY_INDEX_URL']);
      const setup = commands.find((command) => command.includes('tally setup')) ?? '';
      expect([commands.at(-1), rest]).toEqual(['tally serve', []]);

      const bucket = await aws.createBucket();
      await aws.put(bucket, 'before.txt', 'put before the bucket was connected');
      const queue = await aws.createQueue();
      const env = {
        AWS_ENDPOINT_URL: aws.endpoint,
        AWS_REGION: aws.region,
        AWS_ACCESS_KEY_ID: aws.credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: aws.credentials.secretAccessKey,
        TALLY_QUEUE_URL: queue.url,
        TALLY_INDEX_URL: `sqlite:${join(data, 'index.sqlite')}`,
      };

      expect(await shell(`${setup} && printenv TALLY_QUEUE_URL`, env)).toContain(queue.url);
      const daemon = await startDaemon(env);
      // with no bucket connected it is not ready; commands need what it makes in a new index
      await until('the index is prepared', async () => {
        const { body } = (await daemon.readyz()) ?? {};
        return checksSchema.safeParse(body).data?.checks.index.status === 'ok';
      });
      await shell(plan.replace('photos', bucket), daemon.operator);
      await shell(add.replace('photos', bucket), daemon.operator);
      await daemon.ready();
      await aws.put(bucket, 'after.txt', 'put while Tally serves');
      // asked by HTTP until it is so, since each command starts two processes of Node; then by the command
      const isFound = async (key: string): Promise<boolean> =>
        JSON.stringify((await daemon.request('GET', `/v1/objects?bucket=${bucket}&key=${key}`)).body).includes(key);
      await until('the new object is found', () => isFound('after.txt'));
      expect(await shell(jobs, daemon.operator)).toContain(bucket);
      // the first re-index waits a minute for late events
      await until('the first re-index has indexed what the bucket held before', () => isFound('before.txt'), FIRST_REINDEX_MS);
      const found = await shell(`tally search --bucket ${bucket}`, daemon.operator);
      for (const key of ['before.txt', 'after.txt']) expect(found).toContain(key);
      await daemon.stop();
    },
    2 * FIRST_REINDEX_MS,
  );
});
