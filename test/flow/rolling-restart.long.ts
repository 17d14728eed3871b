/**
 * Restarts each node of a real cluster of OpenSearch in its turn, while a daemon indexes a steady load and a follower reads its feed.
 * Nothing may be lost or skipped; how late the index was is told, not judged, since it depends on the machine. It needs a cluster of its own:
 *
 *   TALLY_TEST_OPENSEARCH_NODES  the URLs of its nodes, separated by commas
 *   TALLY_TEST_NODE_STOP         a shell command that stops the node at %PORT%, and ends when it is stopped
 *   TALLY_TEST_NODE_START        a shell command that starts it again, and may end before it has joined
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { followFeed } from '../support/follower.ts';
import { until } from '../support/servers/aws.ts';
import { startDaemon } from '../support/servers/daemon.ts';
import { bucketDifference, connectBuckets, indexed } from '../support/worlds/flow.ts';
import { startQueueWorld, type QueueWorld } from '../support/worlds/queue.ts';

const nodes = (process.env['TALLY_TEST_OPENSEARCH_NODES'] ?? '').split(',').filter((url) => url !== '');
const commands = { stop: process.env['TALLY_TEST_NODE_STOP'] ?? '', start: process.env['TALLY_TEST_NODE_START'] ?? '' };
const isPossible = nodes.length > 1 && commands.stop !== '' && commands.start !== '';

/** Four of five are puts, of keys that come back; the fifth is a delete. */
const EVENTS_PER_S = Number(process.env['TALLY_TEST_EVENTS_PER_S'] ?? '50');
const KEYS = 400;
/** How long the load goes on before the first restart, between two and after the last. */
const CALM_MS = 5_000;
/** How long a node stays away at least. */
const AWAY_MS = 5_000;
const JOINED_TIMEOUT_MS = 240_000;
/** More would mean that a restart cost a healthy message its receives. */
const RECEIVES_MAX = 7;

const run = promisify(execFile);

async function command(name: 'stop' | 'start', url: string): Promise<void> {
  await run('sh', ['-c', commands[name].replaceAll('%PORT%', new URL(url).port)]);
}

async function joined(): Promise<void> {
  const isGreen = async (): Promise<boolean> => {
    const answers = await Promise.all(nodes.map((url) => fetch(`${url}/_cluster/health`).catch(() => undefined)));
    const bodies = await Promise.all(answers.map(async (answer) => (answer?.ok === true ? ((await answer.json()) as Health) : undefined)));
    return bodies.every((body) => body?.status === 'green' && body.number_of_nodes === nodes.length);
  };
  await until('all nodes have joined and the cluster is green', isGreen, JOINED_TIMEOUT_MS);
}

interface Health {
  readonly status: string;
  readonly number_of_nodes: number;
}

/** Sends changes at a steady rate, and notes when each message has left the queue. */
function startLoad(world: QueueWorld) {
  const ending = new AbortController();
  const sentAtMs = new Map<string, number>();
  const lagsMs: number[] = [];
  let receivesMax = 0;
  let sent = 0;

  function look(): void {
    const { visible, inFlight } = world.messages();
    const pending = [...visible, ...inFlight];
    for (const { approximateReceiveCount } of pending) receivesMax = Math.max(receivesMax, approximateReceiveCount);
    const waiting = new Set(pending.map(({ body }) => body));
    for (const [body, sentMs] of sentAtMs) {
      if (waiting.has(body)) continue;
      sentAtMs.delete(body);
      lagsMs.push(Date.now() - sentMs);
    }
  }

  async function send(): Promise<void> {
    const beganMs = Date.now();
    while (!ending.signal.aborted) {
      for (const due = ((Date.now() - beganMs) / 1_000) * EVENTS_PER_S; sent < due; sent += 1) {
        const key = `key-${(sent * 7) % KEYS}`;
        const body = sent % 5 === 4 ? world.remove(key) : world.put(key);
        sentAtMs.set(body, Date.now());
        world.send(body);
      }
      look();
      await delay(50);
    }
  }

  const sending = send();
  return {
    async end(): Promise<void> {
      ending.abort();
      await sending;
    },
    look,
    get pending() {
      return sentAtMs.size;
    },
    get sent() {
      return sent;
    },
    get receivesMax() {
      return receivesMax;
    },
    /** The lags so far, as a line. */
    lag(): string {
      const sorted = lagsMs.toSorted((a, b) => a - b);
      const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
      return `${sorted.length} events, lag p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`;
    },
  };
}

describe.skipIf(!isPossible)('a rolling restart of OpenSearch', () => {
  test(`of ${nodes.length} nodes at ${EVENTS_PER_S} events a second loses nothing and dead-letters nothing`, async () => {
    await joined();
    const world = await startQueueWorld({ maxReceiveCount: 20 });
    const prefix = `rolling${randomBytes(4).toString('hex')}`;
    const index = { TALLY_INDEX_URL: nodes.join(','), TALLY_INDEX_PREFIX: prefix, TALLY_INDEX_REPLICAS: '1' };
    const daemon = await startDaemon({ ...world.env, ...index, TALLY_INGEST_VISIBILITY_S: '60' });
    try {
      // before the clock starts
      await connectBuckets(daemon, world);
      await daemon.ready();
      world.send(world.put('first'));
      await until('the first object is indexed', async () => (await indexed(daemon, world.bucket))?.size === 1);
      const follower = followFeed(daemon, world.bucket);
      const load = startLoad(world);
      await delay(CALM_MS);
      for (const url of nodes) {
        await command('stop', url);
        await delay(AWAY_MS);
        await command('start', url);
        await joined();
        await delay(CALM_MS);
      }
      await load.end();
      await until('the queue is empty', () => {
        load.look();
        return load.pending === 0;
      });
      const wanted = world.objects();
      await until('index and bucket agree', async () => (await bucketDifference(daemon, world)) === undefined);
      const { copy, resets } = await follower.end();
      expect([[...copy.keys()].toSorted(), resets]).toEqual([[...wanted.keys()].toSorted(), 0]);
      const told = daemon.log.filter(({ level }) => level === 'warn' || level === 'error');
      console.log(
        [`sent ${load.sent}, receives at most ${load.receivesMax}`, load.lag(), ...told.map((line) => JSON.stringify(line))].join('\n'),
      );
      expect(world.deadLetters()).toEqual([]);
      expect(load.receivesMax).toBeLessThanOrEqual(RECEIVES_MAX);
      expect(await daemon.stop()).toEqual({ code: 0, signal: null });
    } finally {
      await daemon.kill();
      await world.close();
      const [url] = nodes;
      // a node that did not come back must not hide why
      await fetch(`${url}/${prefix}-*?expand_wildcards=all`, { method: 'DELETE' }).catch(() => undefined);
    }
  }, 1_800_000);
});
