/**
 * What a HEAD request costs and how many a worker sends in a second: a backlog of events each of which needs a HEAD of its own
 * key, beside as many events that need none. S3 answers after a fixed time, by HTTP and by TLS.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { certificateFor } from '../../support/servers/certificate.ts';
import { monotonicUs, until } from '../processes.ts';
import { drainedBy, expectEqual } from './backlog.ts';
import { BUCKET, startConsumer, type ConsumerKind, type ConsumerOptions } from './consumers.ts';
import type { HeadServerReply, HeadServerRequest } from './head-server.ts';
import type { BenchQueue } from './queue.ts';

export const transports = ['http', 'tls'] as const;
type Transport = (typeof transports)[number];

export interface HeadsRun {
  readonly events: number;
  readonly transport: Transport;
  readonly headsPerS: number;
  readonly cpuUsPerEvent: number;
  /** That of an event which needs a HEAD, less that of one which needs none: both write one document. */
  readonly cpuUsPerHead: number;
  readonly peakRssMib: number;
}

export interface HeadsOptions extends Omit<ConsumerOptions, 'queueUrl' | 'endpoint' | 's3'> {
  readonly queue: BenchQueue;
  readonly events: number;
}

/** What S3 takes for a HEAD at its best. */
export const HEAD_LATENCY_MS = 20;
/** An event older than the settle time and the margin (40 s) is settled by its first look. */
const AGE_MS = 120_000;
const IDLE_MS = 3_000;
/** 50 events a second at least. */
const EVENT_MS_MAX = 20;
const MIB = 1_048_576;

/** Measures events without HEADs once, and those with HEADs by each transport. Throws when an event was not handled as it should have been. */
export async function runHeads(kind: Exclude<ConsumerKind, 'null'>, options: HeadsOptions): Promise<readonly HeadsRun[]> {
  const { cpuUsPerEvent: withoutUs } = await runEvents(kind, options, undefined);
  const runs: HeadsRun[] = [];
  for (const transport of transports) {
    const server = await startHeadServer(transport);
    try {
      const run = await runEvents(kind, options, server);
      runs.push({ ...run, events: options.events, transport, cpuUsPerHead: run.cpuUsPerEvent - withoutUs });
    } finally {
      await server.close();
    }
  }
  return runs;
}

let runs = 0;

async function runEvents(
  kind: Exclude<ConsumerKind, 'null'>,
  { queue, events, ...options }: HeadsOptions,
  server: HeadServer | undefined,
): Promise<Pick<HeadsRun, 'cpuUsPerEvent' | 'headsPerS' | 'peakRssMib'>> {
  const { name, url } = await queue.createQueue();
  const consumer = await startConsumer(kind, {
    ...options,
    queueUrl: url,
    endpoint: queue.endpoint,
    ...(server && { s3: server.address }),
  });
  try {
    await sleep(IDLE_MS);
    runs += 1;
    const run = `heads${runs}`;
    const cpuUs = (): number => consumer.processes.reduce((sum, each) => sum + each.usage().cpuUs, 0);
    const cpuBeforeUs = cpuUs();
    const dialect = server === undefined ? 'native' : 'routed';
    await queue.putMessages({ queue: name, dialect, bucket: BUCKET, run, messages: events, repeats: 1, ageMs: AGE_MS });
    const filledUs = monotonicUs();
    await drainedBy(consumer.processes, queue, 60_000 + events * EVENT_MS_MAX);
    const durationUs = monotonicUs() - filledUs;
    const cpuUsPerEvent = (cpuUs() - cpuBeforeUs) / events;
    await until('the index to hold all keys', async () => (await consumer.index?.documents(BUCKET))?.size === events, { everyMs: 1_000 });
    const metrics = await consumer.metrics?.();
    const wanted = server === undefined ? 0 : events;
    expectEqual('HEADs that found their object', metrics?.sum('tally_head_requests_total', { result: 'present' }), wanted);
    expectEqual('HEADs in all', metrics?.sum('tally_head_requests_total'), wanted);
    if (server !== undefined) {
      const { heads, headsOfOneKeyMax } = await server.count();
      expectEqual('HEADs that S3 has answered', heads, events);
      expectEqual('HEADs of one key', headsOfOneKeyMax, 1);
    }
    const peakRssMib = Math.max(...consumer.processes.map((each) => each.usage().peakRssBytes)) / MIB;
    return { cpuUsPerEvent, headsPerS: events / (durationUs / 1_000_000), peakRssMib };
  } finally {
    await consumer.stop();
  }
}

interface HeadServer {
  readonly address: NonNullable<ConsumerOptions['s3']>;
  count(): Promise<HeadServerReply>;
  close(): Promise<void>;
}

async function startHeadServer(transport: Transport): Promise<HeadServer> {
  const child = fork(new URL('head-server.ts', import.meta.url), { execArgv: [], env: { PATH: process.env['PATH'] } });
  const ended = once(child, 'exit');
  async function ask(request: HeadServerRequest): Promise<HeadServerReply> {
    const answer = once(child, 'message');
    child.send(request);
    const [reply] = (await answer) as [HeadServerReply];
    return reply;
  }
  const folder = await mkdtemp(join(tmpdir(), 'tally-bench-'));
  const caFile = join(folder, 'ca.pem');
  const certificate = transport === 'tls' ? await certificateFor(['127.0.0.1']) : undefined;
  if (certificate !== undefined) await writeFile(caFile, certificate.cert);
  const { port } = await ask({ kind: 'start', latencyMs: HEAD_LATENCY_MS, certificate });
  return {
    address: certificate === undefined ? { url: `http://127.0.0.1:${port}` } : { url: `https://127.0.0.1:${port}`, caFile },
    count: () => ask({ kind: 'count' }),
    async close() {
      child.disconnect();
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}
