/** Several nodes of one cluster, of which some do not answer. The nodes are plain HTTP servers. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createOpenSearchClient, type OpenSearchClient } from '../../../src/adapters/opensearch/client.ts';

interface Node {
  readonly url: string;
  readonly asked: () => number;
}

describe('a client of several nodes', () => {
  const closers: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });

  async function startNode(listener: RequestListener): Promise<Node & { stop(): Promise<void> }> {
    let asked = 0;
    const server = createServer((incoming, outgoing) => {
      asked += 1;
      listener(incoming, outgoing);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const stop = async (): Promise<void> => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    };
    closers.push(stop);
    return { url: `http://127.0.0.1:${port}`, asked: () => asked, stop };
  }

  const startHealthy = () =>
    startNode((_, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{"up":true}');
    });

  function connect(urls: readonly string[], requestTimeoutMs = 60_000): OpenSearchClient {
    const client = createOpenSearchClient({ urls, requestTimeoutMs });
    closers.push(() => client.close());
    return client;
  }

  const request = { method: 'GET', path: '/' } as const;
  const answer = { status: 200, body: { up: true } };

  it('shares requests among them', async () => {
    const nodes = [await startHealthy(), await startHealthy()];
    const client = connect(nodes.map(({ url }) => url));
    for (let count = 0; count < 6; count += 1) expect(await client.send(request)).toEqual(answer);
    expect(nodes.map((node) => node.asked())).toEqual([3, 3]);
  });

  it('goes on without one that takes no connection, from the first request', async () => {
    const other = await startHealthy();
    // ports that nothing is ever given; a name may have several addresses
    const client = connect(['http://localhost:1', other.url, 'http://127.0.0.1:1']);
    for (let count = 0; count < 6; count += 1) expect(await client.send(request)).toEqual(answer);
    expect(other.asked()).toBe(6);
  });

  it('goes on without one whose name cannot be found', async () => {
    const other = await startHealthy();
    const client = connect(['http://no-such-node.invalid:9200', other.url]);
    for (let count = 0; count < 4; count += 1) expect(await client.send(request)).toEqual(answer);
  });

  it('leaves one alone that did not answer in time', async () => {
    const silent = await startNode(() => {});
    const other = await startHealthy();
    const client = connect([silent.url, other.url], 2_000);
    const outcomes = [];
    for (let count = 0; count < 6; count += 1) {
      outcomes.push(
        await client.send(request).then(
          ({ status }) => status,
          () => 'none',
        ),
      );
    }
    expect(outcomes.filter((outcome) => outcome !== 200)).toEqual(['none']);
    expect(silent.asked()).toBe(1);
  });

  it('asks no other for what one may have done already', async () => {
    const cutting = await startNode((incoming) => incoming.socket.resetAndDestroy());
    const alsoCutting = await startNode((incoming) => incoming.socket.resetAndDestroy());
    const client = connect([cutting.url, alsoCutting.url]);
    await expect(client.send(request)).rejects.toMatchObject({ code: 'index.unreachable' });
    expect(cutting.asked() + alsoCutting.asked()).toBe(1);
  });

  it('says that the index is unreachable when none takes a connection', async () => {
    const client = connect(['http://127.0.0.1:1', 'http://127.0.0.1:2']);
    for (let count = 0; count < 3; count += 1) {
      await expect(client.send(request)).rejects.toMatchObject({
        code: 'index.unreachable',
        message: expect.stringContaining('ECONNREFUSED'),
      });
    }
  });
});
