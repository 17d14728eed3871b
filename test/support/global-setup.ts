/**
 * Finds the real servers that tests run against, once per run: by address (TALLY_TEST_OPENSEARCH_URL,
 * TALLY_TEST_AWS_ENDPOINT), else as containers where Docker answers (TALLY_TEST_NO_DOCKER=1 turns that off), else not at
 * all, which is told at the end of the run, with what else this machine lacks (not-run.ts). With CI=true a missing server fails the run: there nothing may be skipped.
 */
import { once } from 'node:events';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { TestProject } from 'vitest/node';

import { writeProgram } from '../../config/tooling/package.ts';
import { collectNotRun, notRunText } from './not-run.ts';

interface Server {
  readonly name: string;
  readonly image: string;
  /** The environment variable that gives an address instead. */
  readonly variable: string;
  readonly context: 'opensearchUrl' | 'awsEndpoint' | 'securedOpensearchUrl';
  /** Started only for test files that hold these words. Default: for those that import servers/found.ts, directly or through others. */
  readonly words?: string;
  readonly start: (image: string) => Promise<StartedServer>;
}

interface StartedServer {
  readonly url: string;
  readonly caFile?: string;
  readonly stop: () => Promise<unknown>;
}

/** Up to 80 s were seen on a loaded machine of two cores, with both starting at once. */
const STARTUP_TIMEOUT_MS = 240_000;
/** A busy machine must not look like one without Docker. */
const DOCKER_ANSWER_TIMEOUT_MS = 60_000;
/** .ci/run builds the images, while the static checks run: on a new machine of two cores that takes three minutes. */
const BUILT_TIMEOUT_MS = 600_000;

const servers: readonly Server[] = [
  {
    name: 'OpenSearch',
    image: 'opensearchproject/opensearch:3',
    variable: 'TALLY_TEST_OPENSEARCH_URL',
    context: 'opensearchUrl',
    start: startOpenSearch,
  },
  {
    name: 'an OpenSearch with TLS and users',
    image: 'opensearchproject/opensearch:3',
    // with TALLY_TEST_OPENSEARCH_SECURED_CA_FILE
    variable: 'TALLY_TEST_OPENSEARCH_SECURED_URL',
    context: 'securedOpensearchUrl',
    words: 'securedOpensearch',
    start: startSecuredOpenSearch,
  },
  {
    name: 'LocalStack',
    image: 'localstack/localstack:4',
    variable: 'TALLY_TEST_AWS_ENDPOINT',
    context: 'awsEndpoint',
    async start(image) {
      const { LocalstackContainer } = await import('@testcontainers/localstack');
      const container = await new LocalstackContainer(image).withStartupTimeout(STARTUP_TIMEOUT_MS).start();
      return { url: container.getConnectionUri(), stop: () => container.stop() };
    },
  },
];

/**
 * An OpenSearch of a test run lives for minutes: compiling its code once, simply, and collecting garbage with one thread costs less
 * of the cores that the tests need than optimising either. It needs no second process that analyses its performance either.
 */
const SHORT_LIVED = {
  OPENSEARCH_JAVA_OPTS: '-Xms512m -Xmx512m -XX:TieredStopAtLevel=1 -XX:-UseG1GC -XX:+UseSerialGC',
  // that collector leaves garbage until the heap is full, which is not what the breaker is for
  'indices.breaker.total.use_real_memory': 'false',
  DISABLE_PERFORMANCE_ANALYZER_AGENT_CLI: 'true',
  // its monitor of the disk takes away, every half a minute, the blocks that tests set
  'cluster.routing.allocation.disk.threshold_enabled': 'false',
};

async function startOpenSearch(image: string): Promise<StartedServer> {
  const { OpenSearchContainer } = await import('@testcontainers/opensearch');
  const container = await new OpenSearchContainer(image)
    .withSecurityEnabled(false)
    .withEnvironment(SHORT_LIVED)
    .withStartupTimeout(STARTUP_TIMEOUT_MS)
    .start();
  return { url: container.getHttpUrl(), stop: () => container.stop() };
}

/**
 * With the image's demo certificates: its CA is copied out of the container. They name only 127.0.0.1 and localhost, which
 * is not where a container is reached when Docker is elsewhere or the tests run in a container themselves: a forwarder is.
 */
