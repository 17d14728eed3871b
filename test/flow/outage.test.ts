import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { HELD_MAX } from '../../src/serve/limits.ts';
import { until } from '../support/servers/aws.ts';
import type { Daemon } from '../support/servers/daemon.ts';
import type { Interference } from '../support/servers/fault-proxy.ts';
import { connectBuckets, openFlow } from '../support/worlds/flow.ts';
import type { QueueWorld } from '../support/worlds/queue.ts';
import { opensearchUrl } from '../support/servers/found.ts';
import { raw, serverUrl } from '../support/servers/opensearch.ts';
import { askAt, dump, load } from '../support/stores/opensearch-dump.ts';

/** The adapter's own tests say of each answer that it is an outage: one that comes and one that does not stand for all. */
const indexFaults: readonly (readonly [string, Interference])[] = [
  ['answers 401', { kind: 'answer', status: 401, body: '{}' }],
  ['does not answer', { kind: 'hang' }],
];

const onOpenSearch = test.skipIf(opensearchUrl() === undefined).concurrent;

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
    'of OpenSearch under load, it waits with a bounded number of messages, spends no receives, and goes on by itself, whatever the outage',
    async () => {
      await using flow = await openFlow('opensearch', { maxReceiveCount: 10 });
      const { world, index } = flow;
      const daemon = await flow.start();
      world.send(world.put('before'));
      await flow.converged(daemon);

      await index.refuse();
      for (const key of keys('during', HELD_MAX + 400)) world.send(world.put(key));
      await daemon.line('receiving paused');
      await until('not ready', async () => (await statusOf(daemon)) === 503);
      const rssBytes = await daemon.metric('process_resident_memory_bytes');
      let receives = 0;
      for (let round = 0; round < 20; round += 1) {
        for (const key of keys(`round-${round}`, 10)) world.send(world.put(key));
        await delay(1_000);
        receives = Math.max(receives, receivesMax(world));
        // what four pollers had received when the set became full comes on top
        expect(await daemon.metric('tally_held_messages')).toBeLessThanOrEqual(HELD_MAX + 40);
      }
      expect(receives).toBeLessThanOrEqual(2);
      expect(await daemon.metric('process_resident_memory_bytes')).toBeLessThan(rssBytes + 100_000_000);
      expect(await statusOf(daemon)).toBe(503);

      await index.accept();
      await flow.converged(daemon);
      await until('ready again', async () => (await statusOf(daemon)) === 200);
      expect(world.objects().size).toBe(1 + HELD_MAX + 400 + 200);
      await resumed(daemon);
      expect(daemon.logged('receiving paused')).toHaveLength(1);

      for (const [name, interference] of indexFaults) {
        const outage = index.interfere(interference);
        for (const key of keys(name, 60)) world.send(world.put(key), world.put(`gone/${key}`), world.remove(`gone/${key}`));
        await outage.hit;
        await delay(OUTAGE_MS);
        expect(receivesMax(world), name).toBeLessThanOrEqual(2);
        outage.remove();
        await flow.converged(daemon);
        await until(`ready again: ${name}`, async () => (await statusOf(daemon)) === 200);
        await resumed(daemon);
      }
      expect(world.deadLetters()).toEqual([]);
      expect(await daemon.metric('tally_messages_total', { settlement: 'defer' })).toBe(0);
      expect(await daemon.metric('tally_messages_total', { settlement: 'give-back' })).toBe(0);
      expect(await daemon.stop()).toEqual({ code: 0, signal: null });
    },
    600_000,
  );

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

  onOpenSearch(
    'of OpenSearch that comes back empty, it makes no index and says what is lost, and goes on when its indices are restored',
    async () => {
      await using flow = await openFlow('opensearch');
      const { world, index, env } = flow;
      const prefix = String(env['TALLY_INDEX_PREFIX']);
      const ask = askAt(serverUrl());
      const daemon = await flow.start(LONG);
      for (const key of keys('before', 20)) world.send(world.put(key));
      await flow.converged(daemon);
      const kept = await dump(ask, prefix);

      await index.refuse();
      await raw('DELETE', `/${prefix}-*`);
      await index.accept();
      for (const key of keys('during', 20)) world.send(world.put(key));
      const checks = async () => ((await daemon.readyz())?.body as { checks: Record<string, { code?: string }> } | undefined)?.checks;
      const lost = {
        index: { status: 'failed', code: 'index.state-missing', advice: expect.stringContaining('restore a snapshot') },
        jobs: { status: 'unknown' },
        buckets: { status: 'unknown' },
      };
      await until('it says what is lost', async () => (await checks())?.['index']?.code === lost.index.code);
      await daemon.request('POST', '/v1/buckets', { bucket: 'another', wired_by_hand: true });
      await delay(OUTAGE_MS);
      expect(await checks()).toMatchObject(lost);
      expect((await raw('GET', `/${prefix}-*`)).body).toEqual({});

      await load(ask, kept, { from: prefix, to: prefix });
      await flow.converged(daemon);
      await daemon.ready();
      expect(world.deadLetters()).toEqual([]);
    },
    600_000,
  );

  onOpenSearch(
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
