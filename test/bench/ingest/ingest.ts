/** The bench `ingest`: what taking bucket events into the index costs, beside what receiving alone costs. */
import { commandOf, countOption, namesOption, openSearchUrl } from '../bench-command.ts';
import { startForked } from '../forked.ts';
import { atLeast, atMost, medianOf, type Target } from '../report.ts';
import { consumerKinds, type ConsumerKind } from './consumers.ts';
import type { QueueReply, QueueRequest } from './queue-server.ts';
import { HEAD_LATENCY_MS, runBacklog, runHeads, runLatency, runRouted, type RunOptions } from './runs.ts';

const measures = ['backlog', 'routed', 'heads', 'latency'] as const;

interface IngestOptions {
  readonly measure: readonly (typeof measures)[number][];
  readonly consumers: readonly ConsumerKind[];
  readonly messages: number;
  readonly rounds: number;
  readonly workers: number;
  readonly routedEvents: number;
  readonly headEvents: number;
  readonly latencyEvents: number;
}

/** The bench's command. */
export const ingestBench = commandOf<IngestOptions>({
  name: 'ingest',
  description: 'CPU, memory, throughput and latency of taking bucket events into the index.',
  options: [
    namesOption('--measure <names>', 'what is measured', measures),
    namesOption('--consumers <names>', 'who is measured', consumerKinds),
    countOption('--messages <count>', 'messages of a backlog', [100, 5_000_000], 50_000),
    countOption('--rounds <count>', 'backlogs of each consumer, interleaved; told is the median', [1, 99], 3),
    countOption('--workers <count>', 'processes on the one queue (one with SQLite)', [1, 9], 1),
    countOption('--routed-events <count>', 'events that need a HEAD', [10, 1_000_000], 10_000),
    countOption('--head-events <count>', 'events each of which needs a HEAD of its own', [10, 1_000_000], 20_000),
    countOption('--latency-events <count>', 'events that are searched for', [1, 10_000], 100),
  ],
  help: `
Measures:
  backlog   A consumer waits at an empty queue; the queue is filled; the consumer
            empties it. Afterwards the metrics must tell of nothing but exact
            writes, and the index must hold just the documents of the messages.
  routed    The same with audit-trail events, which need a HEAD each: five of each
            key in one batch of ten.
  heads     The same with a key for each event, so that each needs a HEAD of its
            own, and an S3 that answers after ${HEAD_LATENCY_MS} ms, by HTTP and by TLS. The CPU
            of a HEAD is that of such an event less that of one without a HEAD.
  latency   Events one by one while nothing else happens, until a search finds
            each.

The consumer null is sqs-consumer and the AWS SDK at their defaults, 16 pollers,
which only deletes (in backlog alone). The queue is fauxqs, in a separate process.
Linux only: CPU and memory are read from /proc. On two cores the queue, the worker
and OpenSearch share them: compare within one run only.

TALLY_BENCH_OPENSEARCH_URL names an OpenSearch that holds nothing of value; without
it that consumer is left out. Other TALLY_ variables reach the workers as they are.`,
  run,
});

/** CPU by that of the null consumer. A large OpenSearch index is refreshed and merged meanwhile. */
const CPU_SHARES_MAX = { null: 1, sqlite: 1.25, opensearch: 1, opensearchLarge: 1.1 };
const LARGE_MESSAGES = 500_000;
const HEAD_US_MAX = 400;
const HEADS_PER_S_MIN = 1_500;

async function run(options: IngestOptions, tell: (text: string) => void) {
  const opensearchUrl = openSearchUrl();
  const kinds = options.consumers.filter((kind) => kind !== 'opensearch' || opensearchUrl !== undefined);
  if (kinds.length < options.consumers.length) tell('left out: opensearch: TALLY_BENCH_OPENSEARCH_URL is not set');
  const queue = startForked<QueueRequest, QueueReply>(new URL('queue-server.ts', import.meta.url));
  try {
    const common: RunOptions = { queue, endpoint: (await queue.next()).endpoint, opensearchUrl, workers: 1 };
    const backlogs = options.measure.includes('backlog') ? await backlogsOf(kinds, common, options, tell) : [];
    const tables = { routed: [] as object[], heads: [] as Awaited<ReturnType<typeof runHeads>>, latency: [] as object[] };
    for (const measure of options.measure) {
      for (const kind of measure === 'backlog' ? [] : kinds) {
        if (kind === 'null') continue;
        tell(`${measure}, ${kind}`);
        if (measure === 'routed') tables.routed.push(await runRouted(kind, options.routedEvents, common));
        else if (measure === 'heads') tables.heads.push(...(await runHeads(kind, options.headEvents, common)));
        else tables.latency.push(await runLatency(kind, options.latencyEvents, common));
      }
    }
    const headTargets = tables.heads.flatMap(({ consumer, transport, cpuUsPerHead, messagesPerS }) => [
      atMost(`HEAD by ${transport}, ${consumer}: CPU, µs`, cpuUsPerHead, HEAD_US_MAX),
      atLeast(`HEAD by ${transport}, ${consumer}: a second`, messagesPerS, HEADS_PER_S_MIN),
    ]);
    const medians = mediansOf(backlogs);
    return { backlogs, medians, ...tables, targets: [...backlogTargets(medians, options.messages), ...headTargets] };
  } finally {
    queue.close();
  }
}

type Backlog = Awaited<ReturnType<typeof runBacklog>>;

/** a, b, c, a, b, c …: what the machine does besides hits all alike. */
async function backlogsOf(
  kinds: readonly ConsumerKind[],
  common: RunOptions,
  { rounds, messages, workers }: IngestOptions,
  tell: (text: string) => void,
): Promise<readonly Backlog[]> {
  const found: Backlog[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const kind of kinds) {
      // only one process may serve a SQLite file
      found.push(await runBacklog(kind, messages, { ...common, workers: kind === 'sqlite' ? 1 : workers }));
      tell(`backlog ${round} of ${rounds}: ${JSON.stringify(found.at(-1))}`);
    }
  }
  return found;
}

/** The medians of all runs of each consumer. */
function mediansOf(backlogs: readonly Backlog[]): readonly Backlog[] {
  return [...Map.groupBy(backlogs, ({ consumer }) => consumer)].map(([consumer, all]) => {
    const median = (field: Exclude<keyof Backlog, 'consumer'>): number => medianOf(all.map((each) => each[field]));
    return {
      consumer,
      cpuUsPerMessage: median('cpuUsPerMessage'),
      messagesPerS: median('messagesPerS'),
      peakRssMib: median('peakRssMib'),
      idleRssMib: median('idleRssMib'),
      queueCores: median('queueCores'),
    };
  });
}

function backlogTargets(medians: readonly Backlog[], messages: number): readonly Target[] {
  const nothing = medians.find(({ consumer }) => consumer === 'null');
  return medians.flatMap((found) => {
    if (nothing === undefined || found === nothing) return [];
    const isLarge = found.consumer === 'opensearch' && messages >= LARGE_MESSAGES;
    const most = CPU_SHARES_MAX[isLarge ? 'opensearchLarge' : found.consumer];
    return [
      atMost(`${found.consumer}: CPU by that of the null consumer`, found.cpuUsPerMessage / nothing.cpuUsPerMessage, most),
      atMost(`${found.consumer}: peak RSS by that of the null consumer`, found.peakRssMib / nothing.peakRssMib, 1),
    ];
  });
}
