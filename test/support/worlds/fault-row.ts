/**
 * One row of the fault matrix: a daemon with a fault of one kind, and what else runs beside it.
 *
 *   connect both buckets ─► fault begins ─► load ─► what is not concerned is indexed ─► load, SIGKILL, start ─► load ─► the same
 *                                                    re-index of the other bucket ┘ ─► fault ends ─► index and buckets agree
 */
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../servers/aws.ts';
import type { Daemon, Environment } from '../servers/daemon.ts';
import { bucketDifference, indexed, openFlow } from './flow.ts';
import type { Flow, IndexKind } from './flow.ts';
import type { QueueWorld, WorldBucket } from './queue.ts';

/** What a row sends: exact and inexact events, of the bucket with the fault and of another; `faulty`: inexact events of what itself fails. */
export const traffics = ['exact', 'inexact', 'neighbour exact', 'neighbour inexact', 'faulty'] as const;
export type Traffic = (typeof traffics)[number];

/** What a fault concerns. The rest must be served while it lasts. */
export type Reach = 'object' | 'bucket' | 'index' | 'endpoint' | 'all';

const concerned: Readonly<Record<Reach, readonly Traffic[]>> = {
  object: ['faulty'],
  bucket: ['faulty', 'inexact'],
  index: ['faulty', 'inexact', 'exact'],
  endpoint: ['faulty', 'inexact', 'neighbour inexact'],
  all: traffics,
};

export interface FaultRow {
  readonly name: string;
  readonly index: IndexKind;
  readonly reach: Reach;
  readonly env?: Environment;
  /** The keys that fail themselves: inexact events of them are sent too. Absent: each HEAD request for an object of the bucket fails. */
  readonly faulty?: { readonly prefix: string; readonly keys: 'one' | 'many' };
  /**
   * Another row, or `outage.test.ts`, or the adapter's own test of the fault and a row with the same reach, or the same fault in
   * `worker-matrix.test.ts`, plays nearly the same: it is left to `npm run test:long`.
   */
  readonly isVariant?: true;
  /** A restart while the fault lasts would be another fault, so it ends between the kill and the start. */
  readonly endsBeforeStart?: true;
  /** So many of the first documents may be rejected, since their index accepted others until now. They are replayed after the fault. */
  readonly lettersMax?: number;
  /** Begins the fault. Returns what ends it. */
  readonly begin: (flow: Flow) => Promise<End> | End;
}

export type End = () => Promise<void> | void;

export interface RowResult {
  /** What must have been indexed while the fault lasted and was not; empty in a good row. */
  readonly unserved: string;
  readonly receivesMax: number;
  readonly deadLetters: number;
  /** How index and buckets differ in the end; empty in a good row. */
  readonly difference: string;
}

const ROUNDS = 20;
const ROUND_MS = 200;
/** A killed daemon's messages come back after 10 s, and a busy machine takes its time to start the next. */
const SERVED_TIMEOUT_MS = 300_000;
/** A message that failed alone twice is hidden for a minute, and an attempt comes after half a minute. */
const HEALED_TIMEOUT_MS = 300_000;
const WATCH_MS = 100;

interface Sent {
  readonly traffic: Traffic;
  isSettled: boolean;
}

