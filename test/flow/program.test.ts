import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PurgeQueueCommand } from '@aws-sdk/client-sqs';
import { startEmbedded } from '../../src/demo/server.ts';
import { systemClock } from '../../src/process/clock.ts';
import { createFakeControl } from '../support/fakes/control.ts';
import { createTestAws, until } from '../support/servers/aws.ts';
import { listenControlPlane } from '../support/servers/control-plane.ts';
import { startDaemon, type Daemon } from '../support/servers/daemon.ts';
import { MAIN } from '../support/servers/program.ts';

function spawnTally(args: readonly string[], env: Readonly<Record<string, string>> = {}, nodeOptions: readonly string[] = []) {
  return spawn(process.execPath, [...nodeOptions, MAIN, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** All that comes; `action` is done once when the words have come. */
async function textUntil(stream: Readable, words: string, action: () => unknown): Promise<string> {
  let all = '';
  let isDone = false;
  for await (const chunk of stream.setEncoding('utf8')) {
    all += chunk;
    if (!isDone && all.includes(words)) action();
    isDone ||= all.includes(words);
  }
  return all;
}

async function run(...given: Parameters<typeof spawnTally>) {
  const child = spawnTally(...given);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as unknown, stdout, stderr };
}

describe('the program', () => {
  it('says which Node it needs, in a line and with 78, where that is older', async () => {
    const older = "--import=data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'20.19.0'}})";
    expect(await run(['serve'], {}, [older])).toEqual({
      code: 78,
      stdout: '',
      stderr:
        'tally: Tally needs Node 24.5 or later, and this is Node 20.19.0. In a clone, `npm ci` installs it for `npm start` and `npm run`; otherwise see https://nodejs.org.\n',
    });
  });

  it('loads neither the SDK of AWS, OpenSearch, a server nor the panel for a help text', async () => {
    const hook = `import { registerHooks } from 'node:module';
      registerHooks({ load: (url, context, next) => (process.stderr.write(url + '\\n'), next(url, context)) });`;
    const sources = new URL('../../src/tally.js', import.meta.url).pathname;
    const args = [`--import=data:text/javascript,${encodeURIComponent(hook)}`, sources, '--help'];
    const child = spawn(process.execPath, args, { env: { PATH: process.env['PATH'] }, stdio: ['ignore', 'pipe', 'pipe'] });
    const [stdout, loaded] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    expect(stdout).toContain('Usage: ');
    expect(loaded).toContain('/src/cli/run-cli.ts');
    const unneeded =
      /@aws-sdk|@smithy|opensearch-project|fastify|fauxqs|pino|\/yaml\/|src\/(aws\/clients|store\/(opensearch|sqlite)|registry\/server|serve|panel|indexer|repair)/;
    expect(loaded.split('\n').filter((url) => unneeded.test(url))).toEqual([]);
  });

  it('reads a secret from the file that a setting names, and shows it to nobody', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tally-main-'));
    const file = join(folder, 'index-url');
    const env = { TALLY_INDEX_URL_FILE: file };
    try {
      await writeFile(file, 'https://tally:s3cret@index:9200\n', { mode: 0o400 });
      const shown = await run(['config'], env);
      expect(shown).toMatchObject({ code: 0, stderr: '' });
      expect(shown.stdout).toContain('\nTALLY_INDEX_URL=https://tally:***@index:9200\n');
      expect(shown.stdout).not.toContain('s3cret');
      await chmod(file, 0o602);
      expect(await run(['config'], env)).toEqual({ code: 78, stdout: '', stderr: expect.stringContaining('TALLY_INDEX_URL_FILE: ') });
      await rm(file);
      expect(await run(['config'], env)).toEqual({ code: 78, stdout: '', stderr: expect.stringContaining('ENOENT') });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('Fix: says of a start that fails what to correct, and nothing of a store that it has not begun', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tally-main-'));
    const taken = await listenControlPlane({ operations: createFakeControl().checked });
    const at = `127.0.0.1:${taken.port}`;
    const start = (env: Readonly<Record<string, string>>) =>
      run(['serve'], { AWS_REGION: 'eu-west-1', TALLY_INDEX_URL: `sqlite:${folder}/index.sqlite`, ...env });
    const failed = (setting: string) => `tally: ${setting}: ${at} is already in use: set it to another HOST:PORT\n`;
    try {
      const http = { TALLY_ROLES: 'http', TALLY_HEALTH_ADDRESS: '127.0.0.1:0', TALLY_HTTP_ADDRESS: at };
      expect(await start(http)).toEqual({ code: 78, stdout: '', stderr: failed('TALLY_HTTP_ADDRESS') });
      // such a process has no socket, and says so
      const other = await start({ TALLY_ROLES: 'reindex', TALLY_HEALTH_ADDRESS: at });
      expect(other).toEqual({ code: 78, stdout: expect.stringContaining('commands cannot reach'), stderr: failed('TALLY_HEALTH_ADDRESS') });
    } finally {
      await taken.close();
      await rm(folder, { recursive: true });
    }
  });

  it('asks a running registry, and leaves its job alone at Ctrl-C', async () => {
    const fake = createFakeControl();
    const registry = await listenControlPlane({ operations: fake.checked });
    try {
      const url = `http://localhost:${registry.port}`;
      const child = spawnTally(['drift', 'photos', '--registry', url]);
      const [stdout, stderr, [code]] = await Promise.all([
        text(child.stdout),
        textUntil(child.stderr, 'queued', () => child.kill('SIGINT')),
        once(child, 'close'),
      ]);
      expect({ code: code as unknown, stdout }).toEqual({ code: 130, stdout: '' });
      expect(stderr).toBe(
        'job-1: queued\nThe job continues. To see its progress: tally jobs job-1\nTo cancel it: tally jobs cancel job-1\n',
      );
      expect(fake.asked.map(([operation]) => operation)).not.toContain('changeJob');
    } finally {
      await registry.close();
    }
  });

  it('ends quietly with 0 when whoever reads has seen enough', async () => {
    const child = spawnTally(['config']);
    child.stdout.destroy();
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

/** The steps of one installation, in their order. */
describe('the embedded mode as a program', () => {
  let folder: string;
  let data: string;
  let daemon: Daemon;
  const put = (endpoint: string, key: string, body: string) => fetch(`${endpoint}/demo/${key}`, { method: 'PUT', body });
  const start = () =>
    startDaemon(
      {
        TALLY_EMBEDDED_DATA: data,
        // a proxy that is down
        HTTP_PROXY: 'http://user:hunter2@127.0.0.1:1',
        HTTPS_PROXY: '127.0.0.1:1',
        NO_PROXY: 'search.internal',
      },
      ['serve', '--embedded'],
    );

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tally-main-'));
    data = join(folder, 'data');
    const before = process.umask(0);
    daemon = await start().finally(() => process.umask(before));
  });
  afterAll(async () => {
    await daemon?.kill();
    await rm(folder, { recursive: true });
  });

  it('says where it serves, in its log and its welcome, also where the system chooses the ports', async () => {
    await daemon.said('Stop it with Ctrl-C');
    for (const url of [daemon.healthUrl, daemon.controlUrl, daemon.embeddedUrl]) {
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
      expect(daemon.text).toContain(`  ${url}`);
    }
    expect(await fetch(`${daemon.controlUrl}/livez`)).toMatchObject({ status: 200 });
  });

  it('serves beside a proxy that is down, and logs the proxy without its password', async () => {
    await daemon.ready();
    expect(await daemon.line('requests use a proxy')).toMatchObject({
      http_proxy: 'http://user:***@127.0.0.1:1',
      https_proxy: 'http://127.0.0.1:1',
      no_proxy: 'search.internal,localhost,127.0.0.1,::1,[::1]',
    });
    expect(JSON.stringify(daemon.log)).not.toContain('hunter2');
  });

  it('Fix: keeps what it stores from other users, whatever the umask', async () => {
    await put(daemon.embeddedUrl, 'same', 'old');
    const names = ['', ...(await readdir(data, { recursive: true }))];
    const modes = await Promise.all(names.map(async (name) => [name, ((await stat(join(data, name))).mode & 0o077).toString(8)]));
    expect(modes.length).toBeGreaterThan(4);
    expect(modes.filter(([, mode]) => mode !== '0')).toEqual([]);
  });

  it('finds changes of the embedded storage whose events were lost by a re-index at the next start', async () => {
    const found = async () => {
      const { items } = (await (await fetch(`${daemon.controlUrl}/v1/objects`)).json()) as { items: { key: string; size: number }[] };
      return Object.fromEntries(items.map(({ key, size }) => [key, size]));
    };
    const change = (id: string, to: object): Promise<Response> =>
      fetch(`${daemon.controlUrl}/v1/jobs/${id}`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(to),
      });
    // nothing can be missing in a folder that is new, but for what its first re-index finds
    const { items: gaps } = (await (await fetch(`${daemon.controlUrl}/v1/gaps`)).json()) as { items: { why: string }[] };
    expect(gaps.filter(({ why }) => why.includes('embedded storage'))).toEqual([]);
    for (const key of ['changed', 'deleted']) await put(daemon.embeddedUrl, key, 'old');
    await until('all are indexed', async () => Object.keys(await found()).length === 3);
    // the first re-index of a bucket waits a minute for late events, and would find the changes too
    const { items } = (await (await fetch(`${daemon.controlUrl}/v1/jobs`)).json()) as { items: { id: string }[] };
    for (const { id } of items) await change(id, { state: 'cancelled' });
    await daemon.stop();
    // as if the process had been killed before it sent the events
    const at = { host: '127.0.0.1', port: 0, dataDir: data };
    const storage = await startEmbedded({ ...at, region: 'us-east-1', bucket: 'demo', clock: systemClock });
    await put(storage.endpoint, 'changed', 'newer');
    await put(storage.endpoint, 'created', 'c');
    await fetch(`${storage.endpoint}/demo/deleted`, { method: 'DELETE' });
    const aws = createTestAws(storage.endpoint);
    await aws.sqs.send(new PurgeQueueCommand({ QueueUrl: storage.queueUrl }));
    await aws.dispose();
    await storage.stop();
    daemon = await start();
    // the first re-index was cancelled: what it did not compare is deleted once a person has allowed it
    const wanted = { same: 3, changed: 5, created: 1, deleted: 3 };
    await until('the index agrees but for a deletion', async () => isDeepStrictEqual(await found(), wanted));
  });
});
