/** One run: a consumer on an empty queue, idle; the queue is filled; the consumer empties it; what it did is checked. */
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicUs, until, type MeasuredProcess, type Usage } from '../processes.ts';
import { BUCKET, startConsumer, type Consumer, type ConsumerKind, type ConsumerOptions } from './consumers.ts';
import { benchObject } from './messages.ts';
import type { BenchQueue } from './queue.ts';

export interface BacklogRun {
  readonly consumer: ConsumerKind;
  /** User and system time of the consumer's processes from the fill until the last delete, without their start. */
  readonly cpuUsPerMessage: number;
  /** From the end of the fill until the last delete. */
  readonly messagesPerS: number;
  /** Of the largest process, since its start; and what it was before the first message. */
  readonly peakRssMib: number;
  readonly idleRssMib: number;
  /** Cores that the queue's own process had: near 1, it was what limited the run. */
  readonly queueCores: number;
}

export interface BacklogOptions extends Omit<ConsumerOptions, 'queueUrl' | 'endpoint'> {
  readonly queue: BenchQueue;
  readonly messages: number;
}

/** What follows a start (timers, the first looks at queue and buckets) is over by then, and JIT-compiled code is not thrown away yet. */
const IDLE_MS = 3_000;
/** A consumer that makes no headway must not hang the bench: 100 messages/s at least. */
const MESSAGE_MS_MAX = 10;

let runs = 0;

/** Runs one consumer; throws when any message was not handled as it should have been. */
export async function runBacklog(kind: ConsumerKind, options: BacklogOptions): Promise<BacklogRun> {
  const { queue, messages } = options;
  const { name, url } = await queue.createQueue();
  const consumer = await startConsumer(kind, { ...options, queueUrl: url, endpoint: queue.endpoint });
  try {
    await sleep(IDLE_MS);
    runs += 1;
    const run = `run${runs}`;
    const before = usages(consumer.processes);
    const filled = await queue.putMessages({ queue: name, dialect: 'native', bucket: BUCKET, run, messages, repeats: 1, ageMs: 0 });
    const filledUs = monotonicUs();
    const drained = await drainedBy(consumer.processes, queue, 60_000 + messages * MESSAGE_MS_MAX);
    const toUs = monotonicUs();
    const after = usages(consumer.processes);
    await verify(consumer, run, messages);
    return {
      consumer: kind,
      cpuUsPerMessage: (sumOf(after, 'cpuUs') - sumOf(before, 'cpuUs')) / messages,
      messagesPerS: messages / ((toUs - filledUs) / 1_000_000),
      peakRssMib: Math.max(...after.map(({ peakRssBytes }) => peakRssBytes)) / MIB,
      idleRssMib: Math.max(...before.map(({ peakRssBytes }) => peakRssBytes)) / MIB,
      queueCores: (drained.cpuUs - filled.cpuUs) / (toUs - filledUs),
    };
  } finally {
    await consumer.stop();
  }
}

const MIB = 1_048_576;

function usages(processes: readonly MeasuredProcess[]): readonly Usage[] {
  return processes.map((each) => each.usage());
}

function sumOf(all: readonly Usage[], field: keyof Usage): number {
  return all.reduce((sum, each) => sum + each[field], 0);
}

/** The queue's reply when the fill is deleted; throws when a consumer ends before, or after the time-out. */
export async function drainedBy(
  processes: readonly MeasuredProcess[],
  queue: BenchQueue,
  timeoutMs: number,
): Promise<Awaited<ReturnType<BenchQueue['drained']>>> {
  let hasEnded = false;
  const drained = queue.drained().finally(() => {
    hasEnded = true;
  });
  const isOver = (): boolean => hasEnded || processes.some((each) => !each.isRunning);
  await Promise.race([drained, until('the queue to be drained', isOver, { timeoutMs, everyMs: 1_000 })]);
  const gone = processes.find((each) => !each.isRunning);
  if (gone !== undefined) throw new Error(`a consumer ended: ${gone.text()}`);
  return drained;
}

/** A bench that checks nothing lies: every record took the exact path, nothing else happened, and the index holds just what the messages said. */
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
    const document = documents.get(key);
    expectEqual(`etag of ${key}`, document?.etag, etag);
    expectEqual(`size of ${key}`, document?.size, sizeBytes);
    expectEqual(`settled of ${key}`, document?.settled, true);
  }
}

export function expectEqual(what: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`the run was not as it should be: ${what}: ${String(found)} instead of ${String(expected)}`);
}
