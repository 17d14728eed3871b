/** Docker and Compose through their command lines. What a run makes carries its name, and is removed at its end. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { until } from '../support/servers/aws.ts';

/** Image, container, volume and project names of this run begin with it; it is the value of its containers' label too. */
export const RUN = `tally-test-${randomBytes(4).toString('hex')}`;
/** The label of every container of these tests, whatever the run: a killed run's are found by it. */
export const LABEL = 'tally-test';

/** Each meets another port; that five are taken in a row is not chance. */
const PORT_ATTEMPTS = 5;

const ROOT = new URL('../..', import.meta.url).pathname;

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** Runs a program to its end in the project's folder, whatever its exit code. */
function run(program: string, args: readonly string[], { env = {}, stdin }: RunOptions = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      program,
      args,
      // BuildKit is not everywhere, and the Dockerfile needs nothing of it: the same builder on every machine
      { cwd: ROOT, env: { ...process.env, DOCKER_BUILDKIT: '0', ...env }, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 127;
        resolve({ code, stdout, stderr: stderr === '' && error !== null ? error.message : stderr });
      },
    );
    child.stdin?.end(stdin);
  });
}

/** Why Docker or Compose cannot be used here; undefined when they can. */
export async function refusal(): Promise<string | undefined> {
  if (process.env['TALLY_TEST_NO_DOCKER'] === '1') return 'TALLY_TEST_NO_DOCKER=1';
  const { code, stderr } = await run('docker', ['version']);
  if (code !== 0) return `Docker does not answer: ${stderr}`;
  return (await composeProgram()) === undefined ? 'neither `docker compose` nor `docker-compose` is installed' : undefined;
}

/** Asked once: the older program starts Python to say its version. */
let composeFound: Promise<readonly string[] | undefined> | undefined;

const composeProgram = (): Promise<readonly string[] | undefined> => (composeFound ??= findCompose());

/** `docker compose`, or the older program of its own. */
async function findCompose(): Promise<readonly string[] | undefined> {
  for (const words of [['docker', 'compose'], ['docker-compose']]) {
    const [program = '', ...args] = words;
    if ((await run(program, [...args, 'version'])).code === 0) return words;
  }
  return undefined;
}

/** `docker …`, whatever its exit code. */
export function tryDocker(args: readonly string[], options?: RunOptions): Promise<Ended> {
  return run('docker', args, options);
}

/** `docker …`; its output without the last line's end. Throws when it fails. */
export async function docker(args: readonly string[], options?: RunOptions): Promise<string> {
  return outputOf(`docker ${args.join(' ')}`, await tryDocker(args, options));
}

/**
 * `docker run --detach` with a name and a label of this run. Docker takes the host's port for `--publish 127.0.0.1::PORT`
 * from a range that every process of the machine takes its own from, so that another can be faster: then once more.
 */
export async function runDetached(name: string, args: readonly string[]): Promise<void> {
  const words = ['run', '--detach', '--name', name, '--label', `${LABEL}=${RUN}`, ...args];
  for (let attemptsLeft = PORT_ATTEMPTS; ; attemptsLeft--) {
    // of an earlier attempt, or of an earlier try of the test
    await tryDocker(['rm', '--force', name]);
    const ended = await tryDocker(words);
    if (ended.code === 0) return;
    if (attemptsLeft === 1 || !/address already in use|port is already allocated/.test(ended.stderr))
      outputOf(`docker ${words.join(' ')}`, ended);
  }
}

function outputOf(command: string, { code, stdout, stderr }: Ended): string {
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr.slice(-3_000)}\n${stdout.slice(-3_000)}`);
  return stdout.trimEnd();
}

/** `docker compose …` with compose.yaml and what the tests change of it. Throws when it fails. */
export async function compose(args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const [program = '', ...words] = (await composeProgram()) ?? [];
  const files = ['compose.yaml', 'test/deploy/compose.test.yaml'].flatMap((file) => ['--file', file]);
  const all = [...words, '--project-name', RUN, ...files, ...args];
  return outputOf([program, ...all].join(' '), await run(program, all, { env }));
}

/** Tries until the work returns something. What it throws meanwhile counts as not yet. Fails after the timeout. */
export async function eventually<Found>(what: string, work: () => Promise<Found | undefined | false>, timeoutMs?: number): Promise<Found> {
  let found: Found | undefined | false;
  let reason: unknown;
  const isFound = async (): Promise<boolean> => {
    found = await work().catch((error: unknown) => void (reason = error));
    return found !== undefined && found !== false;
  };
  await until(what, isFound, timeoutMs).catch((error: unknown) => {
    throw new Error(String(error), { cause: reason });
  });
  return found as Found;
}

/** Removes the containers, volumes and networks of this run, then these images. */
export async function removeAll(images: readonly string[]): Promise<void> {
  const lines = async (args: readonly string[]): Promise<string[]> => (await docker(args)).split('\n').filter((line) => line !== '');
  const containers = await lines(['ps', '-aq', '--filter', `label=${LABEL}=${RUN}`]);
  if (containers.length > 0) await docker(['rm', '--force', '--volumes', ...containers]);
  const volumes = await lines(['volume', 'ls', '-q', '--filter', `name=${RUN}`]);
  if (volumes.length > 0) await docker(['volume', 'rm', ...volumes]);
  const networks = await lines(['network', 'ls', '-q', '--filter', `name=${RUN}`]);
  if (networks.length > 0) await docker(['network', 'rm', ...networks]);
  for (const image of images) await tryDocker(['rmi', image]);
}
