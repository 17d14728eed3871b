/**
 * The image, compose.yaml and the systemd unit, each run for real. One file: two of them stand on one built image. Each day
 * the image runs, and files.test.ts reads the others.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import PQueue from 'p-queue';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writePackage } from '../../config/tooling/package.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { shellBlocksOf, textOf } from '../docs/pages.ts';
import { onlyInLong } from '../support/breadth.ts';
import { noteNotRun } from '../support/not-run.ts';
import { compose, docker, eventually, LABEL, refusal, removeAll, RUN, runDetached, tryDocker } from './docker.ts';

const IMAGE = `${RUN}-image`;
const SYSTEMD_IMAGE = `${RUN}-systemd`;
const TARBALL = `${packageJson.name.replace('@', '').replace('/', '-')}-${packageJson.version}.tgz`;
const execute = promisify(execFile);
/** An image is built from nothing, and three servers start on a busy machine of two cores. */
const SETUP_TIMEOUT_MS = 600_000;
const TEST_TIMEOUT_MS = 600_000;
/** OpenSearch and LocalStack start beside the other suites, which may have both cores busy. */
const STARTED_WITHIN_MS = 280_000;
/** What is put while something is stopped or killed. */
const OBJECTS = 200;

const refused = await refusal();
if (refused !== undefined) noteNotRun('image, compose.yaml and systemd unit', `Docker (${refused})`);

