/** Telemetry: decides for each fact which log line and which metrics tell it. Nothing else logs or counts. */
import { pino, type DestinationStream, type Logger } from 'pino';
import { faults, type FaultCode } from '../../domain/fault.ts';
import { withoutPasswords } from '../../domain/passwords.ts';
import type { CalendarTelemetry, ReindexTelemetry } from '../../pipeline/ports/telemetry.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { Telemetry } from '../../pipeline/ports/telemetry.ts';
import type { TracingTelemetry } from '../../pipeline/ports/tracing.ts';
import { calendarFacts } from './calendar.ts';
import { createOnce, createRecentMaximum, type RecentMaximum } from './memory.ts';
import { createMetrics, receivingStates, type Metrics } from './metrics.ts';
import { reindexFacts } from './reindex.ts';

export interface TelemetryOptions {
  readonly level: string;
  readonly clock: Clock;
  /** Where log lines go. Default: standard output. */
  readonly destination?: DestinationStream;
}

export interface TelemetryAdapter {
  readonly telemetry: Telemetry;
  readonly tracingTelemetry: TracingTelemetry;
  /** The Prometheus text of all series. */
  metricsText(): Promise<string>;
  readonly contentType: string;
}

/** The same failure is logged at most this often; it is counted each time. */
const SAME_FAILURE_MS = 600_000;
const UNKNOWN_EVENT_MS = 3_600_000;
/** A collector that is away is noticed by its own monitoring first. */
const TRACING_TROUBLE_MS = 60_000;
/** How long the oldest message of a batch stands for the age of the queue. */
const OLDEST_AGE_MS = 15_000;

/** Creates the adapter. Log lines are JSON with constant messages; keys and ids are fields, never labels. */
export function createTelemetry({ level, clock, destination }: TelemetryOptions): TelemetryAdapter {
  const log = pino(
    { level, base: null, formatters: { level: (label) => ({ level: label }), log: masked }, timestamp: pino.stdTimeFunctions.isoTime },
    destination ?? pino.destination(1),
  );
  const metrics = createMetrics();
  const oldestAgeMs = createRecentMaximum(clock, OLDEST_AGE_MS);
  const newsOf = (kind: string, intervalMs: number) =>
    createOnce({ clock, intervalMs, full: () => log.warn({ kind, intervalMs }, 'too many to say them all') });
  const tools = { log, metrics, oldestAgeMs, newsOf };
  return {
    telemetry: { ...dataFacts(tools), ...operatingFacts(tools), ...reindexFacts(tools), ...calendarFacts(tools) },
    tracingTelemetry: tracingFacts(tools),
    metricsText() {
      metrics.set('tally_queue_oldest_message_age_seconds', oldestAgeMs.read() / 1_000);
      return metrics.registry.metrics();
    },
    contentType: metrics.registry.contentType,
  };
}

interface Tools {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly oldestAgeMs: RecentMaximum;
  /** A memory of its own for each kind of fact: a flood of one kind silences no other. */
  readonly newsOf: (kind: string, intervalMs: number) => (name: string) => boolean;
}

type DataFacts = Pick<
  Telemetry,
  | 'recordEnded'
  | 'eventLag'
  | 'unknownEvent'
  | 'messageSettled'
  | 'serviceMessage'
  | 'deadLettered'
  | 'bulkSent'
  | 'bulkAnswered'
  | 'bulkQueue'
  | 'headSent'
  | 'heads'
  | 'enriched'
  | 'held'
  | 'oldestMessageAge'
  | 'unconnected'
  | 'gapSeen'
>;

function dataFacts({ log, metrics, oldestAgeMs, newsOf }: Tools): DataFacts {
  const isNewEvent = newsOf('unknown event', UNKNOWN_EVENT_MS);
  const isNewBucket = newsOf('unconnected bucket', SAME_FAILURE_MS);
  const isNewGap = newsOf('gap', SAME_FAILURE_MS);
  const isNewRefusal = newsOf('enrichment', SAME_FAILURE_MS);
  return {
    recordEnded({ dialect, outcome, eventName, fault }) {
      metrics.count('tally_records_total', { dialect, outcome });
      if (fault !== undefined) log.debug({ dialect, outcome, eventName, fault }, 'record not indexed');
    },
    eventLag: (lagMs) => metrics.observe('tally_event_lag_seconds', Math.max(0, lagMs) / 1_000),
    unknownEvent(eventName) {
      metrics.count('tally_unknown_events_total');
      if (isNewEvent(eventName)) log.warn({ eventName }, 'unknown event ignored');
    },
    messageSettled: (settlement) => metrics.count('tally_messages_total', { settlement }),
    serviceMessage(kind) {
      metrics.count('tally_service_messages_total', { kind });
      log.info({ kind }, 'service message received');
    },
    deadLettered({ code, reason, messageId }) {
      metrics.count('tally_dead_letters_total', { fault: code });
      log.error({ code, reason, messageId, advice: faults[code].advice }, 'message dead-lettered');
    },
    bulkSent({ actions, sizeBytes, durationMs, result }) {
      metrics.count('tally_bulk_requests_total', { result });
      metrics.observe('tally_bulk_duration_seconds', durationMs / 1_000);
      metrics.observe('tally_bulk_size_bytes', sizeBytes);
      log.debug({ actions, sizeBytes, durationMs, result }, 'bulk request answered');
    },
    bulkAnswered: (answer, count) => metrics.count('tally_bulk_actions_total', { answer }, count),
    bulkQueue({ actionsQueued, requestsInFlight }) {
      metrics.set('tally_bulk_queued_actions', actionsQueued);
      metrics.set('tally_bulk_in_flight_requests', requestsInFlight);
    },
    headSent({ durationMs, result }) {
      metrics.count('tally_head_requests_total', { result });
      metrics.observe('tally_head_duration_seconds', durationMs / 1_000);
    },
    heads({ queued, inFlight }) {
      metrics.set('tally_head_queued_requests', queued);
      metrics.set('tally_head_in_flight_requests', inFlight);
    },
    enriched({ bucket, enrich, result, reason }) {
      metrics.count('tally_enrich_total', { enrich, result });
      // what was overwritten or deleted since is told by its own event
      if (result === 'ok' || result === 'gone' || !isNewRefusal(`${bucket} ${enrich} ${result}`)) return;
      const advice = isFaultCode(result) ? { advice: faults[result].advice } : {};
      log.warn({ bucket, enrich, result, reason, ...advice }, 'documents are written without enrichment');
    },
    held: (messages) => metrics.set('tally_held_messages', messages),
    oldestMessageAge: (ageMs) => oldestAgeMs.told(ageMs),
    unconnected(bucket, count) {
      metrics.count('tally_unconnected_records_total', {}, count);
      if (isNewBucket(bucket)) log.warn({ bucket }, 'events of a bucket that is not connected');
    },
    gapSeen(bucket, kind, reason) {
      if (isNewGap(`${bucket} ${kind}`)) log.warn({ bucket, kind, reason }, 'gap open');
    },
  };
}

