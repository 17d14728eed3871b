/** The metrics (kept and served by prom-client) and the log (written by pino). Nothing else in Tally writes log lines or changes metrics. */
import { pino, type DestinationStream, type Logger } from 'pino';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { faultOf, faults } from '../base/fault.ts';
import { exportedAudit } from '../base/audit.ts';
import { withoutPasswords } from '../base/secrets.ts';
import { printable } from '../base/texts.ts';
import type { Clock } from './clock.ts';
import { seriesTable, type SeriesDefinition, type LogFields, type MetricName, type Telemetry } from './telemetry.ts';

export interface TelemetryOptions {
  readonly level: string;
  readonly clock: Clock;
  /** The stream that receives the log lines. Default: standard output. */
  readonly destination?: DestinationStream;
}

export interface TelemetryAdapter {
  readonly telemetry: Telemetry;
  /** The Prometheus text of all series. */
  metricsText(): Promise<string>;
  readonly contentType: string;
}

/** The same line is logged at most once in this time. The metrics count every occurrence. */
const SAME_LINE_MS = 600_000;
/** How many subjects of one message are remembered: far more than fail at the same time. There is a limit because anyone who can send messages can invent event names. */
const SUBJECTS_MAX = 1_000;
const TOO_MANY = 'too many different log lines of one kind were due: some of them are not logged';

/** Creates the telemetry, with Node's default metrics. Each series begins at 0, unless its metric has `knownForMs`. Log lines are JSON. */
export function createTelemetry({ level, clock, destination }: TelemetryOptions): TelemetryAdapter {
  const log = pino(
    {
      level,
      base: null,
      formatters: { level: (label) => ({ level: label }), log: shownFields },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    destination ?? pino.destination(1),
  );
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return {
    telemetry: { ...createMetrics(registry, clock), ...createLog(log, clock) },
    metricsText: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

type LogMethod = 'debug' | 'info' | 'warn' | 'error' | 'warnOnce' | 'requestFailed' | 'audited';

function createLog(log: Logger, clock: Clock): Pick<Telemetry, LogMethod> {
  // the audit is logged at every log level except `silent`
  const audit = log.child({ audit: true }, { level: log.level === 'silent' ? 'silent' : 'info' });
  /** When each subject of a message was last logged, oldest first. Each message has its own map, so that a flood of one message does not suppress another. */
  const logged = new Map<string, Map<string, number>>();

  /** Whether to log the subject now: it was not logged within the interval, and there is room to remember it. */
  function isNews(message: string, subject: string, intervalMs: number): boolean {
    const atMs = logged.get(message) ?? new Map<string, number>();
    logged.set(message, atMs);
    const nowMs = clock.monotonicMs();
    for (const [earlier, earlierMs] of atMs) {
      if (nowMs - earlierMs < intervalMs) break;
      atMs.delete(earlier);
    }
    if (atMs.has(subject)) return false;
    if (atMs.size < SUBJECTS_MAX) {
      atMs.set(subject, nowMs);
      return true;
    }
    if (isNews(TOO_MANY, message, intervalMs)) log.warn({ kind: message, intervalMs }, TOO_MANY);
    return false;
  }

  return {
    debug: (message, fields = {}) => log.debug(fields, message),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
    warnOnce(message, subject, fields, intervalMs = SAME_LINE_MS) {
      if (isNews(message, subject, intervalMs)) log.warn(fields, message);
    },
    requestFailed(operation, error) {
      const { code, reason } = faultOf(error);
      if (!isNews('request failed', `${operation} ${code} ${reason}`, SAME_LINE_MS)) return;
      log.error({ operation, code, reason, advice: faults[code].advice }, 'request failed');
    },
    audited: (record) => audit.info(exportedAudit(record), 'audit record'),
  };
}

/**
 * Masks passwords in URLs, because more people can read the log than the settings. Escapes characters that a terminal would act
 * on or hide, because many texts come from outside (messages, answers).
 */
function shownFields(fields: LogFields): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? printable(withoutPasswords(value)) : value]),
  );
}

type Labels = Readonly<Record<string, string>>;

