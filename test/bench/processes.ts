/** Processes under measurement: started, asked of Linux (/proc) what they used, ended. */
import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

export type Environment = Readonly<Record<string, string>>;

/** What a process used since it began. */
export interface Usage {
  /** User and system time of all its threads, to 10 ms. */
  readonly cpuUs: number;
  /** The most memory that was resident. */
  readonly peakRssBytes: number;
  /** What is resident now. */
  readonly rssBytes: number;
}

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
/** /proc counts CPU time in ticks of USER_HZ, which is 100 on every platform that Node runs on. */
const TICK_US = 10_000;

/** What Linux says of a process. Throws when it is gone, or where there is no /proc. */
export function usageOf(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // the second field, the program's name in parentheses, may hold spaces
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const bytesOf = (name: string): number => {
    const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no ${name}`);
    return Number(kilobytes) * 1_024;
  };
  return { cpuUs: (Number(fields[11]) + Number(fields[12])) * TICK_US, peakRssBytes: bytesOf('VmHWM'), rssBytes: bytesOf('VmRSS') };
}

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