/** Runs a row to its end. It does not judge what it sees. */
export async function runFaultRow(row: FaultRow): Promise<RowResult> {
  await using flow = await openFlow(row.index, { maxReceiveCount: 10 });
  const { world } = flow;
  const watch = startWatch(world);
  const load = createLoad(row, world, watch);
  const waits = concerned[row.reach];
  let isOver = false;
  try {
    const victim = await flow.start(row.env);
    load.before();
    await until('both buckets are connected', () => agrees(victim, world), SERVED_TIMEOUT_MS);
    const begun = await row.begin(flow);
    const end = async (): Promise<void> => {
      if (!isOver) await begun();
      isOver = true;
    };
    try {
      await load.rounds(ROUNDS);
      const unservedFirst = await served(watch, waits);
      load.round();
      await victim.kill();
      if (row.endsBeforeStart === true) await end();
      const successor = await flow.start(row.env, { awaitReady: false });
      const reindex = row.reach === 'all' ? undefined : reindexed(successor, world.neighbour);
      await load.rounds(ROUNDS);
      // S3 of the whole region is what such a fault concerns: its re-index waits, and ends with it
      if (row.reach !== 'endpoint') await reindex;
      const unserved = [...unservedFirst, ...(await served(watch, waits)), ...(await unsearched({ row, successor, world }))];
      await end();
      for (const { body } of world.deadLetters().slice(0, row.lettersMax ?? 0)) world.send(body);
      const difference = await healed(successor, world);
      unserved.push(...((await reindex) ?? []));
      return { unserved: unserved.join(', '), receivesMax: watch.receivesMax(), deadLetters: world.deadLetters().length, difference };
    } finally {
      await end();
    }
  } finally {
    watch.stop();
  }
}

/** Requests a re-index of a bucket, and waits for its end. Resolves with what became of it, when that is not what should. */
async function reindexed(daemon: Daemon, { bucket }: WorldBucket): Promise<readonly string[]> {
  let job: ReindexJob | undefined;
  const request = async (): Promise<boolean> => {
    const { status, body } = await daemon.request('POST', `/v1/buckets/${bucket}/reindex`, { now: true });
    if (status === 202) job = body as ReindexJob;
    return job !== undefined;
  };
  const isEnded = async (): Promise<boolean> => {
    const { status, body } = await daemon.request('GET', `/v1/jobs/${job?.id}`);
    if (status === 200) job = body as ReindexJob;
    return job?.finished_at !== undefined;
  };
  try {
    await until('the re-index is taken', request, SERVED_TIMEOUT_MS);
    await until('the re-index has ended', isEnded, SERVED_TIMEOUT_MS);
    return job?.state === 'done' ? [] : [`re-index of the neighbour: ${JSON.stringify(job)}`];
  } catch (error) {
    return [`re-index of the neighbour: ${String(error)} ${JSON.stringify(job)}`];
  }
}

interface ReindexJob {
  readonly id: string;
  readonly state: string;
  readonly finished_at?: string;
}

interface Watch {
  readonly sent: readonly Sent[];
  send(traffic: Traffic, body: string): void;
  receivesMax(): number;
  stop(): void;
}

/** Watches the queue itself: a message that is gone was settled. */
function startWatch(world: QueueWorld): Watch {
  const sent = new Map<string, Sent>();
  let receives = 0;
  function look(): void {
    const { visible, inFlight } = world.messages();
    const present = new Set<string>();
    for (const { body, approximateReceiveCount } of [...visible, ...inFlight]) {
      present.add(body);
      receives = Math.max(receives, approximateReceiveCount);
    }
    for (const [body, entry] of sent) entry.isSettled ||= !present.has(body);
  }
  const timer = setInterval(look, WATCH_MS);
  return {
    get sent() {
      return [...sent.values()];
    },
    send(traffic, body) {
      world.send(body);
      sent.set(body, { traffic, isSettled: false });
    },
    receivesMax: () => receives,
    stop: () => clearInterval(timer),
  };
}

