/** The bench `ingest`: what taking bucket events into the index costs, beside what receiving alone costs. */
import { cpus, totalmem } from 'node:os';
import type { Command } from 'commander';
import { Option } from 'commander';
import { commandOf, listOf, whole } from '../bench-command.ts';
import { runBacklog, type BacklogRun } from './backlog.ts';
import { BUCKET, consumerKinds, type ConsumerKind } from './consumers.ts';
import { HEAD_LATENCY_MS, runHeads, type HeadsRun } from './heads.ts';
import { runLatency, type LatencyRun } from './latency.ts';
import { startQueue, type BenchQueue } from './queue.ts';
import { reportText } from './report.ts';
import { runRouted, type RoutedRun } from './routed.ts';

const measures = ['backlog', 'routed', 'heads', 'latency'] as const;
type Measure = (typeof measures)[number];
type TallyKind = Exclude<ConsumerKind, 'null'>;

export interface IngestReport {
  readonly bench: 'ingest';
  readonly date: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryMib: number; readonly node: string };
  /** TALLY_ variables that the workers were given beyond addresses. */
  readonly settings: Readonly<Record<string, string>>;
  readonly messages: number;
  readonly workers: number;
  /** In the order they were run: interleaved. */
  readonly backlog: readonly BacklogRun[];
  readonly routed: readonly (RoutedRun & { readonly consumer: TallyKind })[];
  readonly heads: readonly (HeadsRun & { readonly consumer: TallyKind })[];
  readonly latency: readonly (LatencyRun & { readonly consumer: TallyKind })[];
  /** What was left out, and why. */
  readonly leftOut: readonly string[];
}

interface IngestOptions {
  readonly measure: readonly Measure[];
  readonly consumers: readonly ConsumerKind[];
  readonly messages: number;
  readonly rounds: number;
  readonly workers: number;
  readonly routedEvents: number;
  readonly headEvents: number;
  readonly latencyEvents: number;
}

/** The bench's command. */
export const ingestBench = commandOf<IngestOptions, IngestReport>({ name: 'ingest', describe, run, text: reportText });

function describe(command: Command): Command {
  return command
    .description('CPU, memory, throughput and latency of taking bucket events into the index.')
    .addOption(
      new Option('--measure <names>', 'what is measured, comma-separated')
        .argParser(listOf(measures))
        .default(measures, measures.join(',')),
    )
    .addOption(
      new Option('--consumers <names>', 'who is measured, comma-separated')
        .argParser(listOf(consumerKinds))
        .default(consumerKinds, consumerKinds.join(',')),
    )
    .addOption(new Option('--messages <count>', 'messages of a backlog').argParser(whole(100, 5_000_000)).default(50_000))
    .addOption(
      new Option('--rounds <count>', 'backlogs of each consumer, interleaved; told is the median').argParser(whole(1, 99)).default(3),
    )
    .addOption(new Option('--workers <count>', 'processes on the one queue (one with SQLite)').argParser(whole(1, 9)).default(1))
    .addOption(new Option('--routed-events <count>', 'events that need a HEAD').argParser(whole(10, 1_000_000)).default(10_000))
    .addOption(
      new Option('--head-events <count>', 'events each of which needs a HEAD of its own').argParser(whole(10, 1_000_000)).default(20_000),
    )
    .addOption(new Option('--latency-events <count>', 'events that are searched for').argParser(whole(1, 10_000)).default(100))
    .addHelpText(
      'after',
      `
Measures:
  backlog   A consumer waits at an empty queue; the queue is filled; the consumer
            empties it. CPU (user and system, of the consumer's processes alone,
            from the fill to the last delete), messages/s, peak RSS. Afterwards
            the metrics must tell of nothing but exact writes, and the index must
            hold just the documents that the messages said.
  routed    The same with audit-trail events, which need a HEAD each: five of each
            key in one batch of ten.
  heads     The same with a key for each event, so that each needs a HEAD of its
            own, and an S3 that answers after ${HEAD_LATENCY_MS} ms, by HTTP and by TLS. The CPU
            of a HEAD is that of such an event less that of one without a HEAD.
  latency   Events one by one while nothing else happens, until a search finds
            each.

Consumers:
  null        sqs-consumer and the AWS SDK at their defaults, 16 pollers, which
              only deletes (in backlog alone)
  sqlite      tally serve with a SQLite index
  opensearch  tally serve with OpenSearch

The queue is fauxqs, in a process of its own. Linux only: CPU and memory are read
from /proc. On two cores the queue, the worker and OpenSearch share them: compare
within one run only.

Environment:
  TALLY_BENCH_OPENSEARCH_URL  an OpenSearch without data that matters; without it
                              the consumer opensearch is left out
  TALLY_…                     other settings reach the workers as they are`,
    );
}

