/** Decides which log line and which metrics each fact becomes. Nothing else in Tally writes log lines or changes metrics. */
import { pino, type DestinationStream, type Logger } from 'pino';
import { withCommandsTyped, type TypedProgram } from '../../domain/commands.ts';
import { adviceWhileServing, faults, isFaultCode, type FaultCode } from '../../domain/fault.ts';
import { watchedStates } from '../../domain/bucket.ts';
import { bucketStates } from '../../domain/bucket-status.ts';
import { gapKinds } from '../../domain/gaps/gap.ts';
import { exportedAudit } from '../../domain/identity/audit.ts';
import { withoutPasswords } from '../../domain/passwords.ts';
import { printable } from '../../domain/printable.ts';
import { jobStates } from '../../domain/reindex/job.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { CalendarTelemetry, CircuitLevel, ReindexTelemetry, Telemetry } from '../../pipeline/ports/telemetry.ts';
import type { TracingTelemetry } from '../../pipeline/ports/tracing.ts';
import { circuitLabels, gapStates, labelOf, objectKinds, receivingStates } from './labels.ts';
import { createOnce, createRecentMaximum, type RecentMaximum } from './memory.ts';
import { createMetrics, type Metrics } from './metrics.ts';

export interface TelemetryOptions {
  readonly level: string;
  readonly clock: Clock;
  /** The stream that receives the log lines. Default: standard output. */
  readonly destination?: DestinationStream;
  /** How commands must be typed where the log is read. Default: `tally`. */
  readonly programFor?: TypedProgram;
}

export interface TelemetryAdapter {
  readonly telemetry: Telemetry;
  readonly tracingTelemetry: TracingTelemetry;
  /** The Prometheus text of all series. */
  metricsText(): Promise<string>;
  readonly contentType: string;
}

/** The same failure is logged at most once in this time. It is counted each time. */
const SAME_FAILURE_MS = 600_000;
const UNKNOWN_EVENT_MS = 3_600_000;
/** Short, because the trace collector's own monitoring is the first to report that it is away. */
const TRACING_TROUBLE_MS = 60_000;
/** How long the oldest message of a batch counts for the age of the queue. */
const OLDEST_AGE_MS = 15_000;

