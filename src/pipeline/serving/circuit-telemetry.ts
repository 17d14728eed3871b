/** How open circuits appear in the log and in the metrics. */
import { adviceWhileServing, type Fault } from '../../domain/fault.ts';
import type { LabelsOf, Telemetry } from '../ports/telemetry.ts';

/** What a circuit stands for: the index store, one index in it, S3 in one region, one bucket there, or the requests that enrich its documents. */
export type CircuitLevel = 'cluster' | 'index' | 'endpoint' | 'bucket' | 'enrichment';

interface Named {
  readonly level: CircuitLevel;
  /** The bucket or the region; empty for the cluster. */
  readonly name: string;
}

/** An open circuit, as far as the metrics show it. */
interface Open extends Named {
  readonly fault: Fault;
}

export const circuitMessages: Readonly<Record<CircuitLevel, { readonly opened: string; readonly closed: string }>> = {
  cluster: { opened: 'receiving paused', closed: 'receiving resumed' },
  index: {
    opened: 'the index of the bucket does not take its records: they wait',
    closed: 'the index of the bucket takes records again',
  },
  endpoint: {
    opened: 'S3 does not answer in this region: records that need it wait',
    closed: 'S3 answers in this region again',
  },
  bucket: {
    opened: 'S3 does not answer for the bucket: its records that need S3 wait',
    closed: 'S3 answers for the bucket again',
  },
  enrichment: {
    opened: 'S3 does not answer the requests that enrich documents of the bucket: they are written without enrichment',
    closed: 'documents of the bucket are enriched again',
  },
};

/** The labels of a circuit: the system, and whether it is the whole of it (the index store, S3 in a region) or one bucket's part. Nothing waits for enrichment. */
const circuitLabels: Readonly<Record<CircuitLevel, readonly LabelsOf<'tally_circuit_open'>[]>> = {
  cluster: [{ system: 'index', level: 'whole' }],
  index: [{ system: 'index', level: 'bucket' }],
  endpoint: [{ system: 's3', level: 'whole' }],
  bucket: [{ system: 's3', level: 'bucket' }],
  enrichment: [],
};

/** A circuit opened. `all`: those that are open now. */
export function reportOpened(telemetry: Telemetry, { level, name, fault: { code, reason } }: Open, all: readonly Open[]): void {
  setGauges(telemetry, all);
  const fields = fieldsOf(level, name);
  telemetry.error(circuitMessages[level].opened, { ...fields, code, reason, advice: adviceWhileServing(code, fields.bucket) });
}

/** A circuit closed. `all`: those that are open now. */
export function reportClosed(telemetry: Telemetry, { level, name }: Named, openMs: number, all: readonly Open[]): void {
  setGauges(telemetry, all);
  telemetry.info(circuitMessages[level].closed, { ...fieldsOf(level, name), openMs: Math.round(openMs) });
}

/** A bucket that waits for its index and for S3 counts once in `tally_parked_buckets`. */
function setGauges(telemetry: Telemetry, all: readonly Open[]): void {
  telemetry.setCounts(
    'tally_circuit_open',
    all.flatMap(({ level }) => circuitLabels[level]),
  );
  telemetry.set('tally_parked_buckets', new Set(all.filter(isOfBucket).map(({ name }) => name)).size);
  telemetry.setCounts(
    'tally_paused',
    all.filter(({ level }) => level === 'cluster').map(({ fault }) => ({ fault: fault.code })),
  );
}

function isOfBucket({ level }: Named): boolean {
  return level === 'index' || level === 'bucket';
}

function fieldsOf(level: CircuitLevel, name: string): { readonly bucket?: string; readonly region?: string } {
  if (level === 'cluster') return {};
  return level === 'endpoint' ? { region: name } : { bucket: name };
}