async function run(options: IngestOptions, tell: (text: string) => void): Promise<IngestReport> {
  const opensearchUrl = process.env['TALLY_BENCH_OPENSEARCH_URL'];
  const kinds = options.consumers.filter((kind) => kind !== 'opensearch' || opensearchUrl !== undefined);
  const leftOut = kinds.length < options.consumers.length ? ['opensearch: TALLY_BENCH_OPENSEARCH_URL is not set'] : [];
  for (const each of leftOut) tell(`left out: ${each}`);
  const queue = await startQueue();
  try {
    await queue.ask({ kind: 'create-bucket', bucket: BUCKET });
    const common = { queue, opensearchUrl };
    const tallyKinds = kinds.filter((kind) => kind !== 'null');
    const wants = (measure: Measure): boolean => options.measure.includes(measure);
    const backlog = wants('backlog') ? await backlogs(kinds, { ...common, ...options }, tell) : [];
    const routed = [];
    for (const kind of wants('routed') ? tallyKinds : []) {
      tell(`routed, ${kind}`);
      routed.push({ consumer: kind, ...(await runRouted(kind, { ...common, workers: 1, events: options.routedEvents })) });
    }
    const heads: IngestReport['heads'][number][] = [];
    for (const kind of wants('heads') ? tallyKinds : []) {
      tell(`heads, ${kind}`);
      const runs = await runHeads(kind, { ...common, workers: 1, events: options.headEvents });
      heads.push(...runs.map((each) => ({ consumer: kind, ...each })));
    }
    const latency = [];
    for (const kind of wants('latency') ? tallyKinds : []) {
      tell(`latency, ${kind}`);
      latency.push({ consumer: kind, ...(await runLatency(kind, { ...common, workers: 1, events: options.latencyEvents })) });
    }
    const { messages, workers } = options;
    return {
      bench: 'ingest',
      date: new Date().toISOString(),
      machine: machine(),
      settings: settings(),
      messages,
      workers,
      backlog,
      routed,
      heads,
      latency,
      leftOut,
    };
  } finally {
    queue.close();
  }
}

interface BacklogsOptions {
  readonly queue: BenchQueue;
  readonly opensearchUrl: string | undefined;
  readonly messages: number;
  readonly rounds: number;
  readonly workers: number;
}

/** a, b, c, a, b, c …: what the machine does besides hits all alike. */
async function backlogs(
  kinds: readonly ConsumerKind[],
  options: BacklogsOptions,
  tell: (text: string) => void,
): Promise<readonly BacklogRun[]> {
  const runs: BacklogRun[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const kind of kinds) {
      const result = await runBacklog(kind, { ...options, workers: workersOf(kind, options) });
      tell(
        `backlog ${round} of ${options.rounds}, ${kind}: ${result.cpuUsPerMessage.toFixed(1)} µs, ${result.messagesPerS.toFixed(0)}/s, ${result.peakRssMib.toFixed(0)} MiB`,
      );
      runs.push(result);
    }
  }
  return runs;
}

/** Only one process may serve a SQLite file. */
function workersOf(kind: ConsumerKind, { workers }: { readonly workers: number }): number {
  return kind === 'sqlite' ? 1 : workers;
}

function machine(): IngestReport['machine'] {
  const all = cpus();
  return { cpu: all[0]?.model ?? '', cores: all.length, memoryMib: Math.round(totalmem() / 1_048_576), node: process.version };
}

function settings(): Readonly<Record<string, string>> {
  const entries = Object.entries(process.env).filter(([name]) => name.startsWith('TALLY_') && !name.startsWith('TALLY_BENCH_'));
  return Object.fromEntries(entries.map(([name, value]) => [name, value ?? '']));
}
