/** What the re-index benchmark is to reach. */
import { atLeast, atMost, type Target } from '../report.ts';
import type { CaseRow } from './cases.ts';
import type { Measured } from './reindex.ts';

/** Live events beside a worker. */
export interface LagRow {
  readonly while: 'idle' | 'comparing' | 'writing';
  readonly objects: number;
  readonly probes: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

const UNCHANGED_MIN = 25_000;
/** A million objects within twelve minutes. */
const ENRICHED_MIN = 1_389;
/** Of the CPU that OpenSearch takes for the loader. */
const FIRST_INDEX_CPU_MAX = 1.1;
const FIRST_CPU_MAX_US = 30;
/** What a first index may take longer than the loader, and up to which size: jobs begin and end in a fixed time. */
const FIRST_EXTRA_MAX_S = 1;
const SMALL_OBJECTS = 100_000;
const RSS_RATIO_MAX = 1.15;
const RSS_MAX_MIB = 280;
/** Of the CPU of unchanged. */
const DRIFT_SHARE_MAX = 1.3;
const LAG_FACTOR_MAX = 2;
const LAG_EXTRA_MS = 1_000;

/** The targets of all that was measured. */
export function targetsOf({ cases, bare, lags }: Measured): readonly Target[] {
  return [
    ...cases.flatMap((row) => caseTargets(row, cases)),
    ...bare.flatMap((row) => firstTargets(row, cases)),
    ...growthTargets(cases),
    ...lags.flatMap((row) => lagTargets(row, lags)),
  ];
}

function caseTargets(row: CaseRow, cases: readonly CaseRow[]): readonly Target[] {
  const { case: name, objects, latency, objectsPerSecond, cpuUsPerObject, peakRssMib } = row;
  const of = `${name}, ${objects} objects, latency ${latency}`;
  const targets = [atMost(`${of}: peak RSS, MiB`, peakRssMib, RSS_MAX_MIB)];
  if (name === 'unchanged') targets.push(atLeast(`${of}: objects/s`, objectsPerSecond, UNCHANGED_MIN));
  if (name === 'enrich') targets.push(atLeast(`${of}: objects/s`, objectsPerSecond, ENRICHED_MIN));
  const unchanged = cases.find((each) => each.case === 'unchanged' && each.objects === objects && each.latency === latency);
  if (name === 'drift' && unchanged !== undefined)
    targets.push(atMost(`${of}: CPU by that of unchanged`, cpuUsPerObject / unchanged.cpuUsPerObject, DRIFT_SHARE_MAX));
  return targets;
}

function firstTargets({ objects, latency, ...loader }: Measured['bare'][number], cases: readonly CaseRow[]): readonly Target[] {
  const first = cases.find((each) => each.case === 'first' && each.objects === objects && each.latency === latency);
  if (first === undefined) return [];
  const name = `first index, ${objects} objects, latency ${latency}`;
  const extraS = first.tookMs / 1_000 - objects / loader.objectsPerSecond;
  if (objects <= SMALL_OBJECTS) return [atMost(`${name}: seconds more than the loader`, extraS, FIRST_EXTRA_MAX_S)];
  return [
    atMost(`${name}: OpenSearch's CPU by that for the loader`, first.indexCpuUsPerObject / loader.indexCpuUsPerObject, FIRST_INDEX_CPU_MAX),
    atMost(`${name}: CPU of the worker, µs an object`, first.cpuUsPerObject, FIRST_CPU_MAX_US),
  ];
}

/** Of each kind of case the memory of the largest bucket against that of the smallest. */
function growthTargets(cases: readonly CaseRow[]): readonly Target[] {
  const alike = Map.groupBy(cases, (row) => `${row.case}, latency ${row.latency}`);
  return [...alike].flatMap(([name, group]) => {
    const sorted = group.toSorted((a, b) => a.objects - b.objects);
    const [smallest, largest] = [sorted[0], sorted.at(-1)];
    if (smallest === undefined || largest === undefined || smallest === largest) return [];
    const target = `${name}: peak RSS with ${largest.objects} objects by that with ${smallest.objects}`;
    return [atMost(target, largest.peakRssMib / smallest.peakRssMib, RSS_RATIO_MAX)];
  });
}

function lagTargets(row: LagRow, lags: readonly LagRow[]): readonly Target[] {
  const idle = lags.find(({ objects, while: when }) => when === 'idle' && objects === row.objects);
  if (idle === undefined || row === idle) return [];
  return [atMost(`live lag (p95, ms) while ${row.while} ${row.objects} objects`, row.p95Ms, LAG_FACTOR_MAX * idle.p95Ms + LAG_EXTRA_MS)];
}
