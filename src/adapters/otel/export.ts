/**
 * The way of spans to the collector: a bounded queue, one export at a time, and nothing that anybody waits for. What does
 * not fit is dropped and counted; what fails is tried again within the time-out of an export, then dropped and counted.
 *
 *   ended ──► queue (queueMax) ──► export ──► sent
 *               └──► dropped         └──► dropped
 */
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace';
import { printable } from '../../domain/printable.ts';
import type { TracingTelemetry } from '../../pipeline/ports/tracing.ts';

export interface ExportLimits {
  readonly queueMax: number;
  readonly batchMax: number;
  readonly batchDelayMs: number;
  readonly exportTimeoutMs: number;
}

export interface SpanExport {
  readonly processor: SpanProcessor;
  /** Spans that ended and did not leave yet. */
  readonly unsent: number;
  /** Sends what is left, for as long as the exporter tries. */
  shutdown(): Promise<void>;
}

/** Enough of an error to tell what is wrong. */
const TEXT_LENGTH_MAX = 300;

/** Creates the export to the collector that the SDK's own variables name (OTEL_EXPORTER_OTLP_*). */
export function createSpanExport(limits: ExportLimits, telemetry: TracingTelemetry): SpanExport {
  tellTroubles(telemetry);
  const exporter = new OTLPTraceExporter();
  let queued = 0;
  let sending = 0;

  const counting: SpanExporter = {
    export(spans, done) {
      queued -= spans.length;
      sending += spans.length;
      exporter.export(spans, ({ code, error }) => {
        sending -= spans.length;
        if (code !== ExportResultCode.SUCCESS) telemetry.spansDropped('export-failed', spans.length, errorText(error));
        // it is told: the processor would tell it again, and after a failure begin exports beside each other
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
        // the processor's own bound is the same, but it tells nobody how much it dropped
        if (queued >= limits.queueMax) return telemetry.spansDropped('queue-full', 1);
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

/** What the SDK complains of goes to the log; its errors come with objects that hold whole requests, which do not. */
function tellTroubles(telemetry: TracingTelemetry): void {
  const tell = (...parts: readonly unknown[]): void => {
    const texts = parts.filter((part) => typeof part === 'string');
    telemetry.tracingTroubled(printable(texts.join(' '), TEXT_LENGTH_MAX));
  };
  const ignore = (): void => {};
  diag.setLogger(
    { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** The collector's status or the system's code, else the error's own words; never the body of an answer. */
function errorText(error: Error | undefined): string {
  if (error === undefined) return 'unknown';
  const code = 'code' in error ? error.code : undefined;
  if (typeof code === 'number') return `HTTP ${code}`;
  return printable(typeof code === 'string' ? code : error.message, TEXT_LENGTH_MAX);
}
