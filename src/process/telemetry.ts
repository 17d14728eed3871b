/**
 * Telemetry: the metrics in the table below and the log. Code counts and logs things where they happen:
 *
 *   count, set, observe ──► the metric's series ──► /metrics
 *   info, warn, error   ──► one line of JSON on stdout
 *
 * Labels have fixed sets of values and never contain keys or ids; those go into log fields. No decision depends on the telemetry.
 */
import type { AuditRecord } from '../base/audit.ts';
import { watchedStates } from '../records/bucket.ts';
import { bucketStates } from '../records/bucket-status.ts';
import { enrichResults, enrichRequestKinds } from '../ordering/enrichment.ts';
import { dialects } from '../events/record.ts';
import { circuitOf, faults, isFaultCode } from '../base/fault.ts';
import { outcomeKinds } from '../events/outcome.ts';
import { jobStates } from '../records/job.ts';

type Table = typeof seriesTable;
export type MetricName = keyof Table;
type NameOf<Type extends string> = { [Name in MetricName]: Table[Name]['type'] extends Type ? Name : never }[MetricName];

/** One value for each label of the metric; `never` if it has no labels. */
export type LabelsOf<Name extends MetricName> = Table[Name] extends { readonly labels: infer Sets }
  ? { readonly [Label in keyof Sets]: ValueOf<Sets[Label]> }
  : never;
type ValueOf<Values> = Values extends readonly (infer Value extends string)[] ? Value : never;
/** A separate argument for the labels, if the metric has any. */
type LabelArguments<Name extends MetricName> = [LabelsOf<Name>] extends [never] ? [] : [labels: LabelsOf<Name>];

/** The fields of a log line besides its message. Texts are escaped, and passwords in URLs are masked. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * No method throws. A label value that is not in the table does not compile, so that input from outside never creates a series.
 * Messages of log lines are constants.
 */
export interface Telemetry {
  /** Adds to a counter. */
  count<Name extends NameOf<'counter'>>(name: Name, by: number, ...labels: LabelArguments<Name>): void;
  /** Sets a gauge. */
  set<Name extends NameOf<'gauge'>>(name: Name, value: number, ...labels: LabelArguments<Name>): void;
  /** Sets each series of a gauge to the number of elements with its labels, and all other series to 0. */
  setCounts<Name extends NameOf<'gauge'>>(name: Name, each: readonly LabelsOf<Name>[]): void;
  /** Adds a value to a histogram. */
  observe(name: NameOf<'histogram'>, value: number): void;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /**
   * Warns, unless the same message about the same subject was logged within the interval (default: ten minutes). Within the
   * interval, one message is logged for a limited number of subjects.
   */
  warnOnce(message: string, subject: string, fields: LogFields, intervalMs?: number): void;
  /** Logs that a request failed, with advice. The same failure is logged at most once in ten minutes. */
  requestFailed(operation: string, error: unknown): void;
  /** Logs an audit record at every log level except `silent`: the log is the second copy of the audit. */
  audited(record: AuditRecord): void;
}

// ── every metric, in one table: it registers the metrics (metrics-and-log.ts), gives Telemetry its types, and appears in docs/reference/metrics.md ──

export interface SeriesDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly unit: string;
  /** All values that each label can have, so that every series exists at 0 from the start. Names of buckets are never label values, because not everyone who can reach the health listener may know them. Absent: the metric is one series. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  readonly help: string;
  /** The upper bounds of a histogram's buckets, in its unit. */
  readonly buckets?: readonly number[];
  /** Set for a gauge whose value is read from elsewhere, such as a queue: a series that was not set for this long is absent, because an old number would look like the present one. */
  readonly knownForMs?: number;
}

const faultCodes = Object.keys(faults).filter(isFaultCode);
const headFaults = faultCodes.filter((code) => /^(s3|object|listing|bucket\.(missing|denied)|internal)/.test(code));
const indexFaults = faultCodes.filter((code) => code.includes('index'));
/** The faults that can open the circuit of the cluster. */
const pausingFaults = faultCodes.filter((code) => circuitOf(code) === 'cluster' || code === 'internal.unexpected');

/** The same age at which a readiness check stops trusting its last look. The queues and the state are read every 15 s. */
const KNOWN_FOR_MS = 120_000;

