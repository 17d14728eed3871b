/** The listing server beside this process, so that what is measured here is not the server. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { z } from 'zod';
import type { RequestCounts } from './listing/listing-server.ts';
import { controlListingServer, type Control } from './listing-control.ts';

const startedSchema = z.object({ url: z.string() });

export interface ForkedListingServer {
  readonly url: string;
  readonly pid: number;
  /** Tells it what to do from now on; answers its counts of before. */
  control(told: Control): Promise<RequestCounts>;
  close(): Promise<void>;
}

/** Starts the server as a process of its own. */
export async function forkListingServer(): Promise<ForkedListingServer> {
  const child = fork(new URL('listing-server-process.ts', import.meta.url), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit');
  const [message] = (await Promise.race([once(child, 'message'), ended.then(() => [undefined])])) as [unknown];
  const { url } = startedSchema.parse(message);
  return {
    url,
    pid: child.pid ?? 0,
    control: (told) => controlListingServer(url, told),
    async close() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
