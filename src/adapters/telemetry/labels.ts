/** The values of labels: closed sets that the table of series (series.ts) uses. */
import { circuitOf, faults, isFaultCode } from '../../domain/fault.ts';
import type { CircuitLevel } from '../../pipeline/ports/telemetry.ts';
import { gapSchema } from '../../domain/gaps/gap.ts';
import { type JobState, jobStates } from '../../domain/reindex/job.ts';

export const faultCodes = Object.keys(faults).filter(isFaultCode);
export const headFaults = faultCodes.filter((code) => /^(s3|object|listing|bucket\.(missing|denied)|internal)/.test(code));
export const indexFaults = faultCodes.filter((code) => code.includes('index'));
/** What the circuit of the cluster can open with: faults of the cluster, and those of an index where all indices fail together. */
export const pausingFaults = faultCodes.filter((code) => ['cluster', 'index'].includes(circuitOf(code)) || code === 'internal.unexpected');
/** The labels of a circuit: the system, and whether it is the whole of it (the index store, S3 in a region) or one bucket's part. */
export const circuitLabels = {
  cluster: { system: 'index', level: 'whole' },
  index: { system: 'index', level: 'bucket' },
  endpoint: { system: 's3', level: 'whole' },
  bucket: { system: 's3', level: 'bucket' },
} as const satisfies Record<Exclude<CircuitLevel, 'enrichment'>, { readonly system: string; readonly level: string }>;

export const endStates: readonly JobState[] = jobStates.filter((state) => state === 'done' || state === 'failed' || state === 'cancelled');

export const gapStates = gapSchema.shape.state.options;
export const receivingStates = ['on', 'held-full', 'in-flight-cap', 'paused', 'no-bucket'] as const;

/** The counts of a job that are shown by kind: the name of the count, and its label value. */
export const objectKinds = [
  ['equal', 'equal'],
  ['incomplete', 'incomplete'],
  ['missing', 'missing'],
  ['stale', 'stale'],
  ['phantom', 'phantom'],
  ['inFlight', 'in-flight'],
] as const;

/**
 * The names in the code that have changed since the first version. Labels of metrics and attributes of traces keep the old
 * value, because dashboards and alerts depend on it. A superseded write is one that the store refused because it holds
 * something newer; a late task belongs to an earlier turn.
 */
const renamed = ['superseded', 'late'] as const;
type Renamed = (typeof renamed)[number];

/** The label value of a name: `stale` for the names that have changed. */
export function labelOf<Name extends string>(name: Name): Exclude<Name, Renamed> | 'stale' {
  return isUnchanged(name) ? name : 'stale';
}

function isUnchanged<Name extends string>(name: Name): name is Exclude<Name, Renamed> {
  return !renamed.some((each) => each === name);
}
