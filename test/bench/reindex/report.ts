/** What the re-index benchmark found, beside what it is to reach. */
import { cpus, totalmem } from 'node:os';
import { quantileOf, tableText } from '../statistics.ts';
import { atLeast, atMost, targetsText, type Target } from '../targets.ts';
import type { CaseResult, LatencyName } from './cases.ts';

export interface BareResult {
  readonly objects: number;
  /** Of the first index that it is compared with; the loader itself asks nobody. */
  readonly latency: LatencyName;
  readonly objectsPerSecond: number;
  readonly cpuUsPerObject: number;
  readonly indexCpuUsPerObject: number;
}

export interface LagResult {
  readonly objects: number;
  readonly idleMs: readonly number[];
  readonly comparingMs: readonly number[];
  readonly writingMs: readonly number[];
}

export interface ReindexReport {
  readonly bench: 'reindex';
  readonly date: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly memoryMib: number; readonly node: string };
  readonly cases: readonly CaseResult[];
  readonly bare: readonly BareResult[];
  readonly lags: readonly {
    readonly objects: number;
    readonly while: 'idle' | 'comparing' | 'writing';
    readonly probes: number;
    readonly p50Ms: number;
    readonly p95Ms: number;
  }[];
  readonly targets: readonly Target[];
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

interface Found {
  readonly cases: readonly CaseResult[];
  readonly bare: readonly BareResult[];
  readonly lags: readonly LagResult[];
}

/** Sums up what was measured. */
export function reportOf({ cases, bare, lags }: Found): ReindexReport {
  const all = cpus();
  return {
    bench: 'reindex',
    date: new Date().toISOString(),
    machine: { cpu: all[0]?.model ?? '', cores: all.length, memoryMib: Math.round(totalmem() / 1_048_576), node: process.version },
    cases,
    bare,
    lags: lags.flatMap(({ objects, idleMs, comparingMs, writingMs }) =>
      (
        [
          ['idle', idleMs],
          ['comparing', comparingMs],
          ['writing', writingMs],
        ] as const
      ).map(([when, found]) => ({
        objects,
        while: when,
        probes: found.length,
        p50Ms: quantileOf(found, 0.5),
        p95Ms: quantileOf(found, 0.95),
      })),
    ),
    targets: [
      ...unchangedTargets(cases),
      ...firstTargets(cases, bare),
      ...enrichTargets(cases),
      ...driftTargets(cases),
      ...memoryTargets(cases),
      ...lags.flatMap(lagTargets),
    ],
  };
}

function unchangedTargets(cases: readonly CaseResult[]): readonly Target[] {
  return cases
    .filter(({ name, workers }) => name === 'unchanged' && workers === 1)
    .map(({ objects, latency, objectsPerSecond }) =>
      atLeast(`unchanged, ${objects} objects, latency ${latency}: objects/s`, objectsPerSecond, UNCHANGED_MIN),
    );
}

function enrichTargets(cases: readonly CaseResult[]): readonly Target[] {
  return cases
    .filter(({ name }) => name === 'enrich')
    .map(({ objects, objectsPerSecond }) => atLeast(`enriched by HEAD, ${objects} objects: objects/s`, objectsPerSecond, ENRICHED_MIN));
}

function firstTargets(cases: readonly CaseResult[], bare: readonly BareResult[]): readonly Target[] {
  return bare.flatMap(({ objects, latency, objectsPerSecond, indexCpuUsPerObject }) => {
    const first = cases.find((each) => each.name === 'first' && each.objects === objects && each.latency === latency);
    if (first === undefined) return [];
    const name = `first index, ${objects} objects, latency ${latency}`;
    const extraS = first.tookMs / 1_000 - objects / objectsPerSecond;
    if (objects <= SMALL_OBJECTS) return [atMost(`${name}: seconds more than the loader`, extraS, FIRST_EXTRA_MAX_S)];
    return [
      atMost(`${name}: OpenSearch's CPU by that for the loader`, first.indexCpuUsPerObject / indexCpuUsPerObject, FIRST_INDEX_CPU_MAX),
      atMost(`${name}: CPU of the worker, µs an object`, first.cpuUsPerObject, FIRST_CPU_MAX_US),
    ];
  });
}

