/** ElasticMQ: a server of queues alone, with its queues and messages on disk. It is killed and started again by a program of the machine. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from './aws.ts';
import { unusedPort } from './unused-port.ts';

const run = promisify(execFile);

/** Takes `up`, `kill` or `wipe`, and a port; undefined when this machine has none. */
export const elasticMqProgram = process.env['TALLY_TEST_ELASTICMQ'];

export type ElasticMq = Awaited<ReturnType<typeof startElasticMq>>;

/** Starts one without queues. */
export async function startElasticMq(program: string) {
  const port = String(await unusedPort());
  const folder = await mkdtemp(join(tmpdir(), 'tally-elasticmq-'));
  const log = join(folder, port, 'log');
  const act = async (name: 'up' | 'kill' | 'wipe'): Promise<void> =>
    void (await run(program, [name, port], { env: { ...process.env, ELASTICMQ_RUN_ROOT: folder } }));

  /** Starts it, repeatedly if need be, until all messages are restored. */
  async function up(): Promise<void> {
    for (;;) {
      const before = await readFile(log, 'utf8');
      await act('up');
      let restored: boolean | undefined;
      await until(
        'ElasticMQ has restored its queues',
        async () => (restored = hasRestored(before, await readFile(log, 'utf8'))) !== undefined,
      );
      if (restored === true) return;
      await act('kill');
    }
  }
  await act('up');
  return {
    url: `http://127.0.0.1:${port}`,
    /** SIGKILL. */
    kill: () => act('kill'),
    up,
    /** Ends it, and removes what it has. */
    async [Symbol.asyncDispose](): Promise<void> {
      await act('wipe');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Whether the last start restored all queues' messages; undefined until the log says so. On a busy machine ElasticMQ gives up after five
 * seconds (`SqlQueuePersistenceActor`): it serves its queues without their messages, which are there again after the next start.
 */
function hasRestored(before: string, log: string): boolean | undefined {
  const since = log.slice(before.length);
  if (since.includes('Failed to restore persisted queues')) return false;
  const queues = new Set(Array.from(log.matchAll(/Creating queue CreateQueueData\(([^,]+),/g), ([, name]) => name));
  const restored = new Set(Array.from(since.matchAll(/Restored \d+ messages in queue (\S+)/g), ([, name]) => name));
  return restored.isSupersetOf(queues) ? true : undefined;
}
