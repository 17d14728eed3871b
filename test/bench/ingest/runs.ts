/** The runs of one consumer on a queue of its own: a backlog that it empties, and events one by one. What each did is checked. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { certificateFor } from '../../support/servers/certificate.ts';
import { startForked, type Forked } from '../forked.ts';
import { monotonicUs, until } from '../processes.ts';
import { quantileOf } from '../report.ts';
import { startConsumer, type Consumer, type ConsumerKind, type ConsumerOptions } from './consumers.ts';
import type { HeadServerReply, HeadServerRequest } from './head-server.ts';
import { BUCKET, benchObject } from './messages.ts';
import type { Fill, QueueReply, QueueRequest } from './queue-server.ts';

export type TallyKind = Exclude<ConsumerKind, 'null'>;

export interface RunOptions extends Omit<ConsumerOptions, 'queueUrl' | 'endpoint'> {
  readonly queue: Forked<QueueRequest, QueueReply>;
  /** Where SQS and S3 are. */
  readonly endpoint: string;
}

/** What follows a start (timers, the first looks at queue and buckets) is over by then, and JIT-compiled code is not thrown away yet. */
const IDLE_MS = 3_000;
/** A consumer that makes no headway must not hang the bench: 50 events a second at least. */
const EVENT_MS_MAX = 20;
const MIB = 1_048_576;

let runs = 0;

/** Works with a consumer that waits at an empty queue. */
async function withConsumer<Result>(
  kind: ConsumerKind,
  { queue, ...options }: RunOptions,
  work: (consumer: Consumer, at: { readonly queue: string; readonly run: string }) => Promise<Result>,
): Promise<Result> {
  runs += 1;
  const name = `bench-${runs}`;
  await queue.ask({ kind: 'create-queue', queue: name });
  const consumer = await startConsumer(kind, { ...options, queueUrl: `${options.endpoint}/000000000000/${name}` });
  try {
    await sleep(IDLE_MS);
    return await work(consumer, { queue: name, run: `run${runs}` });
  } finally {
    await consumer.stop();
  }
}

/** Fills the queue and waits until the consumer has emptied it; throws when the consumer ends before. */
async function drain({ processes }: Consumer, queue: RunOptions['queue'], fill: Omit<Fill, 'kind'>) {
  const used = (): { cpuUs: number; peakRssMib: number } => {
    const all = processes.map((each) => each.usage());
    return { cpuUs: all.reduce((sum, each) => sum + each.cpuUs, 0), peakRssMib: Math.max(...all.map((each) => each.peakRssBytes)) / MIB };
  };
  const before = used();
  const filled = await queue.ask({ kind: 'fill', ...fill });
  const filledUs = monotonicUs();
  let hasEnded = false;
  const ending = queue.ask({ kind: 'await-drained' }).finally(() => {
    hasEnded = true;
  });
  const isOver = (): boolean => hasEnded || processes.some((each) => !each.isRunning);
  const timeoutMs = 60_000 + fill.messages * EVENT_MS_MAX;
  await Promise.race([ending, until('the queue to be drained', isOver, { timeoutMs, everyMs: 1_000 })]);
  const gone = processes.find((each) => !each.isRunning);
  if (gone !== undefined) throw new Error(`a consumer ended: ${gone.text()}`);
  const { cpuUs, heads, headsOfOneKeyMax } = await ending;
  const tookUs = monotonicUs() - filledUs;
  const after = used();
  return {
    heads,
    headsOfOneKeyMax,
    row: {
      /** User and system time of the consumer's processes from the fill until the last delete, without their start. */
      cpuUsPerMessage: (after.cpuUs - before.cpuUs) / fill.messages,
      /** From the end of the fill until the last delete. */
      messagesPerS: fill.messages / (tookUs / 1_000_000),
      /** Of the largest process, since its start; and what it was before the first message. */
      peakRssMib: after.peakRssMib,
      idleRssMib: before.peakRssMib,
      /** Cores that the queue's own process had: near 1, it was what limited the run. */
      queueCores: (cpuUs - filled.cpuUs) / tookUs,
    },
  };
}

/** Native events, each of its own key: every record must take the exact path, and the index hold just what the messages said. */
export function runBacklog(kind: ConsumerKind, messages: number, options: RunOptions) {
  return withConsumer(kind, options, async (consumer, at) => {
    const { row } = await drain(consumer, options.queue, { ...at, dialect: 'native', messages, repeats: 1, ageMs: 0 });
    await verify(consumer, at.run, messages);
    return { consumer: kind, ...row };
  });
}

async function verify({ metrics, index }: Consumer, run: string, messages: number): Promise<void> {
  if (metrics === undefined || index === undefined) return;
  // the last delete is counted when its answer has come
  await until('the metrics to tell of all deletes', async () => (await metrics()).sum('tally_messages_total') >= messages);
  const counted = await metrics();
  expectEqual('records written as exact', counted.sum('tally_records_total', { dialect: 'native', outcome: 'written' }), messages);
  expectEqual('records in all', counted.sum('tally_records_total'), messages);
  expectEqual('messages deleted', counted.sum('tally_messages_total', { settlement: 'delete' }), messages);
  expectEqual('HEADs', counted.sum('tally_head_requests_total'), 0);
  await until('searches to find all', async () => (await index.documents(BUCKET)).size >= messages, { everyMs: 1_000 });
  const documents = await index.documents(BUCKET);
  expectEqual('documents', documents.size, messages);
  for (let number = 0; number < messages; number += 1) {
    const { key, etag, sizeBytes } = benchObject(run, number);
    const { etag: foundEtag, size, settled } = documents.get(key) ?? {};
    expectEqual(`the document of ${key}`, [foundEtag, size, settled].join(), [etag, sizeBytes, true].join());
  }
}

