/** A `tally serve` under measurement. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { countsSchema } from '../../../src/domain/reindex/counts.ts';
import { jobStates } from '../../../src/domain/reindex/job.ts';

const MAIN = new URL('../../../src/main.ts', import.meta.url).pathname;
const READY_WITHIN_MS = 60_000;

/** Of a job's view, what is measured here. */
const jobSchema = z.object({
  id: z.string(),
  state: z.enum(jobStates),
  startedAtMs: z.number().optional(),
  finishedAtMs: z.number().optional(),
  counts: countsSchema.optional(),
  error: z.unknown().optional(),
  pausedBecause: z.string().optional(),
});
export type JobView = z.infer<typeof jobSchema>;

export interface Worker {
  readonly pid: number;
  /** A request to its control plane; throws for any answer but 2xx. */
  ask(method: string, path: string, body?: unknown): Promise<unknown>;
  job(id: string): Promise<JobView>;
  requestReindex(bucket: string, options: Readonly<Record<string, unknown>>): Promise<JobView>;
  stop(): Promise<void>;
}

export interface WorkerOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Arguments for node, before the program: `--cpu-prof` … */
  readonly nodeArguments?: readonly string[];
}

/** Starts a worker, and resolves when its control plane answers. */
export async function startWorker({ env, nodeArguments = [] }: WorkerOptions): Promise<Worker> {
  const [httpPort, healthPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, [...nodeArguments, MAIN, 'serve'], {
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      TALLY_HTTP_ADDRESS: `127.0.0.1:${httpPort}`,
      TALLY_HEALTH_ADDRESS: `127.0.0.1:${healthPort}`,
      TALLY_LOG_LEVEL: 'error',
      ...env,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const killed = (): void => void child.kill('SIGKILL');
  process.once('exit', killed);

  async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await fetch(`http://127.0.0.1:${httpPort}${path}`, {
      method,
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  await untilAnswers(child, () => ask('GET', '/v1/buckets'));
  return {
    pid: child.pid ?? 0,
    ask,
    job: async (id) => jobSchema.parse(await ask('GET', `/v1/jobs/${id}`)),
    requestReindex: async (bucket, options) => jobSchema.parse(await ask('POST', `/v1/buckets/${bucket}/reindex`, options)),
    async stop() {
      process.removeListener('exit', killed);
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function untilAnswers(child: ChildProcess, ask: () => Promise<unknown>): Promise<void> {
  const endMs = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const answered = await ask().then(
      () => true,
      () => false,
    );
    if (answered) return;
    if (child.exitCode !== null) throw new Error(`tally serve ended with ${child.exitCode}`);
    if (performance.now() > endMs) throw new Error('tally serve does not answer');
    await delay(100);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}
