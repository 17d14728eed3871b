/** A `tally serve` under measurement. */
import { setTimeout as delay } from 'node:timers/promises';
import { job as jobSchema, type Job } from '../../../src/registry/contract/job.ts';
import { MAIN, nodeOptions, ownVariables } from '../../support/servers/program.ts';
import { metricsOf } from '../../support/metrics.ts';
import { ANY_PORT, servedAt, startProcess, until } from '../processes.ts';
import type { Usage } from '../../support/process-usage.ts';
import type { Environment } from '../processes.ts';

export interface Worker {
  usage(): Usage;
  /** Turns of parts so far. */
  turns(): Promise<number>;
  /** A request to its control plane; throws for any answer but 2xx. */
  ask(method: string, path: string, body?: unknown): Promise<unknown>;
  /** Re-indexes a bucket, without the wait for late events, which costs 60 s and nothing else. Resolves when the job has ended, however it did. */
  reindex(bucket: string): Promise<Job>;
  stop(): Promise<void>;
  /** SIGKILL. */
  kill(): void;
}

/** Each look costs the worker and OpenSearch several requests; how long the job took is in its record. */
const LOOK_EVERY_MS = 1_000;
/** Some 600 objects a second for the largest bucket: something hangs. */
const JOB_WITHIN_MS = 3_600_000;

/** Starts a worker, and resolves when its control plane answers. `nodeArguments` come before the program: `--cpu-prof` … */
export async function startWorker(env: Environment, nodeArguments: readonly string[] = []): Promise<Worker> {
  const worker = startProcess([...nodeOptions(), ...nodeArguments, MAIN, 'serve'], {
    TALLY_HTTP_ADDRESS: ANY_PORT,
    TALLY_HEALTH_ADDRESS: ANY_PORT,
    ...ownVariables(),
    ...env,
  });
  const { controlUrl, healthUrl } = await servedAt(worker);

  async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await fetch(`${controlUrl}${path}`, {
      method,
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}\n${worker.text()}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  await until('the worker answers', async () => {
    if (!worker.isRunning) throw new Error(`the worker ended: ${worker.text()}`);
    return ask('GET', '/v1/buckets').then(
      () => true,
      () => false,
    );
  });
  return {
    usage: () => worker.usage(),
    turns: async () => (await metricsOf([`${healthUrl}/metrics`])).sum('tally_reindex_turns_total'),
    ask,
    async reindex(bucket) {
      const { id } = jobSchema.parse(await ask('POST', `/v1/buckets/${bucket}/reindex`, { now: true }));
      const endMs = performance.now() + JOB_WITHIN_MS;
      for (;;) {
        const job = jobSchema.parse(await ask('GET', `/v1/jobs/${id}`));
        if (!['queued', 'running'].includes(job.state)) return job;
        if (performance.now() > endMs || !worker.isRunning)
          throw new Error(`the job does not end: ${JSON.stringify(job)}\n${worker.text()}`);
        await delay(LOOK_EVERY_MS);
      }
    },
    stop: () => worker.stop(),
    kill: () => process.kill(worker.pid, 'SIGKILL'),
  };
}
