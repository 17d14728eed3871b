/** An OpenSearch that does not answer at the start. Stores that fail later are rows of fault-matrix.test.ts. */
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { onlyInLong } from '../support/breadth.ts';
import { until } from '../support/servers/aws.ts';
import type { Daemon } from '../support/servers/daemon.ts';
import { connectBuckets, openFlow } from '../support/worlds/flow.ts';
import { opensearchUrl } from '../support/servers/found.ts';

/** Longer than until the cluster's first probe, so that it is seen to fail. */
const OUTAGE_MS = 6_000;

/** What a busy machine extends too late must not count as received again. */
const LONG = { TALLY_INGEST_VISIBILITY_S: '60' };
const statusOf = async (daemon: Daemon): Promise<number | undefined> => (await daemon.readyz())?.status;

const onOpenSearch = test.skipIf(opensearchUrl() === undefined).concurrent;

describe('an outage at the start', { timeout: 600_000 }, () => {
  onOpenSearch('of OpenSearch is told once, the daemon is not ready, and it begins when it can', async () => {
    await using flow = await openFlow('opensearch');
    const { world, index } = flow;
    await index.refuse();
    for (let each = 0; each < 50; each += 1) world.send(world.put(`early/${each}`));
    const daemon = await flow.start(LONG, { awaitReady: false });
    await until('not ready', async () => (await statusOf(daemon)) === 503);
    await delay(OUTAGE_MS);
    const { visible, inFlight } = world.messages();
    expect([...visible, ...inFlight].filter((message) => message.approximateReceiveCount > 0)).toEqual([]);
    await index.accept();
    await connectBuckets(daemon, world);
    await daemon.ready();
    await flow.converged(daemon);
    expect(daemon.logged('request failed').filter(({ operation }) => operation === 'prepare the store')).toHaveLength(1);
  });

  onlyInLong(onOpenSearch)('of its searches alone is told once, and the daemon stays not ready until they are answered', async () => {
    await using flow = await openFlow('opensearch');
    const { world, index } = flow;
    const daemon = await flow.start(LONG);
    world.send(world.put('before'));
    await flow.converged(daemon);
    await daemon.stop();

    const body = JSON.stringify({ error: { type: 'security_exception', reason: 'no permissions' }, status: 403 });
    const next = await flow.start(LONG);
    const outage = index.interfere({ kind: 'answer', status: 403, body }, ({ path }) => path.includes('_search'));
    await next.line('receiving paused');
    for (let each = 0; each < 20; each += 1) world.send(world.put(`during/${each}`));
    for (let second = 0; second < OUTAGE_MS / 1_000; second += 1) {
      await delay(1_000);
      expect(await statusOf(next)).toBe(503);
    }
    outage.remove();
    await flow.converged(next);
    await until('ready again', async () => (await statusOf(next)) === 200);
    expect(next.logged('receiving paused')).toHaveLength(1);
  });
});