function driftTargets(cases: readonly CaseResult[]): readonly Target[] {
  return cases.flatMap(({ name, objects, latency, cpuUsPerObject }) => {
    const unchanged = cases.find(
      (each) => each.name === 'unchanged' && each.objects === objects && each.latency === latency && each.workers === 1,
    );
    if (name !== 'drift' || unchanged === undefined) return [];
    const share = cpuUsPerObject / unchanged.cpuUsPerObject;
    const target = `1 % drift, ${objects} objects, latency ${latency}: CPU by that of unchanged`;
    return [atMost(target, share, DRIFT_SHARE_MAX)];
  });
}

/** The memory of each case, and of each kind of case the largest bucket's against the smallest's. */
function memoryTargets(cases: readonly CaseResult[]): readonly Target[] {
  const peaks = cases.map(({ name, objects, latency, peakRssBytes }) =>
    atMost(`${name}, ${objects} objects, latency ${latency}: peak RSS, MiB`, peakRssBytes / 1_048_576, RSS_MAX_MIB),
  );
  return [...peaks, ...growthTargets(cases)];
}

function growthTargets(cases: readonly CaseResult[]): readonly Target[] {
  const alike = Map.groupBy(cases, ({ name, latency, workers }) => `${name}, latency ${latency}, workers ${workers}`);
  return [...alike].flatMap(([name, group]) => {
    const sorted = group.toSorted((a, b) => a.objects - b.objects);
    const [smallest, largest] = [sorted[0], sorted.at(-1)];
    if (smallest === undefined || largest === undefined || smallest === largest) return [];
    const ratio = largest.peakRssBytes / smallest.peakRssBytes;
    return [atMost(`${name}: peak RSS with ${largest.objects} objects by that with ${smallest.objects}`, ratio, RSS_RATIO_MAX)];
  });
}

function lagTargets({ objects, idleMs, comparingMs, writingMs }: LagResult): readonly Target[] {
  const limitMs = LAG_FACTOR_MAX * quantileOf(idleMs, 0.95) + LAG_EXTRA_MS;
  return (
    [
      ['comparing', comparingMs],
      ['writing', writingMs],
    ] as const
  ).map(([when, lags]) => {
    const found = quantileOf(lags, 0.95);
    const name = `live lag (p95, ms) while ${when} ${objects} objects`;
    return { name, found, wanted: `≤ ${Math.round(limitMs)} (twice idle and 1 s)`, isReached: found <= limitMs };
  });
}

/** The report as text for people. */
export function reportText({ date, machine, cases, bare, lags, targets }: ReindexReport): string {
  const rows = cases.map((each) => [
    each.name,
    String(each.objects),
    each.latency,
    String(each.workers),
    Math.round(each.objectsPerSecond).toString(),
    (each.tookMs / 1_000).toFixed(1),
    (each.peakRssBytes / 1_048_576).toFixed(0),
    each.cpuUsPerObject.toFixed(1),
    each.indexCpuUsPerObject.toFixed(1),
    String(each.turns),
    String(each.splits),
    String(each.requests.list),
    String(each.requests.head),
    String(each.counts.written),
    String(each.counts.tombstones),
  ]);
  const head = [
    'case',
    'objects',
    'latency',
    'workers',
    'objects/s',
    's',
    'RSS MiB',
    'CPU µs/object',
    'index µs/object',
    'turns',
    'splits',
    'LISTs',
    'HEADs',
    'written',
    'tombstones',
  ];
  const parts = [
    `${date}  ${machine.cores} × ${machine.cpu}, ${machine.memoryMib} MiB, Node ${machine.node}`,
    tableText([head, ...rows]),
    ...(bare.length === 0
      ? []
      : [
          tableText([
            ['bare loader', 'objects/s', 'CPU µs/object', 'index µs/object'],
            ...bare.map((each) => [
              String(each.objects),
              Math.round(each.objectsPerSecond).toString(),
              each.cpuUsPerObject.toFixed(1),
              each.indexCpuUsPerObject.toFixed(1),
            ]),
          ]),
        ]),
    ...(lags.length === 0
      ? []
      : [
          tableText([
            ['live lag', 'objects', 'probes', 'p50 ms', 'p95 ms'],
            ...lags.map((each) => [each.while, String(each.objects), String(each.probes), each.p50Ms.toFixed(0), each.p95Ms.toFixed(0)]),
          ]),
        ]),
    targetsText(targets),
  ];
  return parts.join('\n\n');
}
