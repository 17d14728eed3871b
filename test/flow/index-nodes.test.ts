/** A daemon whose index has three nodes: proxies before one OpenSearch, of which some do not answer. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startFaultProxy, type FaultProxy } from '../support/servers/fault-proxy.ts';
import { opensearchUrl } from '../support/servers/found.ts';
import { serverUrl } from '../support/servers/opensearch.ts';
import { openFlow, type Flow } from '../support/worlds/flow.ts';

/** Long enough that a node which hangs is noticed and avoided. */
const TROUBLE_MS = 8_000;
const PER_ROUND = 20;

/** Sends puts and deletes for a while. */
async function change({ world }: Flow, name: string, lastsMs: number): Promise<void> {
  const untilMs = Date.now() + lastsMs;
  for (let round = 0; round === 0 || Date.now() < untilMs; round += 1) {
    for (let at = 0; at < PER_ROUND; at += 1) {
      const key = `${name}/${round}/${at}`;
      world.send(world.put(key));
      if (at % 5 === 0) world.send(world.remove(key));
    }
    await delay(200);
  }
}

describe.skipIf(opensearchUrl() === undefined)('an index of three nodes', () => {
  async function startNodes(): Promise<{ readonly nodes: readonly FaultProxy[]; readonly close: () => Promise<void> }> {
    const nodes = await Promise.all([startFaultProxy(serverUrl()), startFaultProxy(serverUrl()), startFaultProxy(serverUrl())]);
    return { nodes, close: async () => void (await Promise.all(nodes.map((node) => node.close()))) };
  }

  test('of which one is down all the time is served by the others, from the start', async () => {
    await using flow = await openFlow('opensearch');
    const { nodes, close } = await startNodes();
    await nodes[0]?.refuse();
    const daemon = await flow.start({ TALLY_INDEX_URL: nodes.map(({ url }) => url).join(',') });
    await change(flow, 'steady', TROUBLE_MS);
    await flow.converged(daemon);
    expect(flow.world.deadLetters()).toEqual([]);
    expect(daemon.logged('receiving paused')).toEqual([]);
    expect(daemon.logged('a node of the index store is not used')).toMatchObject([{ node: `${nodes[0]?.url}/` }]);
    await daemon.kill();
    await close();
  });

  // what else a node can do is answered by the same code, and test/adapters/opensearch/client.test.ts tries each
  test('of which one hangs under load loses nothing and spends no receives', async () => {
    await using flow = await openFlow('opensearch');
    const { nodes, close } = await startNodes();
    const daemon = await flow.start({ TALLY_INDEX_URL: nodes.map(({ url }) => url).join(','), TALLY_INGEST_VISIBILITY_S: '60' });
    await change(flow, 'before', 0);
    await flow.converged(daemon);
    const trouble = nodes[1]?.interfere({ kind: 'hang' });
    await Promise.all([change(flow, 'during', TROUBLE_MS), trouble?.hit]);
    await change(flow, 'later', 0);
    // what hangs is reset, as when the machine of the node is gone at last
    trouble?.remove();
    await flow.converged(daemon);
    expect(flow.world.deadLetters()).toEqual([]);
    expect(await daemon.metric('tally_messages_total', { settlement: 'defer' })).toBe(0);
    await daemon.kill();
    await close();
  });
});
