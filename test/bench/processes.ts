/** Processes under measurement: started, asked of Linux (/proc) what they used, ended. */
import { spawn, type ChildProcess } from 'node:child_process';
import { z } from 'zod';
import { MAIN, nodeOptions } from '../support/servers/program.ts';
import { usageOf, type Usage } from '../support/process-usage.ts';

export type Environment = Readonly<Record<string, string>>;

export interface MeasuredProcess {
  readonly pid: number;
  /** Throws when the process is gone. */
  usage(): Usage;
  /** What it wrote to stdout and stderr, its last 20,000 characters. */
  text(): string;
  /** The lines that it wrote. */
  readonly lines: number;
  readonly isRunning: boolean;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /** SIGTERM, and its end. */
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a Node program of its own environment (PATH and HOME apart). It ends with this process at the latest. */
export function startProcess(args: readonly string[], env: Environment): MeasuredProcess {
  const inherited = Object.fromEntries(['PATH', 'HOME', 'TMPDIR'].flatMap((name) => [[name, process.env[name] ?? '']]));
  const child = spawn(process.execPath, [...args], { env: { ...inherited, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let text = '';
  let lines = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-TEXT_LENGTH_MAX);
      lines += chunk.split('\n').length - 1;
    });
  }
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      running.delete(child);
      resolve();
    });
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`cannot start ${args.join(' ')}`);
  return {
    pid,
    usage: () => usageOf(pid),
    text: () => text,
    ended,
    get lines() {
      return lines;
    },
    get isRunning() {
      return running.has(child);
    },
    stop() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

const TEXT_LENGTH_MAX = 20_000;

/** The address of a daemon under measurement: the system chooses the port, and {@link servedAt} reads it. */
export const ANY_PORT = '127.0.0.1:0';

const listeningSchema = z.object({ msg: z.literal('listening'), healthUrl: z.url(), controlUrl: z.url().optional() });

/** Where a daemon serves, from the line `listening` of its log (level info). Throws when it ends before. */
export async function servedAt(daemon: MeasuredProcess, everyMs = 50): Promise<Omit<z.infer<typeof listeningSchema>, 'msg'>> {
  const find = (): string | undefined => daemon.text().match(/^\{.*"msg":"listening".*\}$/m)?.[0];
  await until('the daemon to log where it listens', () => !daemon.isRunning || find() !== undefined, { everyMs });
  const line = find();
  if (line === undefined) throw new Error(`the daemon ended: ${daemon.text()}`);
  return listeningSchema.parse(JSON.parse(line));
}

/** Waits until the process does what it is for; throws with its output when it ends before. */
export async function untilReady(worker: MeasuredProcess, isReady: () => boolean | Promise<boolean>): Promise<void> {
  await until('the process to be ready', async () => !worker.isRunning || (await isReady()));
  if (!worker.isRunning) throw new Error(`the process ended: ${worker.text()}`);
}

/** Whether the daemon with this health listener is ready. */
export async function answersReady(healthUrl: string): Promise<boolean> {
  return fetch(`${healthUrl}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** `tally bucket add`, as a user does, at a registry, which then ends. Throws with the output when no bucket was connected. */
export async function addBucket(registry: MeasuredProcess, env: Environment, args: readonly string[]): Promise<void> {
  try {
    const { healthUrl, controlUrl = '' } = await servedAt(registry);
    await untilReady(registry, () => answersReady(healthUrl));
    const command = startProcess([...nodeOptions(), MAIN, '--registry', controlUrl, 'bucket', 'add', ...args, '--json'], env);
    await command.ended;
    if (!command.text().includes('"bucket"')) throw new Error(`tally bucket add failed: ${command.text().slice(-2_000)}`);
  } finally {
    await registry.stop();
  }
}

/** Monotonic time, µs, the same for all processes of a machine. */
export function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

/** Waits until the condition holds, asking every `everyMs`; throws after `timeoutMs` with what was waited for. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  { timeoutMs = 60_000, everyMs = 50 }: { readonly timeoutMs?: number; readonly everyMs?: number } = {},
): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`not within ${timeoutMs / 1_000} s: ${what}`);
    await new Promise((resolve) => {
      setTimeout(resolve, everyMs);
    });
  }
}
