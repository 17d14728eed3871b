/** The daemon as a process: started with an environment of its own, watched by its log, health and metrics, ended by signals. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseMetrics } from '../metrics.ts';
import { until } from './aws.ts';
import { MAIN, nodeOptions, ownVariables } from './program.ts';

export type Environment = Readonly<Record<string, string>>;

/** A line of the daemon's log: `msg`, `level` and what belongs to it. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface Exit {
  /** Null when a signal that the process did not handle ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Answer {
  readonly status: number;
  /** Parsed JSON; the text where it is none. */
  readonly body: unknown;
}

export type Daemon = Awaited<ReturnType<typeof startDaemon>>;

/** Longer than anything takes on a machine that is ten times too busy, and shorter than a test may take, so that it is told what was waited for. */
const PATIENCE_MS = 300_000;
/** The same for an answer: the control plane itself ends a request after a minute. */
const ANSWER_TIMEOUT_MS = 300_000;
/** The system chooses the port; the daemon logs which one it has. */
const ANY_PORT = '127.0.0.1:0';
/** What the process under test may see of this one. */
const INHERITED = ['PATH', 'HOME', 'TMPDIR', 'NODE_COMPILE_CACHE'];

const running = new Set<ChildProcess>();

/** Kills what runs: at the end of each file (end-daemons.ts), and of this process at the latest. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}
process.once('exit', killAll);
// a run that is interrupted ends without 'exit', and its daemons would go on asking ports that are others' by then
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    killAll();
    process.kill(process.pid, signal);
  });
}

/**
 * Starts `tally serve`, and resolves when it listens, or has ended before. `env` is all that it is given of TALLY_ and AWS_
 * variables, besides addresses and credentials that mean nothing. `main`: the first file of the program.
 */
export async function startDaemon(env: Environment, args: readonly string[] = ['serve'], main = MAIN) {
  const started = {
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    TALLY_HTTP_ADDRESS: ANY_PORT,
    TALLY_HEALTH_ADDRESS: ANY_PORT,
    TALLY_EMBEDDED_ADDRESS: ANY_PORT,
    TALLY_SOCKET: join(mkdtempSync(join(tmpdir(), 'tally-daemon-')), 'socket'),
    ...env,
  };
  const child = spawnTally(args, started, main);
  const output = capture(child);
  const isRunning = (): boolean => running.has(child);
  const exited = exitOf(child);
  const line = (message: string, timeoutMs = PATIENCE_MS): Promise<LogLine> =>
    output.first(`the log line "${message}"`, () => output.log.find(({ msg }) => msg === message), timeoutMs);
  const listening = await line('listening').catch((error: unknown) => (isRunning() ? Promise.reject(error) : undefined));

  function urlOf(name: 'controlUrl' | 'healthUrl' | 'embeddedUrl'): string {
    const url = listening?.[name];
    if (typeof url !== 'string') throw new Error(`the daemon has no ${name}\n${output.tail()}`);
    return url;
  }

  async function readyz(): Promise<Answer | undefined> {
    return ask('GET', `${urlOf('healthUrl')}/readyz`).catch(() => undefined);
  }

  return {
    pid: child.pid ?? 0,
    /** Throws for a daemon that serves no control plane. */
    get controlUrl() {
      return urlOf('controlUrl');
    },
    /** Throws for a daemon that ended before it served anything. */
    get healthUrl() {
      return urlOf('healthUrl');
    },
    /** SQS, SNS and S3 of the embedded mode. Throws without it. */
    get embeddedUrl() {
      return urlOf('embeddedUrl');
    },
    /** Lines of the log so far. */
    log: output.log,
    /** Those with this message. */
    logged: (message: string) => output.log.filter(({ msg }) => msg === message),
    /** Resolves with the first log line with this message, past or future. Rejects when the process ends without one, or after the timeout. */
    line,
    /** Resolves when these words were written beside the log (see `text`). Rejects when the process ends before. */
    async said(words: string): Promise<void> {
      await output.first(`the words "${words}"`, () => output.text().includes(words) || undefined, PATIENCE_MS);
    },
    /** What was written to stderr, and to stdout without being JSON. */
    get text() {
      return output.text();
    },
    /** Resolves when /readyz answers 200. Fails when the process ends before, or after the timeout. */
    async ready(timeoutMs = PATIENCE_MS): Promise<void> {
      let last: Answer | undefined;
      const isReadyOrGone = async (): Promise<boolean> => {
        if (!isRunning()) return true;
        last = await readyz();
        return last?.status === 200;
      };
      await until('ready', isReadyOrGone, timeoutMs).catch((error: unknown) => {
        throw new Error(`the daemon is not ready: ${JSON.stringify(last?.body)}\n${output.tail()}`, { cause: error });
      });
      if (!isRunning()) throw new Error(`the daemon ended: ${JSON.stringify(await exited)}\n${output.tail()}`);
    },
    /** /readyz as it is now; undefined while nothing answers. */
    readyz,
    /** The sum of all series of a metric that have these labels. */
    async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
      const { body } = await ask('GET', `${urlOf('healthUrl')}/metrics`);
      return parseMetrics(String(body)).sum(name, labels);
    },
    /** What makes a command its operator. */
    operator: { TALLY_SOCKET: started.TALLY_SOCKET },
    /** A request to the control plane. */
    request: (method: string, path: string, body?: unknown) => ask(method, `${urlOf('controlUrl')}${path}`, body),
    get isRunning() {
      return isRunning();
    },
    /** SIGTERM, and the exit that follows. */
    stop: () => {
      child.kill('SIGTERM');
      return exited;
    },
    /** SIGKILL, and the exit that follows. */
    kill: () => {
      child.kill('SIGKILL');
      return exited;
    },
  };
}

