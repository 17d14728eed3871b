/** ElasticMQ: a server of queues alone, with its queues and messages on disk. It is killed and started again by a program of the machine. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { unusedPort } from './unused-port.ts';

const run = promisify(execFile);

/** Takes `up`, `kill` or `wipe`, and a port; undefined when this machine has none. */
export const elasticMqProgram = process.env['TALLY_TEST_ELASTICMQ'];

export interface ElasticMq {
  readonly url: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  up(): Promise<void>;
  /** Ends it, and removes what it has. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts one without queues. */
export async function startElasticMq(program: string): Promise<ElasticMq> {
  const port = await unusedPort();
  const act = async (name: 'up' | 'kill' | 'wipe'): Promise<void> => void (await run(program, [name, String(port)]));
  await act('up');
  return { url: `http://127.0.0.1:${port}`, kill: () => act('kill'), up: () => act('up'), [Symbol.asyncDispose]: () => act('wipe') };
}
