/** A store that cannot be reached at the start. Stores that fail later are rows of fault-matrix.test.ts. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { until } from '../support/servers/aws.ts';
import { connectBuckets, openFlow } from '../support/worlds/flow.ts';
import { opensearchUrl } from '../support/servers/found.ts';

/** Longer than until the cluster's first probe, so that it is seen to fail. */
const OUTAGE_MS = 6_000;

test.skipIf(opensearchUrl() === undefined)(
  'an outage of OpenSearch at the start is told once, the daemon is not ready, and it begins when it can',
  { timeout: 600_000 },
  async () => {
    await using flow = await openFlow('opensearch');
    const { world, index } = flow;
    await index.refuse();
    for (let each = 0; each < 50; each += 1) world.send(world.put(`early/${each}`));
    // what a busy machine extends too late must not count as received again
    const daemon = await flow.start({ TALLY_INGEST_VISIBILITY_S: '60' }, { awaitReady: false });
    await until('not ready', async () => (await daemon.readyz())?.status === 503);
    await delay(OUTAGE_MS);
    const { visible, inFlight } = world.messages();
    expect([...visible, ...inFlight].filter((message) => message.approximateReceiveCount > 0)).toEqual([]);
    await index.accept();
    await connectBuckets(daemon, world);
    await daemon.ready();
    await flow.converged(daemon);
    expect(daemon.logged('request failed').filter(({ operation }) => operation === 'prepare the store')).toHaveLength(1);
  },
);