/** Creates the adapter. Log lines are JSON with constant messages; keys and ids are fields, never labels. */
export function createTelemetry({ level, clock, destination, programFor = () => 'tally' }: TelemetryOptions): TelemetryAdapter {
  const log = pino(
    {
      level,
      base: null,
      formatters: { level: (label) => ({ level: label }), log: (fields) => shownFields(fields, programFor) },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    destination ?? pino.destination(1),
  );
  const metrics = createMetrics();
  const oldestAgeMs = createRecentMaximum(clock, OLDEST_AGE_MS);
  const newsOf = (kind: string, intervalMs: number) =>
    createOnce({
      clock,
      intervalMs,
      full: () => log.warn({ kind, intervalMs }, 'too many different log lines of one kind were due: some of them are not logged'),
    });
  // a process that logs nothing has no log to ship; any other logs the audit whatever its level is
  const audit = log.child({ audit: true }, { level: level === 'silent' ? 'silent' : 'info' });
  const tools = { log, audit, metrics, oldestAgeMs, newsOf };
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
  /** The log of the audit. */
  readonly audit: Logger;
  readonly metrics: Metrics;
  readonly oldestAgeMs: RecentMaximum;
  /** Creates a separate memory for one kind of fact, so that a flood of one kind does not silence another. */
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
      metrics.count('tally_records_total', 1, { dialect, outcome: labelOf(outcome) });
      if (fault !== undefined) log.debug({ dialect, outcome, eventName, fault }, 'record not indexed');
    },
    eventLag: (lagMs) => metrics.observe('tally_event_lag_seconds', Math.max(0, lagMs) / 1_000),
    unknownEvent(eventName) {
      metrics.count('tally_unknown_events_total', 1);
      if (isNewEvent(eventName)) log.warn({ eventName }, 'unknown event ignored');
    },
    messageSettled: (settlement) => metrics.count('tally_messages_total', 1, { settlement }),
    serviceMessage(kind) {
      metrics.count('tally_service_messages_total', 1, { kind });
      log.info({ kind }, 'service message received');
    },
    deadLettered({ code, reason, messageId }) {
      metrics.count('tally_dead_letters_total', 1, { fault: code });
      log.error({ code, reason, messageId, advice: faults[code].advice }, 'message dead-lettered');
    },
    bulkSent({ actions, sizeBytes, durationMs, result }) {
      metrics.count('tally_bulk_requests_total', 1, { result });
      metrics.observe('tally_bulk_duration_seconds', durationMs / 1_000);
      metrics.observe('tally_bulk_size_bytes', sizeBytes);
      log.debug({ actions, sizeBytes, durationMs, result }, 'bulk request answered');
    },
    bulkAnswered: (answer, count) => metrics.count('tally_bulk_actions_total', count, { answer: labelOf(answer) }),
    bulkQueue({ actionsQueued, requestsInFlight }) {
      metrics.set('tally_bulk_queued_actions', actionsQueued);
      metrics.set('tally_bulk_in_flight_requests', requestsInFlight);
    },
    headSent({ durationMs, result }) {
      metrics.count('tally_head_requests_total', 1, { result });
      metrics.observe('tally_head_duration_seconds', durationMs / 1_000);
    },
    heads({ queued, inFlight }) {
      metrics.set('tally_head_queued_requests', queued);
      metrics.set('tally_head_in_flight_requests', inFlight);
    },
    enriched({ bucket, enrich, result, reason }) {
      metrics.count('tally_enrich_total', 1, { enrich, result });
      // an object that was overwritten or deleted since has an event that reports it
      if (result === 'ok' || result === 'gone' || !isNewRefusal(`${bucket} ${enrich} ${result}`)) return;
      const advice = isFaultCode(result) ? { advice: faults[result].advice } : {};
      log.warn({ bucket, enrich, result, reason, ...advice }, 'documents are written without enrichment');
    },
    held: (messages) => metrics.set('tally_held_messages', messages),
    oldestMessageAge: (ageMs) => oldestAgeMs.record(ageMs),
    unconnected(bucket, count) {
      metrics.count('tally_unconnected_records_total', count);
      if (isNewBucket(bucket)) log.warn({ bucket }, 'events received for a bucket that is not connected');
    },
    gapSeen(bucket, kind, reason) {
      if (isNewGap(`${bucket} ${kind}`))
        log.warn({ bucket, kind, reason }, 'gap is open: the index may differ from the bucket until a re-index closes it');
    },
  };
}

type OperatingFacts = Omit<Telemetry, keyof DataFacts | keyof ReindexTelemetry | keyof CalendarTelemetry>;

function operatingFacts({ log, audit, metrics, newsOf }: Tools): OperatingFacts {
  const isNewFailure = newsOf('failed request', SAME_FAILURE_MS);
  const countOpen = createOpenCount(metrics);
  const describe = (code: FaultCode, reason: string) => ({ code, reason, advice: adviceWhileServing(code) });
  return {
    queueDepth(queue, { visible, inFlight, delayed }) {
      metrics.set('tally_queue_messages', visible, { queue, state: 'visible' });
      metrics.set('tally_queue_messages', inFlight, { queue, state: 'in-flight' });
      metrics.set('tally_queue_messages', delayed, { queue, state: 'delayed' });
    },
    gapsOpen(open) {
      for (const kind of gapKinds) {
        const found = open.find((each) => each.kind === kind);
        metrics.set('tally_gaps_open', found?.count ?? 0, { kind });
        metrics.set('tally_gaps_oldest_age_seconds', Math.max(0, found?.oldestAgeMs ?? 0) / 1_000, { kind });
      }
    },
    jobs(states) {
      for (const state of jobStates) metrics.set('tally_jobs', states.filter((each) => each === state).length, { state });
    },
    circuitOpened({ level, name, code, reason }) {
      countOpen(level, name, code);
      log.error({ ...circuitFields(level, name), ...describe(code, reason) }, OPENED[level]);
    },
    circuitClosed({ level, name, openMs }) {
      countOpen(level, name, undefined);
      log.info({ ...circuitFields(level, name), openMs: Math.round(openMs) }, CLOSED[level]);
    },
    folded: (code) => metrics.count('tally_folded_total', 1, { fault: code }),
    receiving(state) {
      for (const each of receivingStates) metrics.set('tally_receiving', each === state ? 1 : 0, { state: each });
      log.info({ state }, 'the state of receiving changed');
    },
    requestFailed(operation, code, reason) {
      if (isNewFailure(`${operation} ${code} ${reason}`)) log.error({ operation, ...describe(code, reason) }, 'request failed');
    },
    audited: (record) => audit.info(exportedAudit(record), 'audit record'),
    bucketConnected: (bucket, by) => log.info({ bucket, by }, 'bucket connected'),
    workersWanted: (workers) => metrics.set('tally_workers_wanted', workers),
    ready: (role, isReady) => metrics.set('tally_ready', isReady ? 1 : 0, { role }),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
  };
}