async function startSecuredOpenSearch(image: string): Promise<StartedServer> {
  const { OpenSearchContainer } = await import('@testcontainers/opensearch');
  const container = await new OpenSearchContainer(image)
    .withSecurityEnabled(true)
    // an audit log would be a write for every request
    .withEnvironment({ ...SHORT_LIVED, 'plugins.security.audit.type': 'noop' })
    .withStartupTimeout(STARTUP_TIMEOUT_MS)
    .start();
  const folder = await mkdtemp(join(tmpdir(), 'tally-ca-'));
  const caFile = join(folder, 'root-ca.pem');
  const { output } = await container.exec(['cat', '/usr/share/opensearch/config/root-ca.pem']);
  await writeFile(caFile, output);
  const forwarder = await forwardTo(container.getHost(), Number(new URL(container.getHttpUrl()).port));
  const url = new URL(`https://127.0.0.1:${forwarder.port}`);
  url.username = container.getUsername();
  url.password = encodeURIComponent(container.getPassword());
  const stop = async (): Promise<void> => {
    forwarder.close();
    await Promise.all([container.stop(), rm(folder, { recursive: true })]);
  };
  return { url: url.href, caFile, stop };
}

/** Listens on 127.0.0.1 and passes the bytes of every connection on to that address and back. */
async function forwardTo(host: string, port: number): Promise<{ readonly port: number; readonly close: () => void }> {
  const server = createServer((near) => {
    const far = connect(port, host);
    // one side's end is the other's: whoever is connected sees what it would see directly
    pipeline(near, far, near, () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the forwarder has no port');
  return { port: address.port, close: () => server.close() };
}

/** The folder of all tests. */
const TESTS = new URL('..', import.meta.url).pathname;
/** Test files that import this file, directly or through others, use servers. */
const FOUND = new URL('servers/found.ts', import.meta.url).pathname;

/** Those that import this file start the program. */
const PROGRAM = new URL('servers/program.ts', import.meta.url).pathname;

const missing: string[] = [];
let notRunFile = '';
const running: { readonly stop: () => Promise<unknown> }[] = [];

export async function setup(project: TestProject): Promise<void> {
  const tests = await selectedTests(project);
  // a run of tests that need no server must not wait for containers
  const usesServers = await reaches(FOUND, tests);
  const isWanted = ({ words }: Server): boolean => (words === undefined ? usesServers : tests.some(({ text }) => text.includes(words)));
  notRunFile = join(await mkdtemp(join(tmpdir(), 'tally-not-run-')), 'suites');
  await writeFile(notRunFile, '');
  collectNotRun(notRunFile);
  const building = buildProgram(tests);
  const wanted = new Set(servers.filter((server) => addressOf(server) === undefined && isWanted(server)));
  const dockerRefusal = wanted.size > 0 ? await dockerRefusalReason() : undefined;
  project.provide('securedOpensearchCaFile', process.env['TALLY_TEST_OPENSEARCH_SECURED_CA_FILE']);
  await Promise.all(
    servers.map(async (server) => {
      const started = wanted.has(server) ? await startContainer(server, dockerRefusal) : undefined;
      project.provide(server.context, started?.url ?? addressOf(server));
      if (started?.caFile !== undefined) project.provide('securedOpensearchCaFile', started.caFile);
    }),
  );
  await building;
  if (missing.length === 0 || process.env['CI'] !== 'true') return;
  await stopAll();
  const reason = `CI=true, and servers are ${howToRun()}`;
  missing.length = 0; // told here, so not once more by teardown
  throw new Error(reason);
}

export async function teardown(): Promise<void> {
  await stopAll();
  const texts = [notRunText(notRunFile), missing.length === 0 ? '' : ` NOT RUN: the suites on real servers. They are ${howToRun()}`];
  await rm(dirname(notRunFile), { recursive: true, force: true });
  const text = texts.filter((each) => each !== '').join('\n\n');
  if (text !== '') console.warn(`\n${text}\n`);
}

/** Builds the program for tests that start it: as it is published, and it starts in half of the time. */
async function buildProgram(tests: readonly SelectedTest[]): Promise<void> {
  if (process.env['TALLY_TEST_PROGRAM'] !== undefined || !(await reaches(PROGRAM, tests))) return;
  const folder = await mkdtemp(join(tmpdir(), 'tally-test-program-'));
  running.push({ stop: () => rm(folder, { recursive: true, force: true }) });
  await writeProgram(folder);
  process.env['TALLY_TEST_PROGRAM'] = join(folder, 'dist/program/tally.js');
}

function addressOf(server: Server): string | undefined {
  const address = process.env[server.variable];
  return address === undefined || address === '' ? undefined : address;
}

interface SelectedTest {
  readonly file: string;
  readonly text: string;
}

/** The test files that this run selects, but those of the lane that needs no server. */
async function selectedTests({ vitest }: TestProject): Promise<readonly SelectedTest[]> {
  // not in vitest's types; without it every file counts, so nothing is missed
  const selection: unknown = Reflect.get(vitest, 'filenamePattern');
  const selected = await vitest.globTestSpecifications(Array.isArray(selection) ? selection.map(String) : []);
  const files = selected.filter(({ project }) => project.name !== 'unit').map(({ moduleId }) => moduleId);
  return Promise.all(files.map(async (file) => ({ file, text: await readFile(file, 'utf8') })));
}

/** Whether a file is among those that the tests import, directly or through others. */
async function reaches(wanted: string, tests: readonly SelectedTest[]): Promise<boolean> {
  await access(wanted);
  const seen = new Set(tests.map(({ file }) => file));
  // what is added meanwhile is visited too
  for (const file of seen) {
    if (file === wanted) return true;
    const text = await readFile(file, 'utf8');
    const imported = [...text.matchAll(/^(?:import|export|\}).* from '(\.{1,2}\/[^']+\.ts)'/gm)].map(([, path = '']) =>
      join(dirname(file), path),
    );
    for (const each of imported) if (each.startsWith(TESTS)) seen.add(each);
  }
  return false;
}

/** Why containers cannot be started; undefined when Docker answers. */
async function dockerRefusalReason(): Promise<string | undefined> {
  if (process.env['TALLY_TEST_NO_DOCKER'] === '1') return 'TALLY_TEST_NO_DOCKER=1';
  const { getContainerRuntimeClient } = await import('testcontainers');
  const timeout = new Promise<string>((resolve) => {
    setTimeout(() => resolve('Docker does not answer'), DOCKER_ANSWER_TIMEOUT_MS).unref();
  });
  const answer = getContainerRuntimeClient().then(
    () => undefined,
    (error: unknown) => `no Docker: ${messageOf(error)}`,
  );
  return Promise.race([answer, timeout]);
}

async function startContainer(server: Server, dockerRefusal: string | undefined): Promise<StartedServer | undefined> {
  if (dockerRefusal !== undefined) {
    missing.push(`${server.name} (${dockerRefusal})`);
    return undefined;
  }
  try {
    if (process.env['TALLY_TEST_IMAGES'] === 'building') await built(server.image);
    // once more, since the port that Docker chose can be taken by another process of the machine before it is bound
    const started = await server.start(server.image).catch(() => server.start(server.image));
    running.push(started);
    return started;
  } catch (error) {
    missing.push(`${server.name} (${server.image} did not start: ${messageOf(error)})`);
    return undefined;
  }
}

/** Waits until the image is there, instead of having it pulled. After ten minutes its start says what is missing. */
async function built(image: string): Promise<void> {
  const { getContainerRuntimeClient, ImageName } = await import('testcontainers');
  const client = await getContainerRuntimeClient();
  const untilMs = Date.now() + BUILT_TIMEOUT_MS;
  while (!(await client.image.exists(ImageName.fromString(image))) && Date.now() < untilMs) await delay(1_000);
}

async function stopAll(): Promise<void> {
  await Promise.all(running.splice(0).map((server) => server.stop()));
}

function howToRun(): string {
  const variables = servers.map((server) => `${server.variable}=http://…`).join(' ');
  return `missing: ${missing.join('; ')}. Start Docker (where only the image of testcontainers/ryuk cannot be had, with TESTCONTAINERS_RYUK_DISABLED=true), or give the addresses of running servers: ${variables} npm test`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
