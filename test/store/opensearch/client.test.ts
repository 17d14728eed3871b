/** Several nodes of one cluster, of which some do not answer. The nodes are plain HTTP servers. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createOpenSearchClient, type OpenSearchClient } from '../../../src/store/opensearch/client.ts';
import { createOpenSearchStore } from '../../../src/store/opensearch/store.ts';
import { systemClock } from '../../../src/process/clock.ts';
import { faultOf } from '../../../src/base/fault.ts';
import { closeServer, listen } from '../../support/servers/listening.ts';

/** How a node answers. */
type Behaviour = (outgoing: ServerResponse, incoming: IncomingMessage) => void;

interface TestNode {
  readonly url: string;
  /** Requests besides pings. */
  readonly asked: () => number;
  behave(behaviour: Behaviour): void;
}

const json = (outgoing: ServerResponse, status: number, body: unknown): void => {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};
const healthy: Behaviour = (outgoing) => json(outgoing, 200, { up: true });
const silent: Behaviour = () => {};
const cutting: Behaviour = (_, incoming) => void incoming.socket.resetAndDestroy();
const answering =
  (status: number, body: unknown = {}): Behaviour =>
  (outgoing) =>
    json(outgoing, status, body);

describe('a client of several nodes', () => {
  const closers: (() => Promise<unknown>)[] = [];
  let reports: string[] = [];

  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
    reports = [];
  });

  async function startNode(behaviour: Behaviour = healthy): Promise<TestNode> {
    let asked = 0;
    let current = behaviour;
    // OpenSearch closes no idle connection; Node would after six seconds, at the moment at which what a silent node had is repeated
    const server = createServer({ keepAliveTimeout: 3_600_000 }, (incoming, outgoing) => {
      if (incoming.method !== 'HEAD') asked += 1;
      current(outgoing, incoming);
    });
    const port = await listen(server);
    closers.push(() => closeServer(server));
    return {
      url: `http://127.0.0.1:${port}`,
      asked: () => asked,
      behave: (next) => void (current = next),
    };
  }

  /** Two nodes that were asked once each, and their client. */
  async function startTwo() {
    const nodes = [await startNode(), await startNode()] as const;
    const client = connect(nodes.map(({ url }) => url));
    await statuses(client, 2);
    return { first: nodes[0], second: nodes[1], client };
  }

  function connect(urls: readonly string[], requestTimeoutMs = 60_000): OpenSearchClient {
    const report = (message: string): void => void reports.push(message);
    const client = createOpenSearchClient({ urls, requestTimeoutMs, telemetry: { warnOnce: report, info: report } });
    closers.push(() => client.close());
    return client;
  }

  const read = { method: 'POST', path: '/a/_search', body: {} } as const;
  const bulk = { method: 'POST', path: '/_bulk', lines: '{}\n', repeatable: true } as const;
  const swap = { method: 'POST', path: '/_bulk', lines: '{}\n' } as const;
  const answer = { status: 200, body: { up: true } };

  /** The statuses of requests one after another; `none` where there was no answer. */
  async function statuses(client: OpenSearchClient, count: number, request: Parameters<OpenSearchClient['send']>[0] = read) {
    const seen: (number | 'none')[] = [];
    for (let round = 0; round < count; round += 1) {
      seen.push(
        await client.send(request).then(
          ({ status }) => status,
          () => 'none' as const,
        ),
      );
    }
    return seen;
  }

  it('shares requests among them', async () => {
    const nodes = [await startNode(), await startNode()];
    const client = connect(nodes.map(({ url }) => url));
    for (let count = 0; count < 6; count += 1) expect(await client.send(read)).toEqual(answer);
    expect(nodes.map((node) => node.asked())).toEqual([3, 3]);
    expect(reports).toEqual([]);
  });

  it('goes on without one that takes no connection, from the first request', async () => {
    const other = await startNode();
    // ports that nothing is ever given; a name may have several addresses
    const client = connect(['http://localhost:1', other.url, 'http://no-such-node.invalid:9200']);
    for (let count = 0; count < 6; count += 1) expect(await client.send(bulk)).toEqual(answer);
    expect(other.asked()).toBe(6);
  });

  it('gives one that takes no connection at most one compare-and-swap', async () => {
    const other = await startNode();
    const seen = await statuses(connect(['http://127.0.0.1:1', other.url]), 6, swap);
    expect(seen.filter((status) => status !== 200)).toHaveLength(1);
    expect(other.asked()).toBe(5);
  });

  it('repeats at another what one received before it began to hang, but no compare-and-swap', async () => {
    const hanging = await startNode();
    const other = await startNode();
    const client = connect([hanging.url, other.url], 1_000);
    await statuses(client, 2);
    hanging.behave(silent);
    const sent = [read, read, bulk, bulk, swap, swap].map((request) => statuses(client, 1, request));
    const seen = (await Promise.all(sent)).flat();
    expect(seen.slice(0, 4)).toEqual([200, 200, 200, 200]);
    // one of the two was given to each node
    expect(new Set(seen.slice(4))).toEqual(new Set([200, 'none']));
    expect(await statuses(client, 4, swap)).toEqual([200, 200, 200, 200]);
  });

  it('gives up at the deadline, however many hang', async () => {
    const nodes = await Promise.all([silent, silent, silent].map(startNode));
    await expect(
      connect(
        nodes.map(({ url }) => url),
        2_000,
      ).send(bulk),
    ).rejects.toMatchObject({
      code: 'index.unreachable',
      reason: 'POST /_bulk: no answer within 2000 ms',
    });
    // the time of a node is most of the deadline
    expect(nodes.reduce((sum, node) => sum + node.asked(), 0)).toBe(2);
  });

  it.each([
    [
      'is not a member of its cluster now',
      answering(503, { error: { type: 'cluster_block_exception', reason: 'blocked by: [SERVICE_UNAVAILABLE/2/no cluster-manager];' } }),
    ],
    ['is behind a proxy that does not reach it', answering(502)],
    ['ends connections', cutting],
  ])('repeats at another what one cannot do because it %s, but no compare-and-swap', async (_, behaviour) => {
    const { first, second, client } = await startTwo();
    first.behave(behaviour);
    expect(await statuses(client, 4, bulk)).toEqual([200, 200, 200, 200]);
    expect(await statuses(connect([first.url, second.url]), 2, { method: 'POST', path: '/_msearch' })).toEqual([200, 200]);
    const third = connect([first.url, second.url]);
    const swaps = await statuses(third, 2, swap);
    expect(swaps).toContain(200);
    expect(swaps.filter((status) => status !== 200)).toHaveLength(1);
  });

  it('gives the body of a success to the request that reads it, and keeps none of it', async () => {
    const node = await startNode();
    const client = connect([node.url]);
    const bodies: unknown[] = [];
    const reading = { ...read, read: (body: unknown) => void bodies.push(body) };
    expect(await client.send(reading)).toEqual({ status: 200, body: undefined });
    node.behave(answering(404, { error: 'gone' }));
    expect(await client.send(reading)).toEqual({ status: 404, body: { error: 'gone' } });
    expect(bodies).toEqual([{ up: true }]);
  });

  it('asks each once when none can do it, and passes on the last answer', async () => {
    const nodes = [await startNode(answering(503)), await startNode(answering(503)), await startNode(answering(503))];
    const client = connect(nodes.map(({ url }) => url));
    expect(await statuses(client, 1, bulk)).toEqual([503]);
    expect(nodes.map((node) => node.asked())).toEqual([1, 1, 1]);
  });

  it('uses one again that returned, within seconds, and says so', async () => {
    const { first, client } = await startTwo();
    first.behave(cutting);
    await statuses(client, 2, bulk);
    await expect
      .poll(() => statuses(client, 2).then(() => reports), { timeout: 60_000 })
      .toEqual(['a node of the index store does not answer']);
    first.behave(healthy);
    const before = first.asked();
    await expect.poll(() => statuses(client, 2).then(first.asked), { timeout: 60_000 }).toBeGreaterThan(before);
    expect(reports.at(-1)).toBe('a node of the index store answers again');
  });

  it('uses one again when no other is left, without waiting', async () => {
    const { first, second, client } = await startTwo();
    for (const node of [first, second]) node.behave(cutting);
    expect(await statuses(client, 1, bulk)).toEqual(['none']);
    for (const node of [first, second]) node.behave(healthy);
    expect(await statuses(client, 1, swap)).toEqual([200]);
  });

  it('says that the index is unreachable when none takes a connection', async () => {
    const client = connect(['http://127.0.0.1:1', 'http://127.0.0.1:2']);
    for (let count = 0; count < 3; count += 1) {
      await expect(client.send(read)).rejects.toMatchObject({
        code: 'index.unreachable',
        message: expect.stringContaining('ECONNREFUSED'),
      });
    }
  });

  it('ends what is under way when it is closed', async () => {
    const client = connect([(await startNode(silent)).url, (await startNode()).url]);
    const sent = client.send(read).catch((error: unknown) => error);
    await client.close();
    await sent;
    await expect(client.send(read)).rejects.toMatchObject({ code: 'index.unreachable' });
  });

  describe('at preparing', () => {
    const clusters: Record<string, Behaviour> = {
      ours: answering(200, { cluster_uuid: 'ours' }),
      theirs: answering(200, { cluster_uuid: 'theirs' }),
      'one that does not say which': answering(403),
      'one that does not answer': cutting,
    };

    async function prepared(names: readonly string[]): Promise<string> {
      const nodes = await Promise.all(names.map((name) => startNode(clusters[name])));
      const store = createOpenSearchStore({ urls: nodes.map(({ url }) => url), prefix: 'a', shards: 1, replicas: 0, clock: systemClock });
      closers.push(() => store.close());
      return store.setup.prepare().then(
        () => 'prepared',
        (error: unknown) => faultOf(error).code,
      );
    }

    it('refuses nodes of two clusters, whatever a third says', async () => {
      for (const third of Object.keys(clusters)) expect(await prepared(['ours', third, 'theirs'])).toBe('index.foreign-node');
    });

    it('goes on with nodes of one cluster, of which some do not say which it is', async () => {
      for (const other of ['ours', 'one that does not say which', 'one that does not answer'])
        expect(await prepared(['ours', other])).not.toBe('index.foreign-node');
    });
  });
});