const OPENED: Readonly<Record<CircuitLevel, string>> = {
  cluster: 'receiving paused',
  index: 'the index of the bucket does not take its records: they wait',
  endpoint: 'S3 does not answer in this region: records that need it wait',
  bucket: 'S3 does not answer for the bucket: its records that need S3 wait',
  enrichment: 'S3 does not answer the requests that enrich documents of the bucket: they are written without enrichment',
};
const CLOSED: Readonly<Record<CircuitLevel, string>> = {
  cluster: 'receiving resumed',
  index: 'the index of the bucket takes records again',
  endpoint: 'S3 answers in this region again',
  bucket: 'S3 answers for the bucket again',
  enrichment: 'documents of the bucket are enriched again',
};

function circuitFields(level: CircuitLevel, name: string): { readonly bucket?: string; readonly region?: string } {
  if (level === 'cluster') return {};
  return level === 'endpoint' ? { region: name } : { bucket: name };
}

/** Counts the open circuits by level. A bucket that waits for its index and for S3 counts once in `tally_parked_buckets`. */
function createOpenCount(metrics: Metrics): (level: CircuitLevel, name: string, code: FaultCode | undefined) => void {
  const open = new Map<string, { readonly level: CircuitLevel; readonly name: string; readonly code: FaultCode }>();
  return (level, name, code) => {
    const before = open.get(`${level} ${name}`);
    if (code === undefined) open.delete(`${level} ${name}`);
    else open.set(`${level} ${name}`, { level, name, code });
    const all = [...open.values()];
    // nothing waits for enrichment
    if (level !== 'enrichment') {
      metrics.set('tally_circuit_open', all.filter((circuit) => circuit.level === level).length, circuitLabels[level]);
    }
    metrics.set('tally_parked_buckets', new Set(all.flatMap((circuit) => (isOfBucket(circuit.level) ? [circuit.name] : []))).size);
    if (level !== 'cluster') return;
    if (before !== undefined) metrics.set('tally_paused', 0, { fault: before.code });
    if (code !== undefined) metrics.set('tally_paused', 1, { fault: code });
  };
}

function isOfBucket(level: CircuitLevel): boolean {
  return level === 'index' || level === 'bucket';
}

function reindexFacts({ log, metrics }: Tools): ReindexTelemetry {
  return {
    reindexClaim: (result) => metrics.count('tally_reindex_claims_total', 1, { result: labelOf(result) }),
    reindexTurn({ mode, counts, result, durationMs }) {
      metrics.count('tally_reindex_turns_total', 1, { result });
      // the count of equal keys may be below zero for one turn
      for (const [name, kind] of objectKinds) metrics.count('tally_reindex_objects_total', Math.max(0, counts[name]), { mode, kind });
      metrics.count('tally_reindex_writes_total', counts.written, { kind: 'document' });
      metrics.count('tally_reindex_writes_total', counts.tombstones, { kind: 'tombstone' });
      metrics.count('tally_reindex_requests_total', counts.listRequests, { request: 'list' });
      metrics.count('tally_reindex_requests_total', counts.headRequests, { request: 'head' });
      log.debug({ mode, result, durationMs: Math.round(durationMs), listed: counts.listed }, 'range turn ended');
    },
    reindexSplit: (isSplit) => metrics.count('tally_reindex_splits_total', 1, { result: isSplit ? 'split' : 'none' }),
    reindexRanges: (running) => metrics.set('tally_reindex_ranges', running),
    jobEnded({ id, bucket, mode, requestedBy, state, counts, error }) {
      metrics.count('tally_jobs_ended_total', 1, { state });
      const facts = { id, bucket, mode, requestedBy, state, counts };
      if (error === undefined) log.info(facts, 'job ended');
      else log.error({ ...facts, ...error, advice: faults[error.code].advice }, 'job ended');
    },
  };
}

