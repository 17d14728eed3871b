/**
 * The bench `feed`: a follower rebuilds its copy of a large bucket's index, then follows a steady load while it and the daemon are
 * killed again and again; in the end its copy must equal the index. The follower is `tally changes --follow`, read line by line.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { MAIN, nodeOptions, ownVariables } from '../../support/servers/program.ts';
import { createFollower } from '../../support/follower.ts';
import { createRandom } from '../../support/random/seeded.ts';
import { unusedPort } from '../../support/servers/unused-port.ts';
import { commandOf, countOption, namesOption, OPENSEARCH_HELP, openSearchUrl } from '../bench-command.ts';
import { until } from '../processes.ts';
import { openWorld, LIVE_BUCKET as BUCKET, type BenchWorld } from '../reindex/world.ts';
import { atMost, quantileOf } from '../report.ts';
import type { Worker } from '../reindex/worker.ts';

const products = ['opensearch', 'sqlite'] as const;

interface FeedOptions {
  readonly index: readonly (typeof products)[number][];
  readonly objects: number;
  readonly rate: number;
  readonly seconds: number;
}

/** The bench's command. */
export const feedBench = commandOf<FeedOptions>({
  name: 'feed',
  description: 'A follower that rebuilds a bucket and follows it, with kills: seconds, CPU of each event, lag; it ends equal to the index.',
  options: [
    namesOption('--index <names>', 'of the products', products),
    countOption('--objects <count>', 'of the bucket', [1, 10_000_000], 1_000_000),
    countOption('--rate <count>', 'events in a second', [1, 10_000], 1_000),
    countOption('--seconds <count>', 'of following', [10, 86_400], 600),
  ],
  help: OPENSEARCH_HELP,
  run,
});

async function run({ index, ...options }: FeedOptions, tell: (text: string) => void) {
  const url = openSearchUrl();
  if (url === undefined) throw new Error('TALLY_BENCH_OPENSEARCH_URL must name an OpenSearch that holds nothing of value');
  const runs = [];
  for (const product of index) runs.push(await measure(url, product, options, tell));
  return {
    feed: runs,
    targets: runs.map(({ index: product, p99Ms }) => atMost(`${product}: lag p99, ms`, p99Ms, LAG_P99_MAX_MS)),
  };
}

/** A poll a second, an indexing lag of a second and a page; kills excluded. */
const LAG_P99_MAX_MS = 5_000;
/** Puts and deletes are of so many keys, which come back. */
const LIVE_KEYS = 5_000;
/** One event in five is a delete. */
const DELETE_EVERY = 5;
const FOLLOWER_LIVES_S = [5, 20] as const;
const DAEMON_LIVES_S = [40, 80] as const;
/** Events sent so long before and after a kill have the lag of the kill, not that of the feed. */
const KILL_SHADOW_MS = 15_000;

async function measure(url: string, product: (typeof products)[number], options: Omit<FeedOptions, 'index'>, tell: (text: string) => void) {
  const world = await openWorld(url);
  const path = join(tmpdir(), `tally-bench-feed-${process.pid}.sqlite`);
  const address = `127.0.0.1:${await unusedPort()}`;
  const env = { TALLY_HTTP_ADDRESS: address, ...(product === 'sqlite' && { TALLY_INDEX_URL: `sqlite:${path}` }) };
  const start = (): Promise<Worker> => world.startWorker([], env);
  let worker = await start();
  const copy = createCopy(`http://${address}`);
  try {
    tell(`${product}: indexing ${options.objects} objects`);
    await world.listing.control({ buckets: [{ name: BUCKET, count: options.objects, isPrepared: true }] });
    await worker.reindex(BUCKET);
    tell('rebuilding the copy');
    const [beganMs, cpuBefore] = [performance.now(), worker.usage().cpuUs];
    copy.follow();
    await until('the copy is complete', () => copy.isComplete(), { timeoutMs: 3_600_000 });
    const rebuildS = (performance.now() - beganMs) / 1_000;
    const rebuildUs = (worker.usage().cpuUs - cpuBefore) / options.objects;

    tell(`${options.rate} events a second for ${options.seconds} s, with kills`);
    const load = startLoad(world, options.rate, copy);
    const random = createRandom(55);
    const endMs = performance.now() + options.seconds * 1_000;
    let [followerDiesMs, daemonDiesMs] = [performance.now() + 10_000, performance.now() + DAEMON_LIVES_S[1] * 1_000];
    let kills = 0;
    while (performance.now() < endMs) {
      await delay(200);
      if (performance.now() > followerDiesMs) {
        copy.kill();
        copy.follow();
        followerDiesMs = performance.now() + random.integer(...FOLLOWER_LIVES_S) * 1_000;
        kills += 1;
      }
      if (performance.now() > daemonDiesMs) {
        load.shadow();
        worker.kill();
        worker = await start();
        daemonDiesMs = performance.now() + random.integer(...DAEMON_LIVES_S) * 1_000;
        kills += 1;
      }
    }
    const sent = await load.end();
    tell('waiting until the copy equals the index');
    const held = await settled(world, worker, copy);
    const { lags } = load;
    return {
      index: product,
      objects: options.objects,
      rebuildS,
      rebuildUs,
      sent,
      kills,
      p50Ms: quantileOf(lags, 0.5),
      p99Ms: quantileOf(lags, 0.99),
      held,
      resets: copy.resets(),
    };
  } finally {
    copy.kill();
    await worker.stop();
    await world.close();
    for (const end of ['', '-wal', '-shm', '.lock']) rmSync(`${path}${end}`, { force: true });
  }
}

