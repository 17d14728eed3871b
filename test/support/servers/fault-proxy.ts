/** A proxy on loopback before OpenSearch, SQS or S3 that passes requests on, until it is told to interfere. */
import { Agent, createServer, request as sendRequest } from 'node:http';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

export interface PassingRequest {
  readonly method: string;
  readonly path: string;
  /** What an SQS request asks for, without `AmazonSQS.`; empty for others. */
  readonly operation: string;
  readonly body: string;
}

export type Interference =
  /** Answered here; the server never sees it. */
  | { readonly kind: 'answer'; readonly status: number; readonly body?: string; readonly headers?: OutgoingHttpHeaders }
  /** The connection is reset before the server sees it. */
  | { readonly kind: 'cut' }
  /** Never answered, and the server never sees it. */
  | { readonly kind: 'hang' }
  /** The server does it, and its answer is never passed on. */
  | { readonly kind: 'swallow-answer' }
  | { readonly kind: 'delay'; readonly delayMs: number };

export interface Rule {
  /** Requests interfered with so far. For `swallow-answer`: those that the server has answered. */
  readonly hits: number;
  /** Resolves at the first of them. */
  readonly hit: Promise<void>;
  /** Ends the interference; what hangs because of it is reset. */
  remove(): void;
}

export interface FaultProxy {
  readonly url: string;
  /** From now on the requests that match (all, without `matches`) are interfered with. Of several rules the newest that matches counts. */
  interfere(interference: Interference, matches?: (request: PassingRequest) => boolean): Rule;
  /** Resets all connections and refuses new ones until {@link accept}. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  /** Connections accepted so far. */
  readonly connections: number;
  close(): Promise<void>;
}

interface ActiveRule {
  readonly interference: Interference;
  readonly matches: (request: PassingRequest) => boolean;
  readonly hanging: Set<ServerResponse>;
  readonly count: () => void;
}

/** Starts a proxy before the HTTP server at `target` (its scheme, host and port). */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const rules: ActiveRule[] = [];
  let connections = 0;

  const server = createServer((incoming, outgoing) => {
    void readBody(incoming).then((body) => handle(incoming, outgoing, body), ignore);
  });
  server.on('connection', () => {
    connections += 1;
  });
  const port = await listen(0);

  async function listen(wanted: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(wanted, '127.0.0.1', resolve);
    });
    return (server.address() as AddressInfo).port;
  }

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse, body: Buffer): Promise<void> {
    const rule = ruleFor(incoming, body);
    const interference = rule?.interference;
    if (interference === undefined) return forward(incoming, outgoing, body);
    if (interference.kind === 'swallow-answer') {
      rule?.hanging.add(outgoing);
      await answerOf(incoming, body).catch(ignore);
      rule?.count();
      return;
    }
    rule?.count();
    switch (interference.kind) {
      case 'answer':
        outgoing.writeHead(interference.status, { 'content-type': 'application/json', ...interference.headers });
        outgoing.end(incoming.method === 'HEAD' ? undefined : (interference.body ?? ''));
        return;
      case 'cut':
        outgoing.socket?.resetAndDestroy();
        return;
      case 'hang':
        rule?.hanging.add(outgoing);
        return;
      case 'delay':
        await delay(interference.delayMs);
        return forward(incoming, outgoing, body);
    }
  }

  function ruleFor({ method = 'GET', url = '/', headers }: IncomingMessage, body: Buffer): ActiveRule | undefined {
    if (rules.length === 0) return undefined;
    const operation = String(headers['x-amz-target'] ?? '').replace('AmazonSQS.', '');
    const request = { method, path: url, operation, body: body.toString('utf8') };
    return rules.findLast((rule) => rule.matches(request));
  }

  function answerOf(incoming: IncomingMessage, body: Buffer): Promise<{ readonly answer: IncomingMessage; readonly body: Buffer }> {
    const { method, url: path, headers } = incoming;
    return new Promise((resolve, reject) => {
      const asking = sendRequest({ hostname, port: targetPort, method, path, headers, agent }, (answer) => {
        readBody(answer).then((text) => resolve({ answer, body: text }), reject);
      });
      asking.on('error', reject);
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
    interfere(interference, matches = () => true) {
      const hit = Promise.withResolvers<void>();
      let hits = 0;
      const count = (): void => {
        hits += 1;
        hit.resolve();
      };
      const rule: ActiveRule = { interference, matches, hanging: new Set(), count };
      rules.push(rule);
      return {
        get hits() {
          return hits;
        },
        hit: hit.promise,
        remove() {
          if (!rules.includes(rule)) return;
          rules.splice(rules.indexOf(rule), 1);
          for (const outgoing of rule.hanging) outgoing.socket?.resetAndDestroy();
        },
      };
    },
    async refuse() {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      server.closeAllConnections();
      await closed;
    },
    async accept() {
      await listen(port);
    },
    get connections() {
      return connections;
    },
    async close() {
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function ignore(): void {
  // the other side went away: that is what this proxy is for
}
