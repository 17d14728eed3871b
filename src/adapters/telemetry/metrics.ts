/** Every metric: one table from which they are registered, and which the README shows. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { faults } from '../../domain/fault.ts';
import { gapKinds } from '../../domain/gaps/gap.ts';
import { outcomeKinds } from '../../domain/messages/outcome.ts';
import { dialects } from '../../domain/events/record.ts';
import { jobStates } from '../../domain/reindex/job.ts';
import { calendarMetrics } from './metrics-calendar.ts';
import { reindexMetrics } from './metrics-reindex.ts';
import { requestBuckets, storageMetrics } from './metrics-storage.ts';

type LabelValues = Readonly<Record<string, readonly string[]>>;

interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** The closed set of each label's values: every series exists at 0 from the start. An empty set: values that are not known beforehand. */
  readonly labels: LabelValues;
  readonly unit: string;
  /** The alert worth having; empty when there is none. */
  readonly alert: string;
  readonly buckets?: readonly number[];
}

const faultCodes = Object.keys(faults);
const results = ['ok', ...faultCodes.filter((code) => code.includes('index'))];
/** Whatever a probe fails with keeps receiving stopped, the unforeseen included. */
const pausingFaults = [...Object.entries(faults).flatMap(([code, { scope }]) => (scope === 'shared' ? [code] : [])), 'internal.unexpected'];
const queueNames = ['bucket', 'work', 'dead-letter'];
const noLabels: LabelValues = {};

export const receivingStates = ['on', 'held-full', 'in-flight-cap', 'paused', 'no-bucket'] as const;
const serviceMessages = ['test-event', 'subscription-confirmation', 'unsubscribe-confirmation'] as const;

export const metricTable = {
  tally_records_total: {
    type: 'counter',
    unit: 'records',
    labels: { dialect: [...dialects, 'unknown'], outcome: outcomeKinds },
    help: 'Records ended, by dialect and outcome; a deferred or provisional record ends again at its next receive.',
    alert: 'rate of outcome="rejected" > 0 for 10 min',
  },
  tally_event_lag_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: noLabels,
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600],
    help: 'From the event’s time until its first write was acknowledged, a provisional one included; of messages at their first receive.',
    alert: 'p95 > your target for 10 min',
  },
  tally_messages_total: {
    type: 'counter',
    unit: 'messages',
    labels: { settlement: ['delete', 'defer', 'wait', 'dead-letter', 'give-back'] },
    help: 'Messages settled, by settlement.',
    alert: '',
  },
  tally_service_messages_total: {
    type: 'counter',
    unit: 'messages',
    labels: { kind: serviceMessages },
    help: 'Messages about the wiring: S3 test events and SNS confirmations.',
    alert: 'kind="unsubscribe-confirmation" increases',
  },
  tally_dead_letters_total: {
    type: 'counter',
    unit: 'messages',
    labels: { fault: faultCodes },
    help: 'Messages sent to the dead-letter queue, by fault.',
    alert: 'increase > 0',
  },
  tally_unknown_events_total: {
    type: 'counter',
    unit: 'records',
    labels: noLabels,
    help: 'Records ignored because their event name is not known.',
    alert: '',
  },
  tally_unconnected_records_total: {
    type: 'counter',
    unit: 'records',
    labels: noLabels,
    help: 'Records of buckets that are not connected.',
    alert: 'increase > 0 where all buckets should be connected',
  },
  tally_bulk_requests_total: {
    type: 'counter',
    unit: 'requests',
    labels: { result: [...results, 'internal.unexpected'] },
    help: 'Bulk requests, by result.',
    alert: '',
  },
  tally_bulk_actions_total: {
    type: 'counter',
    unit: 'actions',
    labels: { answer: ['written', 'stale', 'equal', 'expired', 'fault'] },
    help: 'Actions answered, by answer.',
    alert: '',
  },
  tally_bulk_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: noLabels,
    buckets: requestBuckets,
    help: 'Duration of bulk requests.',
    alert: 'p95 > 5 s for 10 min',
  },
  tally_bulk_size_bytes: {
    type: 'histogram',
    unit: 'bytes',
    labels: noLabels,
    buckets: [1_024, 16_384, 131_072, 524_288, 1_048_576, 5_242_880],
    help: 'Estimated size of bulk requests.',
    alert: '',
  },
  tally_bulk_in_flight_requests: { type: 'gauge', unit: 'requests', labels: noLabels, help: 'Bulk requests in flight.', alert: '' },
  tally_bulk_queued_actions: { type: 'gauge', unit: 'actions', labels: noLabels, help: 'Actions waiting for a bulk request.', alert: '' },
  ...storageMetrics,
  tally_spans_dropped_total: {
    type: 'counter',
    unit: 'spans',
    labels: { reason: ['queue-full', 'export-failed'] },
    help: 'Spans that the collector of traces did not get, by reason.',
    alert: '',
  },
  tally_held_messages: {
    type: 'gauge',
    unit: 'messages',
    labels: noLabels,
    help: 'Messages held for looks, enrichment, settles and outages.',
    alert: '',
  },
  tally_queue_messages: {
    type: 'gauge',
    unit: 'messages',
    labels: { queue: queueNames, state: ['visible', 'in-flight', 'delayed'] },
    help: 'Messages of the queues, as SQS tells (approximate, read every 15 s).',
    alert: 'queue="dead-letter",state="visible" > 0; queue="bucket",state="in-flight" > 80000',
  },
  tally_queue_oldest_message_age_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: noLabels,
    help: 'Age of the oldest message received in the last 15 s; 0 when none was.',
    alert: '> your target for 10 min',
  },
  tally_workers_wanted: {
    type: 'gauge',
    unit: 'workers',
    labels: noLabels,
    help: 'Workers that would drain the backlog within TALLY_TARGET_LAG_S at the rate measured here.',
    alert: '',
  },
  tally_gaps_open: {
    type: 'gauge',
    unit: 'gaps',
    labels: { bucket: [], kind: gapKinds },
    help: 'Gaps that are not closed, by bucket and kind.',
    alert: '> 0 for longer than a day (a covered one closes within it)',
  },
  tally_jobs: {
    type: 'gauge',
    unit: 'jobs',
    labels: { state: jobStates },
    help: 'Re-index jobs, by state.',
    alert: 'state="failed" increases',
  },
  ...reindexMetrics,
  ...calendarMetrics,
  tally_paused: {
    type: 'gauge',
    unit: '0 or 1',
    labels: { fault: pausingFaults },
    help: '1 while this fault has stopped receiving.',
    alert: '> 0 for 5 min',
  },
  tally_parked_buckets: {
    type: 'gauge',
    unit: 'buckets',
    labels: noLabels,
    help: 'Buckets whose records wait because their index, or the bucket itself, is out of order.',
    alert: '> 0 for 10 min',
  },
  tally_receiving: {
    type: 'gauge',
    unit: '0 or 1',
    labels: { state: receivingStates },
    help: '1 for what receiving is doing now: on, or why not; all 0 until the first receive, and without the role ingest.',
    alert: 'a state other than "on" == 1 for 10 min',
  },
  tally_ready: {
    type: 'gauge',
    unit: '0 or 1',
    labels: { role: ['ingest', 'reindex', 'http'] },
    help: '1 while this process can do the role.',
    alert: '== 0 for 5 min for a role that it has',
  },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof metricTable;
