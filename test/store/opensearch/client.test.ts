/** Several nodes of one cluster, of which some do not answer. The nodes are plain HTTP servers. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createOpenSearchClient, type OpenSearchClient } from '../../../src/store/opensearch/client.ts';
import { systemClock } from '../../../src/process/system-clock.ts';
import { closeServer, listen } from '../../support/servers/listening.ts';

/** How a node answers; `check`: the request for its cluster, with which it is also asked whether it lives. */
type Behaviour = (outgoing: ServerResponse, incoming: IncomingMessage, isCheck: boolean) => void;

interface TestNode {
  readonly url: string;
  /** Requests besides checks. */
  readonly asked: () => number;
  behave(behaviour: Behaviour): void;
}

const json = (outgoing: ServerResponse, status: number, body: unknown): void => {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};
const healthy =
  (cluster = 'ours'): Behaviour =>
  (outgoing, _, isCheck) =>
    json(outgoing, 200, isCheck ? { cluster_uuid: cluster } : { up: true });
const silent: Behaviour = () => {};
const cutting: Behaviour = (outgoing, incoming, isCheck) =>
  isCheck ? healthy()(outgoing, incoming, true) : void incoming.socket.resetAndDestroy();
const answering =
  (status: number, body: unknown = {}): Behaviour =>
  (outgoing, incoming, isCheck) =>
    isCheck ? healthy()(outgoing, incoming, true) : json(outgoing, status, body);

describe('a client of several nodes', () => {
  const closers: (() => Promise<unknown>)[] = [];
  let reports: string[] = [];
  let reasons: string[] = [];

  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
    reports = [];
    reasons = [];
  });

  async function startNode(behaviour: Behaviour = healthy()): Promise<TestNode> {
    let asked = 0;
    let current = behaviour;
    // OpenSearch closes no idle connection; Node would after six seconds, at the moment at which what a silent node had is repeated
    const server = createServer({ keepAliveTimeout: 3_600_000 }, (incoming, outgoing) => {
      const isCheck = incoming.method === 'GET' && incoming.url === '/';
      if (!isCheck) asked += 1;
      current(outgoing, incoming, isCheck);
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
    const report = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      reports.push(message);
      reasons.push(String(fields['reason']));
    };
    const client = createOpenSearchClient({ urls, requestTimeoutMs, clock: systemClock, telemetry: { warn: report, info: report } });
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
    for (let count = 0; count < 6; count += 1) expect(await client.send(swap)).toEqual(answer);
    expect(other.asked()).toBe(6);
    expect(reports).toEqual(['a node of the index store is not used', 'a node of the index store is not used']);
  });

  it('goes on without one that accepts connections and answers nothing, from the first request', async () => {
    const hanging = await startNode(silent);
    const other = await startNode();
    const client = connect([hanging.url, other.url]);
    expect(await statuses(client, 6, swap)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(hanging.asked()).toBe(0);
  });

  it('repeats at another what one received before it began to hang, long before the deadline, but no compare-and-swap', async () => {
    const hanging = await startNode();
    const other = await startNode();
    const client = connect([hanging.url, other.url], 10_000);
    await statuses(client, 2);
    hanging.behave(silent);
    const sent = [read, read, bulk, bulk, swap, swap].map((request) => statuses(client, 1, request));
    const seen = (await Promise.all(sent)).flat();
    expect(seen.slice(0, 4)).toEqual([200, 200, 200, 200]);
    // one of the two was given to each node
    expect(new Set(seen.slice(4))).toEqual(new Set([200, 'none']));
    expect(await statuses(client, 4, swap)).toEqual([200, 200, 200, 200]);
  });

  it('waits for one that is slow, but answers when it is asked whether it lives', async () => {
    const slow = await startNode((outgoing, incoming, isCheck) => {
      setTimeout(() => healthy()(outgoing, incoming, isCheck), isCheck ? 0 : 3_500);
    });
    const client = connect([slow.url, 'http://127.0.0.1:1']);
    expect(await client.send(bulk)).toEqual(answer);
    expect(slow.asked()).toBe(1);
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

  it('passes on what a node says of one index, and keeps the node', async () => {
    const body = { error: { type: 'search_phase_execution_exception', reason: 'all shards failed' } };
    const nodes = [await startNode(answering(503, body)), await startNode(answering(503, body))];
    const client = connect(nodes.map(({ url }) => url));
    expect(await client.send(read)).toEqual({ status: 503, body });
    expect(nodes.reduce((sum, node) => sum + node.asked(), 0)).toBe(1);
    expect(reports).toEqual([]);
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

  it('uses one again that returned, within seconds', async () => {
    const { first, client } = await startTwo();
    first.behave(cutting);
    await statuses(client, 2, bulk);
    first.behave(healthy());
    const before = first.asked();
    await expect.poll(() => statuses(client, 2).then(first.asked), { timeout: 60_000 }).toBeGreaterThan(before);
    expect(reports).toEqual(['a node of the index store is not used', 'a node of the index store is used again']);
  });

  it('uses one again when no other is left, without waiting', async () => {
    const { first, second, client } = await startTwo();
    for (const node of [first, second]) node.behave(cutting);
    expect(await statuses(client, 1, bulk)).toEqual(['none']);
    for (const node of [first, second]) node.behave(healthy());
    expect(await statuses(client, 1, swap)).toEqual([200]);
  });

  it('sends nothing to any of two that belong to different clusters, and says which, until they agree', async () => {
    const [ours, theirs] = [await startNode(), await startNode(healthy('theirs'))];
    const client = connect([ours.url, theirs.url]);
    for (let round = 0; round < 2; round += 1) {
      await expect(client.send(swap)).rejects.toMatchObject({ code: 'index.foreign-node', reason: expect.stringContaining(theirs.url) });
    }
    expect([ours.asked(), theirs.asked()]).toEqual([0, 0]);
    theirs.behave(healthy());
    expect(await statuses(client, 2, swap)).toEqual([200, 200]);
  });

  it('sends nothing to one that returned as a member of another cluster', async () => {
    const { first, second, client } = await startTwo();
    first.behave(cutting);
    await statuses(client, 2, bulk);
    first.behave(healthy('theirs'));
    const before = first.asked();
    second.behave(cutting);
    expect(await statuses(client, 4, bulk)).toEqual(['none', 'none', 'none', 'none']);
    await expect(client.send(bulk)).rejects.toMatchObject({ code: 'index.unreachable' });
    expect(first.asked()).toBe(before);
    expect(reasons).toContainEqual(expect.stringContaining('it belongs to the cluster theirs'));
  });

  it('Fix: uses them again once all of them belong to one other cluster, as after the loss of their disks, and says so', async () => {
    const { first, second, client } = await startTwo();
    for (const node of [first, second]) node.behave(cutting);
    await statuses(client, 1, bulk);
    first.behave(healthy('made again'));
    const before = first.asked();
    await statuses(client, 2, bulk);
    expect(first.asked()).toBe(before);
    second.behave(healthy('made again'));
    expect(await statuses(client, 4, swap)).toEqual([200, 200, 200, 200]);
    expect(reports).toContain('the nodes of the index store belong to another cluster than before');
  });

  it('compares nothing where no node tells its cluster, because the role does not permit it', async () => {
    const behaviour: Behaviour = (outgoing, _, isCheck) => json(outgoing, isCheck ? 403 : 200, isCheck ? {} : { up: true });
    const nodes = [await startNode(behaviour), await startNode(behaviour)];
    expect(await statuses(connect(nodes.map(({ url }) => url)), 4, swap)).toEqual([200, 200, 200, 200]);
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
  });
});