/** The codes of faults that say that the request may be repeated. */
const REPEATED: ReadonlySet<unknown> = new Set(['POST request.timeout', 'GET request.timeout', 'DELETE connect.removing']);

/** A request to the control plane. What one request cannot finish on a busy machine is repeated, as its fault says, for five minutes. */
export async function repeated(daemon: Daemon, method: string, path: string, body?: unknown): Promise<Answer> {
  let answer: Answer | undefined;
  await until('one request finishes', async () => {
    answer = await daemon.request(method, path, body);
    const { code } = (answer.body ?? {}) as { readonly code?: string };
    return !REPEATED.has(`${method} ${code ?? ''}`);
  }).catch((error: unknown) => {
    throw new Error(`${method} ${path}: ${JSON.stringify(answer?.body)}`, { cause: error });
  });
  return answer!;
}

export interface CommandResult extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command of the command line to its end. */
export async function runTally(args: readonly string[], env: Environment): Promise<CommandResult> {
  const child = spawnTally(args, { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', ...env });
  const parts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      parts[name] += text;
    });
  }
  return { ...(await exitOf(child)), ...parts };
}

function spawnTally(args: readonly string[], env: Environment, main = MAIN): ChildProcess {
  const inherited = INHERITED.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const child = spawn(process.execPath, [...nodeOptions(), main, ...args], {
    env: { ...Object.fromEntries(inherited), ...ownVariables(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Resolves when the process has ended and all that it wrote was read. */
function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
}

function capture(child: ChildProcess) {
  const log: LogLine[] = [];
  const lines: string[] = [];
  const other: string[] = [];
  const news = new EventEmitter().setMaxListeners(0);
  let hasEnded = false;
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      const parsed = stream === child.stdout ? jsonOf(line) : undefined;
      if (isLogLine(parsed)) log.push(parsed);
      else other.push(line);
      news.emit('line');
    });
  }
  child.once('close', () => {
    hasEnded = true;
    news.emit('line');
  });
  const tail = (): string => lines.slice(-30).join('\n');
  return {
    log,
    text: () => other.join('\n'),
    tail,
    /** Resolves with what `find` finds first, looking at the beginning and after each line. Rejects when the output ends without it, or after the timeout. */
    async first<Found>(what: string, find: () => Found | undefined, timeoutMs: number): Promise<Found> {
      const tooLate = AbortSignal.timeout(timeoutMs);
      for (;;) {
        const found = find();
        if (found !== undefined) return found;
        if (hasEnded) throw new Error(`the process ended without ${what}\n${tail()}`);
        await once(news, 'line', { signal: tooLate }).catch((error: unknown) => {
          throw new Error(`not within ${timeoutMs} ms: ${what}\n${tail()}`, { cause: error });
        });
      }
    },
  };
}

function isLogLine(value: unknown): value is LogLine {
  return typeof value === 'object' && value !== null && 'msg' in value;
}

async function ask(method: string, url: string, body?: unknown): Promise<Answer> {
  const answer = await fetch(url, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
  const text = await answer.text();
  return { status: answer.status, body: jsonOf(text) ?? text };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