type Labels = Readonly<Record<string, string>>;

/** A value that a label's closed set does not hold changes nothing: what comes from outside can never make a series. */
export interface Metrics {
  readonly registry: Registry;
  count(name: MetricName, labels?: Labels, by?: number): void;
  set(name: MetricName, value: number, labels?: Labels): void;
  observe(name: MetricName, value: number): void;
  /** Removes all series of a gauge whose labels are not a closed set. */
  clear(name: MetricName): void;
}

/** Registers every metric of the table, each series at 0, and Node's defaults. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counters = new Map<MetricName, Counter>();
  const gauges = new Map<MetricName, Gauge>();
  const histograms = new Map<MetricName, Histogram>();

  for (const [key, definition] of Object.entries(metricTable)) {
    const name = nameOf(key);
    const options = { name, help: definition.help, labelNames: Object.keys(definition.labels), registers: [registry] };
    switch (definition.type) {
      case 'counter':
        counters.set(name, startAtZero(new Counter(options), definition.labels));
        break;
      case 'gauge':
        gauges.set(name, startAtZero(new Gauge(options), definition.labels));
        break;
      case 'histogram':
        histograms.set(name, new Histogram({ ...options, buckets: [...definition.buckets] }));
    }
  }

  return {
    registry,
    count(name, labels = {}, by = 1) {
      if (isSeries(name, labels)) counters.get(name)?.inc(labels, by);
    },
    set(name, value, labels = {}) {
      if (isSeries(name, labels)) gauges.get(name)?.set(labels, value);
    },
    observe(name, value) {
      // the client throws at anything else, and no fact may end in an exception
      if (Number.isFinite(value)) histograms.get(name)?.observe(value);
    },
    clear: (name) => gauges.get(name)?.reset(),
  };
}

function isSeries(name: MetricName, labels: Labels): boolean {
  const sets: LabelValues = metricTable[name].labels;
  return Object.entries(sets).every(([label, values]) => values.length === 0 || values.includes(labels[label] ?? ''));
}

function nameOf(key: string): MetricName {
  if (isMetricName(key)) return key;
  throw new Error(`no such metric: ${key}`);
}

function isMetricName(key: string): key is MetricName {
  return key in metricTable;
}

function startAtZero<Metric extends Counter | Gauge>(metric: Metric, labels: LabelValues): Metric {
  for (const series of seriesOf(labels)) metric.inc(series, 0);
  return metric;
}

/** All combinations of the labels' values; none where a label's values are not known beforehand. */
function seriesOf(labels: LabelValues): readonly Labels[] {
  return Object.entries(labels).reduce<readonly Labels[]>(
    (series, [label, values]) => series.flatMap((each) => values.map((value) => ({ ...each, [label]: value }))),
    [{}],
  );
}
