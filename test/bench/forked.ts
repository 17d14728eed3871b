/** A process beside those under measurement, as its parent sees it: it answers each message with one, in their order. */
import { fork } from 'node:child_process';

export interface Forked<Request, Reply> {
  /** The next message, for a process that sends one of itself. */
  next(): Promise<Reply>;
  /** Sends a request, and resolves with its reply. Throws what the process answers as its `error`. */
  ask(request: Request): Promise<Reply>;
  /** Ends the process. */
  close(): void;
}

/** Starts it. */
export function startForked<Request extends object, Reply extends object>(file: URL): Forked<Request, Reply> {
  const child = fork(file, { execArgv: [], env: { PATH: process.env['PATH'] } });
  const waiting: PromiseWithResolvers<Reply>[] = [];
  child.on('message', (reply: Reply) => {
    const first = waiting.shift();
    if ('error' in reply) first?.reject(new Error(`${file.pathname}: ${String(reply.error)}`));
    else first?.resolve(reply);
  });
  child.once('exit', (code) => {
    for (const { reject } of waiting.splice(0)) reject(new Error(`${file.pathname} ended with ${code}`));
  });
  function next(): Promise<Reply> {
    const reply = Promise.withResolvers<Reply>();
    waiting.push(reply);
    return reply.promise;
  }
  return {
    next,
    ask(request) {
      const reply = next();
      child.send(request);
      return reply;
    },
    close: () => child.disconnect(),
  };
}