const lineSchema = z.union([
  z.object({ cursor: z.string(), more: z.boolean() }),
  z.object({ reset: z.literal(true) }),
  z.object({ key: z.string(), clock: z.number(), deleted: z.boolean(), etag: z.string().optional() }),
]);

/** A copy of the bucket's index, kept from the lines of a command that may be killed at any moment. */
function createCopy(registryUrl: string) {
  const follower = createFollower<string>();
  let cursor: string | undefined;
  let child: ChildProcess | undefined;
  let complete = false;
  let onItem: (key: string, etag: string | undefined) => void = () => undefined;
  return {
    isComplete: () => complete,
    live: () => follower.live(),
    resets: () => follower.resets(),
    listen(listener: typeof onItem): void {
      onItem = listener;
    },
    kill(): void {
      child?.kill('SIGKILL');
    },
    follow(): void {
      const after = cursor === undefined ? [] : ['--after', cursor];
      const args = [...nodeOptions(), MAIN, 'changes', BUCKET, '--follow', ...after];
      const env = { ...ownVariables(), PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', TALLY_REGISTRY_URL: registryUrl };
      const started = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
      child = started;
      let items: { readonly key: string; readonly clock: number; readonly deleted: boolean }[] = [];
      let isReset = false;
      createInterface(started.stdout).on('line', (line) => {
        // what a killed command left in the pipe may end in the middle of a line, and its successor reads the page again
        if (child !== started) return;
        const told = lineSchema.parse(JSON.parse(line));
        if ('reset' in told) isReset = true;
        else if ('key' in told) {
          items.push(told);
          onItem(told.key, told.etag);
        } else {
          void follower.read(async () => ({ items, cursor: told.cursor, more: told.more, reset: isReset }));
          ({ cursor } = told);
          complete = !told.more;
          [items, isReset] = [[], false];
        }
      });
    },
  };
}

type Copy = ReturnType<typeof createCopy>;

/** Sends events at a steady rate, and measures from each until the follower has it. */
function startLoad(world: BenchWorld, rate: number, copy: Copy) {
  const ending = new AbortController();
  const waiting = new Map<string, { readonly etag: string | undefined; readonly sentMs: number }>();
  const measured: { readonly sentMs: number; readonly lagMs: number }[] = [];
  const shadows: number[] = [];
  let sent = 0;
  copy.listen((key, etag) => {
    const event = waiting.get(key);
    if (event === undefined || event.etag !== etag) return;
    waiting.delete(key);
    measured.push({ sentMs: event.sentMs, lagMs: performance.now() - event.sentMs });
  });

  async function send(): Promise<void> {
    const beganMs = performance.now();
    while (!ending.signal.aborted) {
      for (const due = ((performance.now() - beganMs) / 1_000) * rate; sent < due; sent += 1) {
        const key = `live/${(sent * 7) % LIVE_KEYS}`;
        const etag = sent % DELETE_EVERY === 0 ? undefined : createHash('md5').update(`${sent}`).digest('hex');
        waiting.set(key, { etag, sentMs: performance.now() });
        world.change(key, etag);
      }
      await delay(20);
    }
  }

  const sending = send();
  return {
    shadow: () => void shadows.push(performance.now()),
    async end() {
      ending.abort();
      await sending;
      return sent;
    },
    get lags() {
      const isShadowed = (atMs: number): boolean => shadows.some((killMs) => Math.abs(atMs - killMs) < KILL_SHADOW_MS);
      return measured.filter(({ sentMs }) => !isShadowed(sentMs)).map(({ lagMs }) => lagMs);
    },
  };
}

const pageSchema = z.object({ items: z.array(z.object({ key: z.string(), clock: z.number() })), next: z.string().optional() });

/** Waits until the queue is empty and the copy equals the index; throws when it does not. Resolves with how many objects both have. */
async function settled(world: BenchWorld, worker: Worker, copy: Copy): Promise<number> {
  await until('the queue is empty', () => world.waiting() === 0, { timeoutMs: 600_000 });
  let different: readonly string[] = [];
  for (let look = 0; look < 10; look += 1) {
    await delay(5_000);
    const index = new Map<string, number>();
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
      const query = new URLSearchParams({ bucket: BUCKET, limit: '1000', ...(cursor !== undefined && { cursor }) });
      const page = pageSchema.parse(await worker.ask('GET', `/v1/objects?${query.toString()}`));
      for (const { key, clock } of page.items) index.set(key, clock);
      cursor = page.next;
    }
    const live = copy.live();
    different = [...new Set([...index.keys(), ...live.keys()])].filter((key) => index.get(key) !== live.get(key));
    if (different.length === 0) return index.size;
  }
  throw new Error(`the copy differs from the index in ${different.length} keys: ${different.slice(0, 5).join(', ')}`);
}