/** Registers every metric of the table. */
function createMetrics(registry: Registry, clock: Clock): Pick<Telemetry, 'count' | 'set' | 'setCounts' | 'observe'> {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  const known = new Map<string, KnownValues>();

  for (const [name, definition] of Object.entries<SeriesDefinition>(seriesTable)) {
    const options = { name, help: definition.help, labelNames: Object.keys(definition.labels ?? {}), registers: [registry] };
    switch (definition.type) {
      case 'counter':
        counters.set(name, startAtZero(new Counter(options), name));
        break;
      case 'gauge':
        gauges.set(name, createGauge(definition, options));
        break;
      case 'histogram':
        histograms.set(name, new Histogram({ ...options, buckets: [...(definition.buckets ?? [])] }));
    }
  }

  function createGauge({ knownForMs }: SeriesDefinition, options: ConstructorParameters<typeof Gauge>[0]): Gauge {
    if (knownForMs === undefined) return startAtZero(new Gauge(options), options.name);
    const values = createKnownValues(clock, knownForMs, options.labelNames ?? []);
    known.set(options.name, values);
    return new Gauge({
      ...options,
      collect() {
        for (const labels of allLabels(options.name)) this.remove(labels);
        for (const { labels, value } of values.read()) this.set(labels, value);
      },
    });
  }

  function setGauge(name: MetricName, labels: Labels, value: number): void {
    const values = known.get(name);
    if (values === undefined) gauges.get(name)?.set(labels, value);
    else values.record(labels, value);
  }

  return {
    count(name, by, ...[labels]) {
      if (isSeries(name, labels)) counters.get(name)?.inc(labels ?? NO_LABELS, by);
    },
    set(name, value, ...[labels]) {
      if (isSeries(name, labels)) setGauge(name, labels ?? NO_LABELS, value);
    },
    setCounts(name, each) {
      for (const labels of allLabels(name)) {
        const wanted = Object.entries(labels);
        const found = each.filter((one: Labels) => wanted.every(([label, value]) => one[label] === value));
        setGauge(name, labels, found.length);
      }
    },
    observe(name, value) {
      // prom-client throws if the value is not finite, but recording must never throw
      if (Number.isFinite(value)) histograms.get(name)?.observe(value);
    },
  };
}

const NO_LABELS: Labels = {};

/** The labels of each metric, prepared for isSeries(), which reads them at each change. */
const labelSets = new Map<string, readonly (readonly [string, readonly string[]])[]>(
  Object.entries<SeriesDefinition>(seriesTable).map(([name, { labels = {} }]) => [name, Object.entries(labels)]),
);

function isSeries(name: MetricName, labels: Labels = NO_LABELS): boolean {
  return labelSets.get(name)?.every(([label, values]) => values.includes(labels[label] ?? '')) === true;
}

function startAtZero<Metric extends Counter | Gauge>(metric: Metric, name: string): Metric {
  for (const labels of allLabels(name)) metric.inc(labels, 0);
  return metric;
}

/** Returns all combinations of the values of the metric's labels. */
function allLabels(name: string): readonly Labels[] {
  return (labelSets.get(name) ?? []).reduce<readonly Labels[]>(
    (combinations, [label, values]) => combinations.flatMap((each) => values.map((value) => ({ ...each, [label]: value }))),
    [{}],
  );
}

interface KnownValues {
  record(labels: Labels, value: number): void;
  /** Returns the last value of each series that was recorded within `knownForMs`. */
  read(): readonly { readonly labels: Labels; readonly value: number }[];
}

/** `names`: the names of the labels. Their values contain no space. */
function createKnownValues(clock: Clock, knownForMs: number, names: readonly string[]): KnownValues {
  const values = new Map<string, { readonly labels: Labels; readonly value: number; readonly atMs: number }>();
  return {
    record(labels, value) {
      const series = names.map((label) => labels[label]).join(' ');
      values.set(series, { labels, value, atMs: clock.monotonicMs() });
    },
    read() {
      for (const [series, { atMs }] of values) if (clock.monotonicMs() - atMs > knownForMs) values.delete(series);
      return [...values.values()];
    },
  };
}
