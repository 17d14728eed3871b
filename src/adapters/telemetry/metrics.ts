/** Registers the metrics of the table (series.ts), and changes their values. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { seriesTable } from './series.ts';

type Table = typeof seriesTable;
export type MetricName = keyof Table;
type NameOf<Type extends string> = { [Name in MetricName]: Table[Name]['type'] extends Type ? Name : never }[MetricName];

/** One value for each label of the metric. */
type LabelsOf<Name extends MetricName> = { readonly [Label in keyof Table[Name]['labels']]: ValueOf<Table[Name]['labels'][Label]> };
type ValueOf<Values> = Values extends readonly (infer Value extends string)[] ? Value : never;
/** A separate argument for the labels, if the metric has any. */
type LabelArguments<Name extends MetricName> = keyof LabelsOf<Name> extends never ? [] : [labels: LabelsOf<Name>];

/**
 * The metrics. A label value that is not in the label's set changes nothing, so that input from outside never creates a
 * series; most such values do not compile.
 */
export interface Metrics {
  readonly registry: Registry;
  /** Adds to a counter. */
  count<Name extends NameOf<'counter'>>(name: Name, by: number, ...labels: LabelArguments<Name>): void;
  /** Sets a gauge. */
  set<Name extends NameOf<'gauge'>>(name: Name, value: number, ...labels: LabelArguments<Name>): void;
  /** Adds a value to a histogram. */
  observe(name: NameOf<'histogram'>, value: number): void;
}

type LabelSets = Readonly<Record<string, readonly string[]>>;
type Labels = Readonly<Record<string, string>>;

/** Registers every metric of the table, each series at 0, and Node's default metrics. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();

  for (const [name, definition] of Object.entries(seriesTable)) {
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
    count(name, by, ...[labels]) {
      if (isSeries(name, labels)) counters.get(name)?.inc(labels ?? NO_LABELS, by);
    },
    set(name, value, ...[labels]) {
      if (isSeries(name, labels)) gauges.get(name)?.set(labels ?? NO_LABELS, value);
    },
    observe(name, value) {
      // prom-client throws if the value is not finite, and no fact may end in an exception
      if (Number.isFinite(value)) histograms.get(name)?.observe(value);
    },
  };
}

const NO_LABELS: Labels = {};

/** The labels of each metric, as isSeries() reads them for each fact. */
const labelSets = new Map<string, readonly (readonly [string, readonly string[]])[]>(
  Object.entries(seriesTable).map(([name, { labels }]) => [name, Object.entries(labels)]),
);

function isSeries(name: MetricName, labels = NO_LABELS): boolean {
  return labelSets.get(name)?.every(([label, values]) => values.includes(labels[label] ?? '')) === true;
}

function startAtZero<Metric extends Counter | Gauge>(metric: Metric, sets: LabelSets): Metric {
  for (const labels of combinationsOf(sets)) metric.inc(labels, 0);
  return metric;
}

/** All combinations of the labels' values. */
function combinationsOf(sets: LabelSets): readonly Labels[] {
  return Object.entries(sets).reduce<readonly Labels[]>(
    (combinations, [label, values]) => combinations.flatMap((each) => values.map((value) => ({ ...each, [label]: value }))),
    [{}],
  );
}
