/** A proxy before OpenSearch that counts its requests by operation. */
import { Agent, createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';

export interface OpenSearchCounts {
  readonly url: string;
  /** By operation, since they were last asked for. */
  counts(): Readonly<Record<string, number>>;
  close(): Promise<void>;
}

const kindSchema = z.object({
  query: z.object({ bool: z.object({ filter: z.tuple([z.object({ term: z.object({ kind: z.string() }) })]) }) }),
});

/** Starts it. `stateIndex`: the index of the records, whose lists are counted by their kind. */
export async function startOpenSearchCounts(openSearchUrl: string, stateIndex: string): Promise<OpenSearchCounts> {
  let counts = new Map<string, number>();
  const agent = new Agent({ keepAlive: true });

  function operationOf(path: string, body: string): string {
    const [address = ''] = path.split('?');
    const [index = '', operation = '_indices'] = address.split('/').slice(1);
    const isState = index === stateIndex || (index === '_bulk' && body.slice(0, 500).includes(`"${stateIndex}"`));
    const name = (index.startsWith('_') ? index : operation).replace(/^_/, '');
    if (!isState) return `OpenSearch objects ${name}`;
    const kind = name === 'search' ? (kindSchema.safeParse(JSON.parse(body)).data?.query.bool.filter[0].term.kind ?? 'what is due') : '';
    return `OpenSearch state ${name === 'search' ? `list ${kind}` : name}`;
  }

  const server = createServer((incoming, outgoing) => {
    void buffer(incoming).then((body) => {
      const { method, url = '', headers } = incoming;
      const operation = operationOf(url, body.toString('utf8'));
      counts.set(operation, (counts.get(operation) ?? 0) + 1);
      const passed = send(new URL(url, openSearchUrl), { method, headers, agent }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      passed.on('error', () => outgoing.destroy());
      passed.end(body);
    });
  });
  // longer than a client keeps a connection: one that it is about to use must not end
  server.keepAliveTimeout = 300_000;
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts() {
      const before = Object.fromEntries(counts);
      counts = new Map();
      return before;
    },
    async close() {
      agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