/** Durations of one request in seconds, from a fast store nearby to the longest time-out. */
const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const seriesTable = {
  // ── the data path ──
  tally_records_total: {
    type: 'counter',
    unit: 'records',
    labels: { dialect: [...dialects, 'unknown'], outcome: outcomeKinds },
    help: 'Counts finished records, by dialect and outcome. A deferred or provisional record counts again when its message is received again.',
  },
  tally_event_lag_seconds: {
    type: 'histogram',
    unit: 'seconds',
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600],
    help: 'Measures the time from an event, or from its post to a webhook, until its first write was acknowledged, even if provisional. Covers only messages at their first receive.',
  },
  tally_messages_total: {
    type: 'counter',
    unit: 'messages',
    labels: { settlement: ['delete', 'defer', 'wait', 'dead-letter', 'give-back'] },
    help: 'Counts settled messages, by settlement.',
  },
  tally_webhook_requests_total: {
    type: 'counter',
    unit: 'requests',
    labels: { result: ['queued', 'refused', 'later'] },
    help: 'Counts requests to the webhook receiver: queued, refused for good (a wrong token, a body that is too large), or put off (`later`), which loses events of stores that send each event once.',
  },
  tally_service_messages_total: {
    type: 'counter',
    unit: 'messages',
    labels: { kind: ['test-event', 'probe', 'subscription-confirmation', 'unsubscribe-confirmation'] },
    help: "Counts messages about the queue's wiring: S3 test events, Tally's hourly probes, and SNS confirmations.",
  },
  tally_dead_letters_total: {
    type: 'counter',
    unit: 'messages',
    labels: { fault: faultCodes },
    help: 'Counts messages sent to the dead-letter queue, by fault.',
  },
  tally_unconnected_records_total: {
    type: 'counter',
    unit: 'records',
    help: 'Counts records of unconnected buckets.',
  },
  tally_bulk_requests_total: {
    type: 'counter',
    unit: 'requests',
    labels: { result: ['ok', ...indexFaults, 'internal.unexpected'] },
    help: 'Counts bulk requests, by result.',
  },
  tally_bulk_actions_total: {
    type: 'counter',
    unit: 'actions',
    labels: { answer: ['written', 'superseded', 'equal', 'expired', 'fault'] },
    help: 'Counts the actions in bulk requests, by answer. A superseded action lost to something newer, or the same, in the index; an expired one was too old to send.',
  },
  tally_bulk_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    buckets: requestBuckets,
    help: 'Measures the duration of bulk requests.',
  },
  tally_bulk_in_flight_requests: { type: 'gauge', unit: 'requests', help: 'Shows how many bulk requests are in flight.' },
  tally_bulk_queued_actions: { type: 'gauge', unit: 'actions', help: 'Shows how many actions are waiting for a bulk request.' },
  tally_head_requests_total: {
    type: 'counter',
    unit: 'requests',
    labels: { result: ['present', 'absent', ...headFaults] },
    help: 'Counts HEAD requests for S3 objects, by result.',
  },
  tally_head_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    buckets: requestBuckets,
    help: 'Measures the duration of HEAD requests for S3 objects.',
  },
  tally_enrich_total: {
    type: 'counter',
    unit: 'documents',
    labels: { enrich: enrichRequestKinds, result: [...enrichResults, ...headFaults, 'index.rejected', 'bucket.index-misconfigured'] },
    help: 'Counts live documents to be enriched, by kind of enrichment and result. Documents with any result but ok are written without it.',
  },
  tally_head_in_flight_requests: {
    type: 'gauge',
    unit: 'requests',
    help: 'Shows how many requests about single objects (HEAD, tags) are in flight.',
  },
  tally_head_queued_requests: {
    type: 'gauge',
    unit: 'requests',
    help: 'Shows how many requests about single objects (HEAD, tags) are waiting to be sent.',
  },
  tally_held_messages: {
    type: 'gauge',
    unit: 'messages',
    help: 'Shows how many messages are held while waiting for a HEAD request, for enrichment, until they can be settled, or for an outage to end.',
  },
  // ── queues and gaps ──
  tally_queue_messages: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'messages',
    labels: { queue: ['bucket', 'dead-letter'], state: ['visible', 'in-flight', 'delayed'] },
    help: "Shows how many messages are in the queues. Tally reads SQS's approximate numbers every 15 s.",
  },
  tally_workers_wanted: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'workers',
    help: 'Shows how many workers would drain the backlog within TALLY_TARGET_LAG_S at the rate measured by this worker.',
  },
  tally_gaps_open: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'gaps',
    help: 'Shows how many gaps are open. `tally gaps` shows their buckets, why they are open, and what happens next.',
  },
  tally_gaps_oldest_age_seconds: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'seconds',
    help: 'Shows the age of the first change in the oldest open gap; 0 if none is open.',
  },
  // ── re-index ──
  tally_jobs: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'jobs',
    labels: { state: jobStates },
    help: 'Shows how many re-index jobs are stored, by state.',
  },
  tally_reindex_turns_total: {
    type: 'counter',
    unit: 'turns',
    labels: { result: ['on', 'done', 'lost', ...faultCodes] },
    help: 'Counts finished turns of job parts: on (there is more to do), done, lost to another process, or with a fault.',
  },
  tally_reindex_parts: { type: 'gauge', unit: 'parts', help: 'Shows how many job parts this process is comparing.' },
  // ── the calendar ──
  tally_buckets: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'buckets',
    labels: { status: bucketStates },
    help: 'Shows how many connected buckets have this status, which is the one that `tally bucket list` shows. ok: events are known to arrive, the whole bucket was compared, and no difference is known.',
  },
  tally_compared_oldest_age_seconds: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'seconds',
    help: 'Shows how long ago a whole bucket was last compared with its index, for the bucket compared least recently; for one never compared, since it was connected.',
  },
  tally_connection_state: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'buckets',
    labels: { state: [...watchedStates, 'paused'] },
    help: 'Shows how many connected buckets have a connection in this state, as of the last hourly check: ok, degraded, broken (events are lost), unknown (it could not be read), or paused on request.',
  },
  tally_notification_pause_age_seconds: {
    type: 'gauge',
    knownForMs: KNOWN_FOR_MS,
    unit: 'seconds',
    help: "Shows how long a bucket's notification has been paused, for the longest pause; 0 if none is paused.",
  },
  tally_sweeps_total: {
    type: 'counter',
    unit: 'sweeps',
    labels: { sweep: ['unsettled', 'lifecycle', 'tombstones', 'compare', 'connections'], result: ['ok', ...faultCodes] },
    help: "Counts finished sweeps of a bucket: of unsettled documents, of expected expirations (lifecycle), of old tombstones; compare counts scheduled comparisons begun; connections counts checks of a bucket's wiring.",
  },
  // ── the state of the process ──
  tally_paused: {
    type: 'gauge',
    unit: '0 or 1',
    labels: { fault: pausingFaults },
    help: 'Is 1 while receiving is paused because of this fault of the whole index store. S3 faults never pause it.',
  },
  tally_parked_buckets: {
    type: 'gauge',
    unit: 'buckets',
    help: 'Shows how many buckets have records waiting because the bucket or its index does not answer. A bucket with both counts once.',
  },
  tally_circuit_open: {
    type: 'gauge',
    unit: 'circuits',
    labels: { system: ['index', 's3'], level: ['whole', 'bucket'] },
    help: 'Shows how many circuits are open: for the index store or S3, and whether all of it (for S3, in a region) or one bucket’s part is down. Records that need it wait.',
  },
  tally_handed_over_records_total: {
    type: 'counter',
    unit: 'records',
    labels: { fault: faultCodes },
    help: 'Counts records handed over to a re-index: something they need did not answer, usually for ten minutes, and an open gap stands for them; by the fault that blocked them.',
  },
  tally_receiving: {
    type: 'gauge',
    unit: '0 or 1',
    labels: { state: ['on', 'failing', 'held-full', 'in-flight-cap', 'paused', 'no-bucket'] },
    help: 'Is 1 for the current state of receiving: on, failing (SQS refuses or does not answer), or the reason why it is held back. All states are 0 until the first receive, and without the role ingest.',
  },
  tally_ready: {
    type: 'gauge',
    unit: '0 or 1',
    labels: { role: ['ingest', 'reindex', 'http'] },
    help: 'Is 1 while this process can perform the role.',
  },
} as const satisfies Record<string, SeriesDefinition>;