function createLoad({ faulty }: FaultRow, world: QueueWorld, watch: Watch) {
  const { neighbour } = world;
  let count = 0;

  function change(traffic: Traffic, bucket: WorldBucket, { key, gone }: { readonly key: string; readonly gone: string }): void {
    // each third event is of a removed object: there an answer that is believed too soon deletes, or keeps, the wrong document
    const isRemoval = traffic !== 'exact' && traffic !== 'neighbour exact' && count % 3 === 0;
    const isInexact = traffic === 'inexact' || traffic === 'neighbour inexact' || traffic === 'faulty';
    const body = isRemoval ? bucket.remove(gone) : isInexact ? bucket.putUnstated(key) : bucket.put(key);
    watch.send(traffic, body);
  }

  function faultyKeys(prefix: string, keys: 'one' | 'many'): { readonly key: string; readonly gone: string } {
    return keys === 'one' ? { key: `${prefix}/1`, gone: `${prefix}/1` } : { key: `${prefix}/${count}`, gone: `${prefix}/gone` };
  }

  function round(): void {
    count += 1;
    const at = { key: `key/${count}`, gone: `gone/${count}` };
    const inexact = { key: `inexact/${count}`, gone: at.gone };
    change('exact', world, at);
    change('inexact', world, inexact);
    change('neighbour exact', neighbour, at);
    change('neighbour inexact', neighbour, inexact);
    if (faulty !== undefined) change('faulty', world, faultyKeys(faulty.prefix, faulty.keys));
  }

  return {
    /** Objects that are removed later, of both buckets. */
    before(): void {
      for (let each = 3; each <= 3 * ROUNDS; each += 3) {
        for (const bucket of [world, neighbour]) watch.send('exact', bucket.put(`gone/${each}`));
      }
      if (faulty?.keys === 'many') watch.send('exact', world.put(`${faulty.prefix}/gone`));
    },
    round,
    async rounds(rounds: number): Promise<void> {
      for (let each = 0; each < rounds; each += 1) {
        round();
        await delay(ROUND_MS);
      }
    },
  };
}

/** Waits for the messages that the fault does not concern. Returns what was not settled in time. */
async function served(watch: Watch, waits: readonly Traffic[]): Promise<readonly string[]> {
  const open = (): readonly Sent[] => watch.sent.filter(({ traffic, isSettled }) => !isSettled && !waits.includes(traffic));
  await until('what is not concerned is served', () => open().length === 0, SERVED_TIMEOUT_MS).catch(() => undefined);
  return [...Map.groupBy(open(), ({ traffic }) => traffic)].map(([traffic, entries]) => `${entries.length} × ${traffic}`);
}

interface Searched {
  readonly row: FaultRow;
  readonly successor: Daemon;
  readonly world: QueueWorld;
}

/** What a search of the neighbour lacks while the fault lasts, of what must be there. */
async function unsearched({ row: { reach }, successor, world }: Searched): Promise<readonly string[]> {
  if (reach === 'all') return [];
  const isExact = (key: string): boolean => key.startsWith('key/');
  let missing: readonly string[] = [];
  const isFound = async (): Promise<boolean> => {
    const found = await indexed(successor, world.neighbour.bucket);
    const wanted = [...world.neighbour.objects()].filter(([key]) => reach !== 'endpoint' || isExact(key));
    missing = wanted.filter(([key, etag]) => isExact(key) && found?.get(key) !== etag).map(([key]) => `not found: neighbour ${key}`);
    return missing.length === 0;
  };
  // a search of OpenSearch sees a write within a second
  await until('the neighbour is found', isFound, 120_000).catch(() => undefined);
  return missing.slice(0, 3);
}

async function healed(daemon: Daemon, world: QueueWorld): Promise<string> {
  try {
    await until('index and buckets agree', () => agrees(daemon, world), HEALED_TIMEOUT_MS);
    return '';
  } catch {
    const { visible, inFlight } = world.messages();
    const differences = await Promise.all([world, world.neighbour].map((bucket) => differenceOf(daemon, bucket)));
    const log = daemon.log.slice(-10).map((line) => JSON.stringify(line));
    return [`visible ${visible.length}, in flight ${inFlight.length}`, JSON.stringify(differences), ...log].join('\n');
  }
}

async function agrees(daemon: Daemon, world: QueueWorld): Promise<boolean> {
  const { visible, inFlight } = world.messages();
  if (visible.length + inFlight.length > 0) return false;
  for (const bucket of [world, world.neighbour]) if ((await differenceOf(daemon, bucket)) !== undefined) return false;
  return true;
}

/** An index that does not answer is no reason to stop. */
const differenceOf = (daemon: Daemon, bucket: WorldBucket): Promise<unknown> =>
  bucketDifference(daemon, bucket).catch(() => `${bucket.bucket}: no answer to a search`);
