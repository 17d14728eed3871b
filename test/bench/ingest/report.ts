/** The report of `ingest` as text: ratios first. */
import { medianOf, tableText } from '../statistics.ts';
import { atLeast, atMost, targetsText, type Target } from '../targets.ts';
import { HEAD_LATENCY_MS } from './heads.ts';
import { consumerKinds, type ConsumerKind } from './consumers.ts';
import type { BacklogRun } from './backlog.ts';
import type { IngestReport } from './ingest.ts';

/** The whole report; parts that were not measured are left out. */
export function reportText(report: IngestReport): string {
  const { machine } = report;
  const settings = Object.entries(report.settings).map(([name, value]) => ` ${name}=${value}`);
  return [
    `${report.date}  ${machine.cores} × ${machine.cpu}, ${machine.memoryMib} MiB, Node ${machine.node}${settings.join('')}`,
    ...backlogText(report),
    ...report.routed.map(
      ({ consumer, events, keys, ...run }) =>
        `\nrouted events, ${consumer}: ${run.cpuUsPerEvent.toFixed(0)} µs CPU an event, ${run.eventsPerS.toFixed(0)} events/s, ${run.headsPerS.toFixed(0)} HEADs/s; ` +
        `${events} events of ${keys} keys, at most ${run.headsPerKeyAndBatchMax} HEAD a key and batch; the queue's process had ${run.queueCores.toFixed(2)} cores`,
    ),
    ...headsText(report),
    ...report.latency.map(
      ({ consumer, events, p50Ms, p95Ms }) =>
        `\nevent → found by search, ${consumer}, idle: p50 ${p50Ms.toFixed(0)} ms, p95 ${p95Ms.toFixed(0)} ms (${events} events)`,
    ),
    ...report.leftOut.map((each) => `\nleft out: ${each}`),
    `\n${targetsText([...backlogTargets(report), ...report.heads.flatMap(headTargets)])}`,
  ].join('\n');
}

/** CPU by that of the null consumer. A large OpenSearch index is refreshed and merged meanwhile. */
const CPU_SHARES_MAX = { sqlite: 1.25, opensearch: 1, opensearchLarge: 1.1 };
const LARGE_MESSAGES = 500_000;
const HEAD_US_MAX = 400;
const HEADS_PER_S_MIN = 1_500;

function backlogTargets({ backlog, messages }: IngestReport): readonly Target[] {
  const nothing = medianRun(backlog, 'null');
  if (nothing === undefined) return [];
  return (['sqlite', 'opensearch'] as const).flatMap((kind) => {
    const found = medianRun(backlog, kind);
    if (found === undefined) return [];
    const most = kind === 'opensearch' && messages >= LARGE_MESSAGES ? CPU_SHARES_MAX.opensearchLarge : CPU_SHARES_MAX[kind];
    return [
      atMost(`${kind}, ${messages} messages: CPU by that of the null consumer`, found.cpuUsPerMessage / nothing.cpuUsPerMessage, most),
      atMost(`${kind}, ${messages} messages: peak RSS by that of the null consumer`, found.peakRssMib / nothing.peakRssMib, 1),
    ];
  });
}

function headTargets({ consumer, transport, ...run }: IngestReport['heads'][number]): readonly Target[] {
  return [
    atMost(`HEAD by ${transport}, ${consumer}: CPU, µs`, run.cpuUsPerHead, HEAD_US_MAX),
    atLeast(`HEAD by ${transport}, ${consumer}: a second`, run.headsPerS, HEADS_PER_S_MIN),
  ];
}

/** The medians of all runs of a consumer; undefined without any. */
function medianRun(backlog: readonly BacklogRun[], kind: ConsumerKind): Omit<BacklogRun, 'consumer'> | undefined {
  const runs = backlog.filter(({ consumer }) => consumer === kind);
  if (runs.length === 0) return undefined;
  const median = (figure: (run: BacklogRun) => number): number => medianOf(runs.map(figure));
  return {
    cpuUsPerMessage: median((run) => run.cpuUsPerMessage),
    messagesPerS: median((run) => run.messagesPerS),
    peakRssMib: median((run) => run.peakRssMib),
    idleRssMib: median((run) => run.idleRssMib),
    queueCores: median((run) => run.queueCores),
  };
}

function headsText({ heads }: IngestReport): readonly string[] {
  if (heads.length === 0) return [];
  const rows = heads.map(({ consumer, transport, events, ...run }) => [
    consumer,
    transport,
    String(events),
    run.cpuUsPerHead.toFixed(0),
    run.cpuUsPerEvent.toFixed(0),
    run.headsPerS.toFixed(0),
    run.peakRssMib.toFixed(0),
  ]);
  const head = ['consumer', 'S3 by', 'events', 'CPU µs/HEAD', 'CPU µs/event', 'HEADs/s', 'peak RSS MiB'];
  return [`\nevents that each need a HEAD of their own key, S3 answers after ${HEAD_LATENCY_MS} ms:`, tableText([head, ...rows])];
}

function backlogText({ backlog, messages, workers }: IngestReport): readonly string[] {
  const cpuOfNull = medianRun(backlog, 'null')?.cpuUsPerMessage;
  const rows = consumerKinds.flatMap((kind) => {
    const run = medianRun(backlog, kind);
    if (run === undefined) return [];
    return [
      [
        kind,
        cpuOfNull === undefined ? '–' : `${(run.cpuUsPerMessage / cpuOfNull).toFixed(2)} ×`,
        run.cpuUsPerMessage.toFixed(1),
        run.messagesPerS.toFixed(0),
        run.peakRssMib.toFixed(0),
        run.idleRssMib.toFixed(0),
        run.queueCores.toFixed(2),
      ],
    ];
  });
  if (rows.length === 0) return [];
  const head = ['consumer', 'CPU to null', 'CPU µs/message', 'messages/s', 'peak RSS MiB', 'idle RSS MiB', 'cores of the queue'];
  const rounds = backlog.filter(({ consumer }) => consumer === backlog[0]?.consumer).length;
  return [`\nbacklog of ${messages} messages, ${workers} worker(s), medians of ${rounds}:`, tableText([head, ...rows])];
}