describe.skipIf(refused !== undefined)('deployment', { timeout: TEST_TIMEOUT_MS }, () => {
  beforeAll(async () => {
    await docker(['build', '--tag', IMAGE, '.']);
  }, SETUP_TIMEOUT_MS);

  afterAll(async () => {
    await removeAll([SYSTEMD_IMAGE, IMAGE]);
  }, SETUP_TIMEOUT_MS);

  describe('the image', () => {
    const container = `${RUN}-embedded`;
    const volume = `${RUN}-data`;
    const memory = ['--memory', '512m', '--memory-swap', '512m'];
    const hardened = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];

    test('carries the program with the notices of what it contains, and little else: under 10 MB on its base image', async () => {
      const sizeBytes = async (image: string): Promise<number> =>
        Number(await docker(['image', 'inspect', '--format', '{{.Size}}', image]));
      expect((await sizeBytes(IMAGE)) - (await sizeBytes('node:24-slim'))).toBeLessThan(10_000_000);
      const installed = await docker(['run', '--rm', '--entrypoint', 'ls', IMAGE]);
      expect(installed.split('\n').toSorted()).toEqual([
        'LICENSE',
        'THIRD-PARTY-NOTICES.txt',
        'config',
        'dist',
        'package.json',
        'sbom.cdx.json',
      ]);
    });

    test('passes on the exit code: 78 for settings that are missing', async () => {
      const { code, stderr } = await tryDocker(['run', '--rm', ...hardened, IMAGE]);
      expect(stderr).toContain('TALLY_QUEUE_URL: must be set');
      expect(code).toBe(78);
    });

    test('runs under any user id', async () => {
      expect(await docker(['run', '--rm', ...hardened, '--user', '123456:0', IMAGE, '--version'])).toBe(packageJson.version);
    });

    test('becomes healthy in 512 MiB without root, capabilities and a writable root file system, and keeps its data in a volume', async () => {
      const [health, publish] = [
        ['--health-interval', '1s', '--health-retries', '1'],
        ['--publish', '127.0.0.1::4566'],
      ];
      await runDetached(container, [
        '--volume',
        `${volume}:/data`,
        ...hardened,
        ...memory,
        ...health,
        ...publish,
        IMAGE,
        'serve',
        '--embedded',
      ]);
      await becomes('healthy');

      expect(await docker(['exec', container, 'id', '-u'])).toBe('1000');
      expect((await docker(['exec', container, 'cat', '/proc/1/cmdline'])).split('\0')).toEqual(expect.arrayContaining(['node', 'serve']));
      expect((await tryDocker(['exec', container, 'touch', '/app/new'])).code).not.toBe(0);

      const address = (await docker(['port', container, '4566/tcp'])).split('\n')[0];
      const put = async (key: string): Promise<boolean> => (await fetch(`http://${address}/demo/${key}`, { method: 'PUT', body: key })).ok;
      expect(await put('docs/hello.txt')).toBe(true);
      expect(await eventually('the object is found', () => found(container, 'hello'))).toEqual(['docs/hello.txt']);

      // while objects are put: SIGTERM alone ends it, since SIGKILL would leave 137. Docker's own patience of 10 s is less than the
      // 25 s that a stop may take
      const stored: string[] = [];
      const queue = new PQueue({ concurrency: 8 });
      const load = keysBelow('load/').map((key) =>
        queue.add(async () => void ((await put(key)) && stored.push(key))).catch(() => undefined),
      );
      await eventually('objects are stored', async () => stored.length > 20);
      await docker(['stop', '-t', '120', container]);
      await Promise.all(load);
      expect(await stateOf(container, 'ExitCode')).toBe('0');
      // its new port can be taken meanwhile, as in runDetached
      await eventually('it starts again', () => docker(['start', container]));
      expect(await eventually('the object is found again', () => found(container, 'hello'))).toEqual(['docs/hello.txt']);
      await eventually('all objects are found that were stored', async () => {
        const present = new Set(await found(container, '--prefix', 'load/'));
        return stored.every((key) => present.has(key));
      });
      expect(await stateOf(container, 'OOMKilled')).toBe('false');
    });

    test('becomes unhealthy when its process hangs, and healthy again when it goes on', async () => {
      await becomes('healthy');
      await docker(['kill', '--signal', 'STOP', container]);
      await becomes('unhealthy');
      await docker(['kill', '--signal', 'CONT', container]);
      await becomes('healthy');
      await docker(['rm', '--force', container]);
    });

    async function becomes(status: string): Promise<void> {
      await eventually(`the container is ${status}`, async () => (await stateOf(container, 'Health.Status')) === status);
    }
  });

  onlyInLong(describe)('compose.yaml', () => {
    // Docker chooses the ports of this machine, and is asked for them
    const ports = { AWS_PORT: '0', OPENSEARCH_PORT: '0', HEALTH_PORT: '0', PANEL_PORT: '0' };
    beforeAll(async () => {
      // as in runDetached: another process can take a port between Docker's choice and its bind
      await eventually(
        'all containers are started',
        async () => {
          await composed('up', '--detach', '--no-build');
          return true;
        },
        STARTED_WITHIN_MS,
      );
      await eventually(
        'tally is healthy',
        async () => (await stateOf(await tallyContainer(), 'Health.Status')) === 'healthy',
        STARTED_WITHIN_MS,
      );
    }, SETUP_TIMEOUT_MS);

    afterAll(async () => {
      await composed('down', '--volumes');
    }, SETUP_TIMEOUT_MS);

    test('what it tells to try works: a bucket is connected, an object is put, found, deleted, and gone', async () => {
      const commands = [...readFileSync('compose.yaml', 'utf8').matchAll(/^# {3}docker compose exec (.+)$/gm)].map(([, words = '']) =>
        words.split(' '),
      );
      const [setup = [], add = [], put = [], search = [], remove = []] = commands;
      expect([setup[2], add[0], put[0], search[0], remove[0]]).toEqual(['setup', 'tally', 'localstack', 'tally', 'localstack']);

      for (const words of [setup, add]) await composed('exec', '-T', ...words);
      await composed('exec', '-T', ...put);
      // Compose 1.29 takes seconds of CPU to start: Docker asks until it is so, and then Compose once
      const [, ...words] = search;
      const isFound = async (): Promise<boolean> => (await docker(['exec', await tallyContainer(), ...words])).includes('docs/hello.txt');
      await eventually('the object is found', isFound);
      expect(await composed('exec', '-T', ...search)).toContain('docs/hello.txt');
      await composed('exec', '-T', ...remove);
      await eventually('the object is gone', async () => !(await isFound()));
    });

    test('is ready, with metrics for who looks from this machine', async () => {
      const health = `http://${await addressOf('tally', 8081)}`;
      await eventually('ready', async () => (await fetch(`${health}/readyz`)).ok);
      expect(await (await fetch(`${health}/metrics`)).text()).toMatch(/^tally_records_total\{.*outcome="provisional".*\} [1-9]/m);
    });

    function composed(...args: string[]): Promise<string> {
      return compose(args, { ...ports, TEST_IMAGE: IMAGE, TEST_RUN: RUN });
    }

    /** Where a port of a service's container is reached from this machine. */
    async function addressOf(service: string, port: number): Promise<string> {
      return (await composed('port', service, String(port))).trim();
    }

    function tallyContainer(): Promise<string> {
      return docker(['ps', '--all', '--quiet', '--filter', `label=${LABEL}=${RUN}`, '--filter', 'label=com.docker.compose.service=tally']);
    }
  });

  onlyInLong(describe)('tally.service', () => {
    const machine = `${RUN}-machine`;
    const work = mkdtempSync(join(tmpdir(), 'tally-systemd-'));
    const blocks = shellBlocksOf(textOf('docs/guides/systemd.md'));
    /** The block of the page with a command that begins like this. */
    const typed = (start: string): readonly string[] => blocks.find((block) => block.some((command) => command.startsWith(start))) ?? [];
    const inside = (...command: string[]): Promise<string> => docker(['exec', machine, ...command]);
    const show = (property: string): Promise<string> => inside('systemctl', 'show', '--property', property, '--value', 'tally');

    beforeAll(async () => {
      await writePackage(join(work, 'package'));
      await execute('npm', ['pack', '--silent', './package'], { cwd: work });
      await docker(['build', '--tag', SYSTEMD_IMAGE, '--file', 'test/deploy/systemd.Dockerfile', 'test/deploy/crds']);
      // what systemd itself needs to set up control groups and what the unit hides; it is not --privileged
      const powers = ['--cap-add', 'SYS_ADMIN', '--cap-add', 'SYS_PTRACE', '--cgroupns', 'private'];
      const unconfined = ['--security-opt', 'seccomp=unconfined', '--security-opt', 'apparmor=unconfined'];
      const tmpfs = ['/run', '/run/lock', '/tmp'].flatMap((path) => ['--tmpfs', path]);
      await runDetached(machine, [...powers, ...unconfined, ...tmpfs, SYSTEMD_IMAGE]);
      await eventually('systemd is up', async () =>
        ['running', 'degraded'].includes((await tryDocker(['exec', machine, 'systemctl', 'is-system-running'])).stdout.trim()),
      );
      await docker(['cp', join(work, TARBALL), `${machine}:/root/${TARBALL}`]);
      await write('/root/index-url', 'sqlite:/var/lib/tally/from-credential.sqlite\n');
      for (const command of [...typed('tar -xzf'), ...typed('install -D')]) await inside('sh', '-c', `cd /root && ${command}`);
    }, SETUP_TIMEOUT_MS);

    afterAll(() => rmSync(work, { recursive: true }));

    test('systemd-analyze verify has nothing to say', async () => {
      const { code, stdout, stderr } = await tryDocker(['exec', machine, 'systemd-analyze', 'verify', 'tally.service']);
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' });
    });

    test('systemd-analyze security finds an exposure of at most 1.2 of 10', async () => {
      const { code, stdout } = await tryDocker([
        'exec',
        machine,
        'systemd-analyze',
        'security',
        '--no-pager',
        '--offline=true',
        '--threshold=12',
        '/etc/systemd/system/tally.service',
      ]);
      expect(code, stdout).toBe(0);
    });

    test('settings that cannot be are told in the journal and not tried again', async () => {
      await write('/etc/tally/tally.env', 'TALLY_QUEUE_URL=bucket-events\n');
      await tryDocker(['exec', machine, 'systemctl', 'start', 'tally']);
      await eventually('the unit failed', async () => (await show('ActiveState')) === 'failed');
      expect(await show('ExecMainStatus')).toBe('78');
      expect(await show('NRestarts')).toBe('0');
      // systemd knows that the process ended, and journald may still read what the process wrote
      await eventually('the journal tells why', async () =>
        (await inside('journalctl', '--unit', 'tally', '--output', 'cat', '--no-pager')).includes(
          'TALLY_QUEUE_URL: must be the URL of an SQS queue',
        ),
      );
    });

    test('runs as a user of its own without capabilities, its index URL from a credential', async () => {
      await write('/etc/tally/tally.env', 'TALLY_EMBEDDED=true\nTALLY_EMBEDDED_DATA=/var/lib/tally\nTALLY_HEALTH_ADDRESS=0.0.0.0:8081\n');
      const [reload = '', enable = ''] = typed('systemctl daemon-reload');
      for (const command of [reload, enable]) await inside('sh', '-c', command);
      await ready();
      const status = await inside('cat', `/proc/${await show('MainPID')}/status`);
      expect(status).toMatch(/^CapBnd:\t0{16}$/m);
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      expect(status).toMatch(/^Seccomp:\t2$/m);
      expect(status).not.toMatch(/^Uid:\t0/m);
      expect(await inside('ls', '/var/lib/tally')).toContain('from-credential.sqlite');
      expect(await show('Environment')).not.toContain('from-credential');
    });

    test('answers the commands of the page, and is upgraded by leading the link to another version', async () => {
      const [, list = ''] = typed('tally --registry');
      expect(await inside('sh', '-c', list)).toContain('demo');
      await inside('cp', '--recursive', `/opt/tally-${packageJson.version}`, '/opt/tally-next');
      const pid = await show('MainPID');
      for (const command of typed('ln -sfn tally-VERSION')) await inside('sh', '-c', command.replace('VERSION', 'next'));
      await ready();
      expect(await show('MainPID')).not.toBe(pid);
      expect(await inside('readlink', '--canonicalize', '/usr/local/bin/tally')).toMatch(/^\/opt\/tally-next\//);
    });

    test('stops with success', async () => {
      await inside('systemctl', 'stop', 'tally');
      expect(await show('Result')).toBe('success');
      expect(await show('ExecMainStatus')).toBe('0');
      expect(await show('ActiveState')).toBe('inactive');
    });

    async function write(path: string, text: string): Promise<void> {
      await docker(['exec', '--interactive', machine, 'tee', path], { stdin: text });
    }

    async function ready(): Promise<void> {
      await eventually('ready', async () => (await fetchInside('http://127.0.0.1:8081/readyz')).includes('"ready":true'));
    }

    function fetchInside(url: string): Promise<string> {
      return inside('node', '-e', `fetch('${url}').then((answer) => answer.text()).then((text) => process.stdout.write(text))`);
    }
  });
});

/** The keys of the objects of a load. */
function keysBelow(prefix: string): readonly string[] {
  return Array.from({ length: OBJECTS }, (_, index) => `${prefix}${String(index).padStart(4, '0')}`);
}

/** One field of a container's state. */
function stateOf(container: string, field: string): Promise<string> {
  return docker(['inspect', '--format', `{{.State.${field}}}`, container]);
}

/** The keys that `tally search` in the container finds; undefined when it finds none. */
async function found(container: string, ...query: string[]): Promise<readonly string[] | undefined> {
  const json = await docker(['exec', container, 'tally', 'search', '--json', '--limit', '1000', ...query]);
  const { items } = JSON.parse(json) as { readonly items: readonly { readonly key: string }[] };
  return items.length === 0 ? undefined : items.map(({ key }) => key);
}