type OperatingFacts = Omit<Telemetry, keyof DataFacts | keyof ReindexTelemetry | keyof CalendarTelemetry>;

function operatingFacts({ log, metrics, newsOf }: Tools): OperatingFacts {
  const isNewFailure = newsOf('failed request', SAME_FAILURE_MS);
  const parked = createParkedCount(metrics);
  const describe = (code: FaultCode, reason: string) => ({ code, reason, advice: faults[code].advice });
  return {
    queueDepth(queue, { visible, inFlight, delayed }) {
      metrics.set('tally_queue_messages', visible, { queue, state: 'visible' });
      metrics.set('tally_queue_messages', inFlight, { queue, state: 'in-flight' });
      metrics.set('tally_queue_messages', delayed, { queue, state: 'delayed' });
    },
    gapsOpen(open) {
      metrics.clear('tally_gaps_open');
      for (const { bucket, kind, count } of open) metrics.set('tally_gaps_open', count, { bucket, kind });
    },
    jobs(states) {
      for (const [state, count] of Object.entries(states)) metrics.set('tally_jobs', count, { state });
    },
    paused(code, reason) {
      metrics.set('tally_paused', 1, { fault: code });
      log.error(describe(code, reason), 'receiving paused');
    },
    resumed(code, pausedMs) {
      metrics.set('tally_paused', 0, { fault: code });
      log.info({ code, pausedMs: Math.round(pausedMs) }, 'receiving resumed');
    },
    bucketParked(bucket, code, reason) {
      parked(bucket, 1);
      log.error({ bucket, ...describe(code, reason) }, 'bucket parked: its records wait');
    },
    bucketResumed(bucket) {
      parked(bucket, -1);
      log.info({ bucket }, 'bucket resumed');
    },
    receiving(state) {
      for (const each of receivingStates) metrics.set('tally_receiving', each === state ? 1 : 0, { state: each });
      log.info({ state }, 'receiving changed');
    },
    requestFailed(operation, code, reason) {
      if (isNewFailure(`${operation} ${code} ${reason}`)) log.error({ operation, ...describe(code, reason) }, 'request failed');
    },
    bucketConnected: (bucket, by) => log.info({ bucket, by }, 'bucket connected'),
    workersWanted: (workers) => metrics.set('tally_workers_wanted', workers),
    ready: (role, isReady) => metrics.set('tally_ready', isReady ? 1 : 0, { role }),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
  };
}

function isFaultCode(result: string): result is FaultCode {
  return result in faults;
}

/** Tracing never matters more than what is traced: one line a minute of each kind. */
function tracingFacts({ log, metrics, newsOf }: Tools): TracingTelemetry {
  const isNews = newsOf('tracing trouble', TRACING_TROUBLE_MS);
  return {
    spansDropped(reason, count, error) {
      metrics.count('tally_spans_dropped_total', { reason }, count);
      if (isNews(reason)) log.warn({ reason, error }, 'spans dropped: the collector of traces does not keep up, or does not take them');
    },
    tracingTroubled(text) {
      if (isNews('sdk')) log.warn({ text }, 'the OpenTelemetry SDK complains');
    },
  };
}

/** The log is read by more people than the settings are. */
function masked(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? withoutPasswords(value) : value]),
  );
}

/** A bucket may be parked for its index and for itself, each told on its own: it is one bucket. */
function createParkedCount(metrics: Metrics): (bucket: string, change: 1 | -1) => void {
  const reasons = new Map<string, number>();
  return (bucket, change) => {
    const count = (reasons.get(bucket) ?? 0) + change;
    if (count > 0) reasons.set(bucket, count);
    else reasons.delete(bucket);
    metrics.set('tally_parked_buckets', reasons.size);
  };
}
