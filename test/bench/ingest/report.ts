/** The report of `ingest` as text: ratios first. */
import { medianOf, tableText } from '../statistics.ts';
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
  ].join('\n');
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
  const kinds = consumerKinds.filter((kind) => backlog.some(({ consumer }) => consumer === kind));
  if (kinds.length === 0) return [];
  const median = (kind: ConsumerKind, figure: (run: BacklogRun) => number): number =>
    medianOf(backlog.filter(({ consumer }) => consumer === kind).map(figure));
  const cpuOfNull = kinds.includes('null') ? median('null', (run) => run.cpuUsPerMessage) : undefined;
  const rows = kinds.map((kind) => {
    const cpuUs = median(kind, (run) => run.cpuUsPerMessage);
    return [
      kind,
      cpuOfNull === undefined ? '–' : `${(cpuUs / cpuOfNull).toFixed(2)} ×`,
      cpuUs.toFixed(1),
      median(kind, (run) => run.messagesPerS).toFixed(0),
      median(kind, (run) => run.peakRssMib).toFixed(0),
      median(kind, (run) => run.idleRssMib).toFixed(0),
      median(kind, (run) => run.queueCores).toFixed(2),
    ];
  });
  const head = ['consumer', 'CPU to null', 'CPU µs/message', 'messages/s', 'peak RSS MiB', 'idle RSS MiB', 'cores of the queue'];
  const rounds = backlog.filter(({ consumer }) => consumer === kinds[0]).length;
  return [`\nbacklog of ${messages} messages, ${workers} worker(s), medians of ${rounds}:`, tableText([head, ...rows])];
}
