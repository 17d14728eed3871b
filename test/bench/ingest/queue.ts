/** The queue process as its parent sees it: one request at a time, each with its reply. */
import { fork } from 'node:child_process';
import type { Fill, QueueReply, QueueRequest } from './queue-server.ts';

export interface BenchQueue {
  /** Where SQS and S3 are. */
  readonly endpoint: string;
  /** Sends a request; throws what the process answers as its error. */
  ask(request: QueueRequest): Promise<QueueReply>;
  /** Makes a queue (with a dead-letter queue) that nobody used before; its URL. */
  createQueue(): Promise<{ readonly name: string; readonly url: string }>;
  /** Puts messages in; resolves when the first 50,000 of them are there. */
  putMessages(messages: Omit<Fill, 'kind'>): Promise<QueueReply>;
  /** Resolves when all of the last fill was deleted. */
  drained(): Promise<QueueReply>;
  close(): void;
}

/** Starts the process. */
export async function startQueue(): Promise<BenchQueue> {
  const child = fork(new URL('queue-server.ts', import.meta.url), { execArgv: [], env: { PATH: process.env['PATH'] } });
  const waiting: { resolve: (reply: QueueReply) => void; reject: (error: Error) => void }[] = [];
  child.on('message', (answer: QueueReply) => {
    const first = waiting.shift();
    if (answer.error === undefined) first?.resolve(answer);
    else first?.reject(new Error(`the queue process: ${answer.error}`));
  });
  child.once('exit', (code) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(`the queue process ended with ${code}`));
  });

  function nextReply(): Promise<QueueReply> {
    return new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
    });
  }

  function ask(request: QueueRequest): Promise<QueueReply> {
    const answer = nextReply();
    child.send(request);
    return answer;
  }

  const { endpoint } = await nextReply();
  let queues = 0;
  return {
    endpoint,
    ask,
    async createQueue() {
      queues += 1;
      const name = `bench-${queues}`;
      await ask({ kind: 'create-queue', queue: name });
      return { name, url: `${endpoint}/000000000000/${name}` };
    },
    putMessages: (messages) => ask({ kind: 'fill', ...messages }),
    drained: () => ask({ kind: 'await-drained' }),
    close: () => child.disconnect(),
  };
}