function expectEqual(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`the run was not as it should be: ${what}: ${String(found)} instead of ${String(expected)}`);
}

/** An event older than the settle time and the margin (40 s) is settled by its first observation. */
const AGE_MS = 120_000;
/** Events of one key, one after the other; they divide a batch of ten, so that no key is in two batches. */
const REPEATS = 5;

async function expectHeads({ index, metrics }: Consumer, keys: number, heads: number): Promise<void> {
  await until('the index to hold all keys', async () => (await index?.documents(BUCKET))?.size === keys, { everyMs: 1_000 });
  const counted = await metrics?.();
  expectEqual('HEADs that found their object', counted?.sum('tally_head_requests_total', { result: 'present' }), heads);
  expectEqual('HEADs in all', counted?.sum('tally_head_requests_total'), heads);
}

/** Routed events, of which several tell of one key: each key must be asked for once. */
export function runRouted(kind: TallyKind, messages: number, options: RunOptions) {
  const { queue } = options;
  return withConsumer(kind, options, async (consumer, at) => {
    const keys = Math.ceil(messages / REPEATS);
    await queue.ask({ kind: 'put-objects', run: at.run, count: keys });
    const { heads, headsOfOneKeyMax, row } = await drain(consumer, queue, {
      ...at,
      dialect: 'routed',
      messages,
      repeats: REPEATS,
      ageMs: AGE_MS,
    });
    await expectHeads(consumer, keys, heads);
    expectEqual('HEADs of one key in one batch', headsOfOneKeyMax, 1);
    return { consumer: kind, events: messages, keys, heads, ...row };
  });
}

export const transports = ['http', 'tls'] as const;
/** What S3 takes for a HEAD at its best. */
export const HEAD_LATENCY_MS = 20;

/** Events each of which needs a HEAD of its own key, by each transport, less what events without a HEAD cost: both write one document. */
export async function runHeads(kind: TallyKind, messages: number, options: RunOptions) {
  const run = (s3: ConsumerOptions['s3'], count: () => Promise<Pick<HeadServerReply, 'heads' | 'headsOfOneKeyMax'>>) =>
    withConsumer(kind, { ...options, ...(s3 && { s3 }) }, async (consumer, at) => {
      const dialect = s3 === undefined ? 'native' : 'routed';
      const { row } = await drain(consumer, options.queue, { ...at, dialect, messages, repeats: 1, ageMs: AGE_MS });
      const { heads, headsOfOneKeyMax } = await count();
      expectEqual('HEADs that S3 has answered', heads, s3 === undefined ? 0 : messages);
      expectEqual('HEADs of one key at most', headsOfOneKeyMax <= 1, true);
      await expectHeads(consumer, messages, heads);
      return row;
    });
  const without = await run(undefined, async () => ({ heads: 0, headsOfOneKeyMax: 0 }));
  const rows = [];
  for (const transport of transports) {
    const server = startForked<HeadServerRequest, HeadServerReply>(new URL('head-server.ts', import.meta.url));
    const folder = await mkdtemp(join(tmpdir(), 'tally-bench-'));
    try {
      const certificate = transport === 'tls' ? await certificateFor(['127.0.0.1']) : undefined;
      const caFile = join(folder, 'ca.pem');
      if (certificate !== undefined) await writeFile(caFile, certificate.cert);
      const { port } = await server.ask({ kind: 'start', latencyMs: HEAD_LATENCY_MS, certificate });
      const s3 = certificate === undefined ? { url: `http://127.0.0.1:${port}` } : { url: `https://127.0.0.1:${port}`, caFile };
      const row = await run(s3, () => server.ask({ kind: 'count' }));
      rows.push({ consumer: kind, transport, ...row, cpuUsPerHead: row.cpuUsPerMessage - without.cpuUsPerMessage });
    } finally {
      server.close();
      await rm(folder, { recursive: true });
    }
  }
  return rows;
}

/** Between two events: at random, so that they meet the index's refreshes (one a second) at all phases. */
const PAUSE_MS = 300;
/** How exact a latency is. */
const LOOK_EVERY_MS = 5;
const LATENCY_MS_MAX = 30_000;

/** Events one after the other while nothing else happens: from each to its being found by a search. */
export function runLatency(kind: TallyKind, events: number, options: RunOptions) {
  return withConsumer(kind, options, async ({ index }, at) => {
    const latencies: number[] = [];
    for (let event = 0; event < events; event += 1) {
      await sleep(PAUSE_MS * (0.5 + Math.random()));
      const run = `${at.run}-${event}`;
      const sentMs = performance.now();
      await options.queue.ask({ kind: 'fill', queue: at.queue, dialect: 'native', run, messages: 1, repeats: 1, ageMs: 0 });
      const isFound = async (): Promise<boolean> => (await index?.finds(BUCKET, benchObject(run, 0).key)) === true;
      await until(`event ${event} to be found`, isFound, { timeoutMs: LATENCY_MS_MAX, everyMs: LOOK_EVERY_MS });
      latencies.push(performance.now() - sentMs);
    }
    return { consumer: kind, events, p50Ms: quantileOf(latencies, 0.5), p95Ms: quantileOf(latencies, 0.95) };
  });
}