function calendarFacts({ log, metrics }: Tools): CalendarTelemetry {
  return {
    gapStates(counts) {
      for (const kind of gapKinds) {
        for (const state of gapStates) {
          const found = counts.find((each) => each.kind === kind && each.state === state);
          metrics.set('tally_gaps', found?.count ?? 0, { kind, state });
        }
      }
    },
    connections(states, oldestPauseMs) {
      for (const state of watchedStates) metrics.set('tally_connection_state', states.filter((each) => each === state).length, { state });
      metrics.set('tally_notification_pause_age_seconds', Math.max(0, oldestPauseMs) / 1_000);
    },
    buckets(states, oldestComparedAgeMs) {
      for (const status of bucketStates) metrics.set('tally_buckets', states.filter((each) => each === status).length, { status });
      metrics.set('tally_compared_oldest_age_seconds', Math.max(0, oldestComparedAgeMs) / 1_000);
    },
    connectionSeen({ bucket, state, findings }) {
      const facts = { bucket, state, findings: findings.map(({ code, what }) => `${code}: ${printable(what)}`) };
      if (state === 'ok') log.info(facts, 'the connection of the bucket is in order');
      else log.warn(facts, 'the connection of the bucket is not in order');
    },
    gapClosed({ bucket, kind, prefix, jobId }) {
      metrics.count('tally_gaps_closed_total', 1, { kind });
      log.info({ bucket, kind, prefix, jobId }, 'gap closed');
    },
    gapStays({ bucket, kind, prefix, waits }) {
      metrics.count('tally_gap_failures_total', 1, { kind });
      log.warn({ bucket, kind, prefix, ...waits }, 'gap stays open');
    },
    sweepEnded({ sweep, bucket, result, objects }) {
      metrics.count('tally_sweeps_total', 1, { sweep, result });
      if (sweep === 'tombstones') metrics.count('tally_purged_tombstones_total', objects);
      else if (sweep === 'unsettled' || sweep === 'lifecycle') metrics.count('tally_swept_objects_total', objects, { sweep });
      if (result !== 'ok' || objects > 0) log.info({ sweep, bucket, result, objects }, 'sweep ended');
    },
  };
}

/** Trouble with tracing is logged at most once a minute for each kind, because tracing never matters more than what it traces. */
function tracingFacts({ log, metrics, newsOf }: Tools): TracingTelemetry {
  const isNews = newsOf('tracing trouble', TRACING_TROUBLE_MS);
  return {
    spansDropped(reason, count, error) {
      metrics.count('tally_spans_dropped_total', count, { reason });
      if (isNews(reason)) log.warn({ reason, error }, 'spans dropped: the trace collector is too slow, unreachable or refused them');
    },
    tracingTroubled(text) {
      if (isNews('sdk')) log.warn({ text }, 'the OpenTelemetry SDK reported a problem');
    },
  };
}

/**
 * More people can read the log than the settings, so passwords in URLs are masked. Many texts come from outside (messages,
 * answers), so what a terminal would act on or hide is escaped.
 */
function shownFields(fields: Readonly<Record<string, unknown>>, programFor: TypedProgram): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (typeof value !== 'string') return [name, value];
      const text = printable(withoutPasswords(value));
      return [name, withTyped.has(name) ? withCommandsTyped(text, programFor) : text];
    }),
  );
}

/** The fields that may name commands of Tally. Others, such as keys, are logged as they are. */
const withTyped: ReadonlySet<string> = new Set(['advice', 'detail', 'reason']);
