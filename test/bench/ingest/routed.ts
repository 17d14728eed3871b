/** Routed events: each needs a HEAD. A backlog of them, old enough that the first look settles them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicUs, until } from '../processes.ts';
import { drainedBy, expectEqual } from './backlog.ts';
import { BUCKET, startConsumer, type ConsumerKind, type ConsumerOptions } from './consumers.ts';
import type { BenchQueue } from './queue.ts';

export interface RoutedRun {
  readonly events: number;
  readonly keys: number;
  readonly eventsPerS: number;
  readonly headsPerS: number;
  readonly cpuUsPerEvent: number;
  /** Of the one batch of ten that holds all events of a key: 1 is the promise. */
  readonly headsPerKeyAndBatchMax: number;
  readonly queueCores: number;
}

export interface RoutedOptions extends Omit<ConsumerOptions, 'queueUrl' | 'endpoint'> {
  readonly queue: BenchQueue;
  readonly events: number;
}

/** Events of one key, one after the other; they divide a batch of ten, so that no key is in two batches. */
const REPEATS = 5;
/** An event older than the settle time and the margin (40 s) is settled by its first look. */
const AGE_MS = 120_000;
const IDLE_MS = 3_000;
/** 50 events a second at least. */
const EVENT_MS_MAX = 20;
const RUN = 'routed';

/** Runs one worker; throws when an event was not handled as it should have been. */
export async function runRouted(kind: Exclude<ConsumerKind, 'null'>, options: RoutedOptions): Promise<RoutedRun> {
  const { queue, events } = options;
  const keys = Math.ceil(events / REPEATS);
  await queue.ask({ kind: 'put-objects', bucket: BUCKET, run: RUN, count: keys });
  const { name, url } = await queue.createQueue();
  const consumer = await startConsumer(kind, { ...options, queueUrl: url, endpoint: queue.endpoint });
  try {
    await sleep(IDLE_MS);
    const cpuUs = (): number => consumer.processes.reduce((sum, each) => sum + each.usage().cpuUs, 0);
    const cpuBeforeUs = cpuUs();
    const fill = { queue: name, dialect: 'routed', bucket: BUCKET, run: RUN, messages: events, repeats: REPEATS, ageMs: AGE_MS } as const;
    const filled = await queue.putMessages(fill);
    const filledUs = monotonicUs();
    const drained = await drainedBy(consumer.processes, queue, 60_000 + events * EVENT_MS_MAX);
    const durationUs = monotonicUs() - filledUs;
    const cpuUsPerEvent = (cpuUs() - cpuBeforeUs) / events;
    await until('the index to hold all keys', async () => (await consumer.index?.documents(BUCKET))?.size === keys, { everyMs: 1_000 });
    const metrics = await consumer.metrics?.();
    expectEqual('HEADs that found their object', metrics?.sum('tally_head_requests_total', { result: 'present' }), drained.heads);
    expectEqual('HEADs in all', metrics?.sum('tally_head_requests_total'), drained.heads);
    expectEqual('HEADs of one key in one batch', drained.headsOfOneKeyMax, 1);
    return {
      events,
      keys,
      eventsPerS: events / (durationUs / 1_000_000),
      headsPerS: drained.heads / (durationUs / 1_000_000),
      cpuUsPerEvent,
      headsPerKeyAndBatchMax: drained.headsOfOneKeyMax,
      queueCores: (drained.cpuUs - filled.cpuUs) / durationUs,
    };
  } finally {
    await consumer.stop();
  }
}
