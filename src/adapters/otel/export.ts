/**
 * Exports spans to the trace collector: a bounded queue and one export at a time, for which the data path never waits.
 * Spans that do not fit into the queue are dropped and counted. A failed export is tried again within its time-out; then
 * its spans are dropped and counted.
 *
 *   ended ──► queue (queueMax) ──► export ──► sent
 *               └──► dropped         └──► dropped
 */
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace';
import { printable } from '../../domain/printable.ts';
import type { Telemetry } from '../../pipeline/ports/telemetry.ts';

export interface ExportLimits {
  readonly queueMax: number;
  readonly batchMax: number;
  readonly batchDelayMs: number;
  readonly exportTimeoutMs: number;
}

export interface SpanExport {
  readonly processor: SpanProcessor;
  /** The number of spans that ended and are not exported yet. */
  readonly unsent: number;
  /** Exports the remaining spans. It resolves when the exporter succeeded or gave up. */
  shutdown(): Promise<void>;
}

/** Enough of an error's text to recognise the problem. */
const TEXT_LENGTH_MAX = 300;
/** Trouble is logged at most once in this time for each kind, because tracing never matters more than what it traces. Short, because the trace collector's own monitoring is the first to report that it is away. */
const TROUBLE_MS = 60_000;

/** Creates the export to the collector that is set in the SDK's own variables (OTEL_EXPORTER_OTLP_*). */
export function createSpanExport(limits: ExportLimits, telemetry: Telemetry, proxyEnv?: Readonly<Record<string, string>>): SpanExport {
  reportTroubles(telemetry);
  const exporter = new OTLPTraceExporter(proxyEnv === undefined ? {} : { httpAgentOptions: { keepAlive: true, proxyEnv } });
  let queued = 0;
  let sending = 0;

  function reportDropped(reason: 'queue-full' | 'export-failed', count: number, error?: string): void {
    telemetry.count('tally_spans_dropped_total', count, { reason });
    telemetry.warnOnce(
      'spans dropped: the trace collector is too slow, unreachable or refused them',
      reason,
      { reason, error },
      TROUBLE_MS,
    );
  }

  const counting: SpanExporter = {
    export(spans, done) {
      queued -= spans.length;
      sending += spans.length;
      exporter.export(spans, ({ code, error }) => {
        sending -= spans.length;
        if (code !== ExportResultCode.SUCCESS) reportDropped('export-failed', spans.length, errorText(error));
        // success even if it failed: the failure is reported already, and after one the processor would export concurrently
        done({ code: ExportResultCode.SUCCESS });
      });
    },
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter: counting,
    maxQueueSize: limits.queueMax,
    maxExportBatchSize: limits.batchMax,
    scheduledDelayMillis: limits.batchDelayMs,
    exportTimeoutMillis: limits.exportTimeoutMs,
  });

  return {
    processor: {
      onStart() {},
      onEnd(span) {
        // the processor has the same bound, but does not report how many spans it dropped
        if (queued >= limits.queueMax) return reportDropped('queue-full', 1);
        queued += 1;
        batches.onEnd(span);
      },
      forceFlush: () => batches.forceFlush(),
      shutdown: () => batches.shutdown(),
    },
    get unsent() {
      return queued + sending;
    },
    shutdown: () => batches.shutdown(),
  };
}

/** Logs the texts of the SDK's warnings and errors. The objects that come with them are not logged, because they contain whole requests. */
function reportTroubles(telemetry: Telemetry): void {
  const report = (...parts: readonly unknown[]): void => {
    const texts = parts.filter((part) => typeof part === 'string');
    telemetry.warnOnce(
      'the OpenTelemetry SDK reported a problem',
      'sdk',
      { text: printable(texts.join(' '), TEXT_LENGTH_MAX) },
      TROUBLE_MS,
    );
  };
  const ignore = (): void => {};
  diag.setLogger(
    { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** The collector's HTTP status or the system's error code, else the error's message; never the body of an answer. */
function errorText(error: Error | undefined): string {
  if (error === undefined) return 'unknown';
  const code = 'code' in error ? error.code : undefined;
  if (typeof code === 'number') return `HTTP ${code}`;
  return printable(typeof code === 'string' ? code : error.message, TEXT_LENGTH_MAX);
}
