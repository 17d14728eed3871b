import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { onlyInLong } from '../support/breadth.ts';
import { until } from '../support/servers/aws.ts';
import type { Daemon } from '../support/servers/daemon.ts';
import { connectBuckets, openFlow } from '../support/worlds/flow.ts';
import type { QueueWorld } from '../support/worlds/queue.ts';
import { opensearchUrl } from '../support/servers/found.ts';

const onOpenSearch = test.skipIf(opensearchUrl() === undefined).concurrent;
const inLong = onlyInLong(onOpenSearch);

/** Longer than until the cluster's first probe, so that it is seen to fail. */
const OUTAGE_MS = 6_000;
/** For outages that are shorter: what a busy machine extends too late must not count as received again. */
const LONG = { TALLY_INGEST_VISIBILITY_S: '60' };

/** The most often that a message in the queue was received. */
function receivesMax(world: QueueWorld): number {
  const { visible, inFlight } = world.messages();
  return Math.max(0, ...[...visible, ...inFlight].map((message) => message.approximateReceiveCount));
}

async function statusOf(daemon: Daemon): Promise<number | undefined> {
  return (await daemon.readyz())?.status;
}

/** Resolves once each pause was told to be over: all messages may be settled before, by writes that were under way when it began. */
async function resumed(daemon: Daemon): Promise<void> {
  const told = (message: string): number => daemon.logged(message).length;
  await until('receiving resumed', () => told('receiving resumed') === told('receiving paused'));
}

function keys(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}/${index}`);
}

describe('an outage', () => {
  onOpenSearch(
    'of OpenSearch at the start, it says so once, is not ready, and begins when it can',
    async () => {
      await using flow = await openFlow('opensearch');
      const { world, index } = flow;
      await index.refuse();
      for (const key of keys('early', 50)) world.send(world.put(key));
      const daemon = await flow.start(LONG, { awaitReady: false });
      await until('not ready', async () => (await statusOf(daemon)) === 503);
      await delay(OUTAGE_MS);
      expect(receivesMax(world), daemon.log.map((line) => JSON.stringify(line)).join('\n')).toBe(0);
      await index.accept();
      await connectBuckets(daemon, world);
      await daemon.ready();
      await flow.converged(daemon);
      expect(daemon.logged('request failed').filter(({ operation }) => operation === 'prepare the store')).toHaveLength(1);
    },
    600_000,
  );

  inLong(
    'of the searches of OpenSearch alone, it says so once, stays not ready, and goes on when they are answered',
    async () => {
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
      for (const key of keys('during', 20)) world.send(world.put(key));
      for (let second = 0; second < OUTAGE_MS / 1_000; second += 1) {
        await delay(1_000);
        expect(await statusOf(next)).toBe(503);
      }
      outage.remove();
      await flow.converged(next);
      await until('ready again', async () => (await statusOf(next)) === 200);
      expect(next.logged('receiving paused')).toHaveLength(1);
    },
    600_000,
  );

  test.concurrent('of a SQLite file that another process has locked: nothing is lost, deferred or dead-lettered', async () => {
    await using flow = await openFlow('sqlite');
    const { world } = flow;
    const daemon = await flow.start(LONG);
    world.send(world.put('before'));
    await flow.converged(daemon);

    // the daemon may be writing just now
    const other = new DatabaseSync(String(flow.env['TALLY_INDEX_URL']).replace('sqlite:', ''), { timeout: 60_000 });
    other.exec('BEGIN IMMEDIATE');
    for (const key of keys('during', 200)) world.send(world.put(key));
    await daemon.line('receiving paused');
    expect(receivesMax(world)).toBeLessThanOrEqual(2);
    other.exec('ROLLBACK');
    other.close();
    await flow.converged(daemon);
    await resumed(daemon);
    expect(daemon.logged('receiving paused')).toHaveLength(1);
    expect(world.deadLetters()).toEqual([]);
    expect(await daemon.metric('tally_messages_total', { settlement: 'defer' })).toBe(0);
  }, 600_000);
});
