/** From an event to its being found by a search, while nothing else happens. */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../processes.ts';
import { quantileOf } from '../statistics.ts';
import { BUCKET, startConsumer, type ConsumerKind, type ConsumerOptions } from './consumers.ts';
import { benchObject } from './messages.ts';
import type { BenchQueue } from './queue.ts';

export interface LatencyRun {
  readonly events: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

export interface LatencyOptions extends Omit<ConsumerOptions, 'queueUrl' | 'endpoint'> {
  readonly queue: BenchQueue;
  readonly events: number;
}

const IDLE_MS = 3_000;
/** Between two events: at random, so that they meet the index's refreshes (one a second) at all phases. */
const PAUSE_MS = 300;
/** How exact a latency is. */
const LOOK_EVERY_MS = 5;
const LATENCY_MS_MAX = 30_000;

/** Sends events one after the other and searches for each until it is found; throws when one is not. */
export async function runLatency(kind: Exclude<ConsumerKind, 'null'>, options: LatencyOptions): Promise<LatencyRun> {
  const { queue, events } = options;
  const { name, url } = await queue.createQueue();
  const consumer = await startConsumer(kind, { ...options, queueUrl: url, endpoint: queue.endpoint });
  try {
    const { index } = consumer;
    if (index === undefined) throw new Error(`${kind} has no index`);
    await sleep(IDLE_MS);
    const latencies: number[] = [];
    for (let event = 0; event < events; event += 1) {
      await sleep(PAUSE_MS * (0.5 + Math.random()));
      const run = `latency${event}`;
      const sentMs = performance.now();
      await queue.putMessages({ queue: name, dialect: 'native', bucket: BUCKET, run, messages: 1, repeats: 1, ageMs: 0 });
      const isFound = async (): Promise<boolean> => await index.finds(BUCKET, benchObject(run, 0).key);
      await until(`event ${event} to be found`, isFound, { timeoutMs: LATENCY_MS_MAX, everyMs: LOOK_EVERY_MS });
      latencies.push(performance.now() - sentMs);
    }
    return { events, p50Ms: quantileOf(latencies, 0.5), p95Ms: quantileOf(latencies, 0.95) };
  } finally {
    await consumer.stop();
  }
}
