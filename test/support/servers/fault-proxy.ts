/** A proxy on loopback before OpenSearch, SQS or S3 that passes requests on, until it is told to interfere. */
import { once } from 'node:events';
import { Agent, createServer, request as sendRequest } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import type { Socket } from 'node:net';
import { closeServer, listen } from './listening.ts';

export interface PassingRequest {
  readonly method: string;
  readonly path: string;
  /** What an SQS request asks for, without `AmazonSQS.`; empty for others. */
  readonly operation: string;
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

export type Interference =
  /** Answered here; the server never sees it. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly reason?: string;
      readonly body?: string;
      readonly headers?: OutgoingHttpHeaders;
    }
  /** Answered here, with the help of the server, which may be asked with another body. */
  | { readonly kind: 'reply'; readonly reply: (body: string, ask: (body: string) => Promise<Reply>) => Promise<Reply> }
  /** Never answered, and the server never sees it. */
  | { readonly kind: 'hang' }
  /** The server does it, and its answer is never passed on. */
  | { readonly kind: 'swallow-answer' };

export interface Reply {
  readonly status: number;
  readonly body: string;
}

export interface Rule {
  /** Resolves at the first request that is interfered with. For `swallow-answer`: once the server has answered it. */
  readonly hit: Promise<void>;
  /** Ends the interference; what hangs because of it is reset. */
  remove(): void;
}

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>;

/** Longer than any test: a client's idle connection is not closed under its next request. */
const KEEP_ALIVE_MS = 3_600_000;

interface ActiveRule {
  readonly interference: Interference;
  readonly matches: (request: PassingRequest) => boolean;
  readonly hanging: Set<ServerResponse>;
  readonly hit: () => void;
}

/** Starts a proxy before the HTTP server at `target` (its scheme, host and port). */
export async function startFaultProxy(target: string) {
  const { hostname, port: targetPort } = new URL(target);
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const rules: ActiveRule[] = [];
  const keeper = await startPortKeeper();

  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (incoming, outgoing) => {
    void readBody(incoming).then((body) => handle(incoming, outgoing, body), ignore);
  });
  const port = await listen(server);

  function addRule(interference: Interference, matches: (request: PassingRequest) => boolean): Rule {
    const hit = Promise.withResolvers<void>();
    const rule: ActiveRule = { interference, matches, hanging: new Set(), hit: hit.resolve };
    rules.push(rule);
    return {
      hit: hit.promise,
      remove() {
        if (!rules.includes(rule)) return;
        rules.splice(rules.indexOf(rule), 1);
        for (const outgoing of rule.hanging) outgoing.socket?.resetAndDestroy();
      },
    };
  }

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer): Promise<void> {
    const passed = passingRequest(incoming, body);
    const rule = rules.findLast(({ matches }) => matches(passed));
    const interference = rule?.interference;
    if (interference === undefined) return forward(incoming, outgoing, body);
    if (interference.kind === 'swallow-answer') {
      rule?.hanging.add(outgoing);
      await answerOf(incoming, body).catch(ignore);
      rule?.hit();
      return;
    }
    rule?.hit();
    switch (interference.kind) {
      case 'answer':
        outgoing.writeHead(interference.status, interference.reason, { 'content-type': 'application/json', ...interference.headers });
        outgoing.end(incoming.method === 'HEAD' ? undefined : (interference.body ?? ''));
        return;
      case 'hang':
        rule?.hanging.add(outgoing);
        return;
      case 'reply':
        return reply(interference, { incoming, outgoing, body });
    }
  }

  async function reply(
    interference: Extract<Interference, { kind: 'reply' }>,
    { incoming, outgoing, body }: { readonly incoming: IncomingMessage; readonly outgoing: ServerResponse; readonly body: Buffer },
  ): Promise<void> {
    async function ask(text: string): Promise<Reply> {
      const bytes = Buffer.from(text);
      Object.assign(incoming.headers, { 'content-length': String(bytes.byteLength), 'accept-encoding': 'identity' });
      const { answer, body: answered } = await answerOf(incoming, bytes);
      return { status: answer.statusCode ?? 502, body: answered.toString('utf8') };
    }
    try {
      const replied = await interference.reply(body.toString('utf8'), ask);
      outgoing.writeHead(replied.status, { 'content-type': 'application/json' });
      outgoing.end(replied.body);
    } catch {
      outgoing.socket?.destroy();
    }
  }

  function answerOf(incoming: IncomingMessage, body: Buffer): Promise<{ readonly answer: IncomingMessage; readonly body: Buffer }> {
    const { method, url: path, headers } = incoming;
    return new Promise((resolve, reject) => {
      const asking = sendRequest({ hostname, port: targetPort, method, path, headers, agent }, (answer) => {
        readBody(answer).then((text) => resolve({ answer, body: text }), reject);
      });
      // the server may close an idle connection just when it is used again, and has not seen the request then
      asking.on('error', (error) => {
        if (asking.reusedSocket) resolve(answerOf(incoming, body));
        else reject(error);
      });
      asking.end(body);
    });
  }

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer): Promise<void> {
    try {
      const { answer, body: text } = await answerOf(incoming, body);
      outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.headers);
      outgoing.end(text);
    } catch {
      outgoing.socket?.destroy();
    }
  }

  return {
    url: `http://127.0.0.1:${port}`,
    /** From now on the requests that match (all, without `matches`) are interfered with. Of several rules the newest that matches counts. */
    interfere: (interference: Interference, matches: (request: PassingRequest) => boolean = () => true) => addRule(interference, matches),
    /** Interferes with the first request that matches; every later one that matches hangs. So the moment lasts, however late it is noticed, until the rule is removed. */
    holdAt(interference: Interference, matches: (request: PassingRequest) => boolean): Rule {
      const later = addRule({ kind: 'hang' }, matches);
      let isFirst = true;
      const first = addRule(interference, (request) => {
        const isTheOne = isFirst && matches(request);
        if (isTheOne) isFirst = false;
        return isTheOne;
      });
      return {
        hit: first.hit,
        remove() {
          first.remove();
          later.remove();
        },
      };
    },
    /** Resets all connections and refuses new ones until `accept`. The port stays this proxy's. */
    async refuse(): Promise<void> {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      await keeper.keep(port);
      server.closeAllConnections();
      await closed;
    },
    async accept(): Promise<void> {
      await listen(server, port);
      keeper.release();
    },
    async close(): Promise<void> {
      agent.destroy();
      await closeServer(server);
      keeper.close();
    },
  };
}

async function startPortKeeper() {
  const server = createTcpServer((socket) => socket.on('error', ignore));
  const itsPort = await listen(server);
  let kept: Socket | undefined;
  const release = (): void => void kept?.resetAndDestroy();
  return {
    /** From now on the port is in use by a connection: none can be made to it, and no other process is given it. */
    async keep(localPort: number): Promise<void> {
      kept = connect({ host: '127.0.0.1', port: itsPort, localAddress: '127.0.0.1', localPort });
      await once(kept, 'connect');
    },
    /** To be called when the port is listened on again, which a connection does not prevent. */
    release,
    close(): void {
      release();
      server.close();
    },
  };
}

function passingRequest({ method = 'GET', url = '/', headers }: IncomingMessage, body: Buffer): PassingRequest {
  const operation = String(headers['x-amz-target'] ?? '').replace('AmazonSQS.', '');
  return { method, path: url, operation, body: body.toString('utf8'), headers };
}

async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function ignore(): void {
  // the other side went away: that is what this proxy is for
}
