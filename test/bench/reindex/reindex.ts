/** The bench `reindex`: what a re-index of a large bucket costs, beside what OpenSearch alone takes. */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Option } from 'commander';
import type { JobCounts } from '../../../src/registry/contract/job.ts';
import { REINDEX_HEADS } from '../../../src/serve/limits.ts';
import type { EnrichMode } from '../../../src/records/bucket.ts';
import { createKeySpace, keyShapes } from './listing/key-space.ts';
import type { KeyShape } from './listing/key-space.ts';
import { commandOf, countOption, countsOption, namesOption, OPENSEARCH_HELP, openSearchUrl } from '../bench-command.ts';
import { quantileOf, tableText } from '../report.ts';
import { loadBare } from './bare-loader.ts';
import { chosenLatencies, driftOf, measureBare, measureReindex, setBucket } from './cases.ts';
import type { CaseRow, LatencyName } from './cases.ts';
import { probeLag } from './live-lag.ts';
import { targetsOf, type LagRow } from './targets.ts';
import { openWorld } from './world.ts';
import type { BenchWorld } from './world.ts';

const measures = ['first', 'enrich', 'unchanged', 'drift', 'drift-10', 'lag'] as const;
type Measure = (typeof measures)[number];

interface ReindexOptions {
  readonly measure: readonly Measure[];
  readonly objects: readonly number[];
  readonly latency: readonly LatencyName[];
  readonly shape: KeyShape;
  readonly bulkActions: number;
  readonly bulkConcurrency: number;
  readonly profile?: string;
}

const BUCKET = 'bench-reindex';
/** A cold JVM is half as fast: measured with 150,000 documents. */
const WARM_UP = 200_000;
/** Enough probes for a p95, at five a second. */
const IDLE_MS = 15_000;
const WARM_MS = 3_000;

/** The bench's command. */
export const reindexBench = commandOf<ReindexOptions>({
  name: 'reindex',
  description: 'Throughput, memory and requests of re-indexes, and the live path’s lag meanwhile.',
  options: [
    namesOption('--measure <names>', 'what is measured', measures),
    countsOption('--objects <counts>', 'sizes of the bucket', [1_000, 100_000_000], [100_000, 2_000_000]),
    namesOption('--latency <names>', 'S3’s answers: none, or after 80 ± 40 ms, as S3', chosenLatencies),
    new Option('--shape <name>', 'of the keys').choices(keyShapes).default('deep'),
    countOption('--bulk-actions <count>', 'of a bulk request of the bare loader', [1, 10_000], 1_000),
    countOption('--bulk-concurrency <count>', 'of the bare loader', [1, 32], 4),
    new Option('--profile <folder>', 'keep CPU profiles of the worker there'),
  ],
  help: `
Measures:
  first      An empty index is filled; beside it a bare bulk loader, which sends
             the same documents right before, from bodies that were made before
             its clock starts.
  enrich     An empty index is filled with documents that are enriched by a HEAD of
             each object; S3 answers after 20 ms.
  unchanged  Index and bucket agree.
  drift      1 % of the keys differ: a third missing, stale and phantom each.
  drift-10   The same with 10 %.
  lag        Live events beside a worker at idle, while it compares, and while it
             writes all: from the message in the queue to the document.

Each is a job of a fresh worker, from its request to its end. Afterwards the index
must say what the bucket says, the job's counts be right, and S3 have had one
HEAD for each phantom (and for each enriched object), and no more than those that were under way when the bucket
was confirmed (every five seconds) again.

S3 is a listing server of the tests' own, which renders listings of up to 3,000,000
objects before the clock starts; the queues are fauxqs. Linux only: CPU
and memory are read from /proc. On two cores they, the worker and OpenSearch share
them: compare within one run only.
${OPENSEARCH_HELP} Other TALLY_ variables reach the workers as they are.`,
  run,
});

/** What was measured, row by row. */
export interface Measured {
  readonly cases: CaseRow[];
  readonly bare: ({ readonly objects: number; readonly latency: LatencyName } & Awaited<ReturnType<typeof measureBare>>)[];
  readonly lags: LagRow[];
}

interface Run {
  readonly world: BenchWorld;
  readonly options: ReindexOptions;
  readonly measured: Measured;
  readonly tell: (text: string) => void;
}

async function run(options: ReindexOptions, tell: (text: string) => void) {
  const url = openSearchUrl();
  if (url === undefined) throw new Error('TALLY_BENCH_OPENSEARCH_URL is not set');
  const world = await openWorld(url);
  try {
    const measured: Measured = { cases: [], bare: [], lags: [] };
    tell(`warming OpenSearch up with ${WARM_UP} documents`);
    await measureBare(world, { shape: 'flat', count: WARM_UP, bulkActions: 1_000, concurrency: 4 });
    for (const objects of options.objects) await measureSize({ world, options, measured, tell }, objects);
    return { ...measured, targets: targetsOf(measured) };
  } finally {
    await world.close();
  }
}

async function measureSize(bench: Run, objects: number): Promise<void> {
  const { world, options } = bench;
  const wants = (name: Measure): boolean => options.measure.includes(name);
  if (wants('enrich')) await measureEnriched(bench, objects);
  if (wants('first')) await measureFirst(bench, objects);
  else if (options.measure.some((name) => name !== 'enrich')) await loadIndex(bench, objects);
  if (wants('unchanged')) for (const latency of options.latency) await measureCase(bench, { name: 'unchanged', objects, latency });
  if (wants('drift')) await measureDrift(bench, objects, { name: 'drift', driftEvery: 100 });
  if (wants('drift-10')) await measureDrift(bench, objects, { name: 'drift-10', driftEvery: 10 });
  if (wants('lag')) await measureLag(bench, objects);
  await world.removeIndex(BUCKET);
}

/** An index that says what the bucket says. */
async function loadIndex({ world, options, tell }: Run, objects: number): Promise<void> {
  tell(`${objects} objects: loading the index`);
  await world.emptyIndex(BUCKET);
  const { bulkActions, bulkConcurrency: concurrency } = options;
  const space = createKeySpace(options.shape, objects);
  await loadBare({ url: world.openSearchUrl, indexPrefix: world.indexPrefix, bucket: BUCKET, space, bulkActions, concurrency });
}

async function measureFirst(bench: Run, objects: number): Promise<void> {
  const { world, options, measured, tell } = bench;
  const { shape, bulkActions, bulkConcurrency: concurrency } = options;
  for (const latency of options.latency) {
    // right before: what OpenSearch takes changes with what it has to merge
    const costs = await measureBare(world, { shape, count: objects, bulkActions, concurrency });
    measured.bare.push({ objects, latency, ...costs });
    tell(
      `bare loader, ${objects} objects: ${costs.objectsPerSecond.toFixed(0)}/s, ${costs.cpuUsPerObject.toFixed(1)} µs CPU an object, ` +
        `OpenSearch ${costs.indexCpuUsPerObject.toFixed(1)} µs`,
    );
    await world.emptyIndex(BUCKET);
    await measureCase(bench, { name: 'first', objects, latency, expected: { missing: objects, written: objects } });
  }
}

async function measureEnriched(bench: Run, objects: number): Promise<void> {
  await bench.world.emptyIndex(BUCKET);
  const expected = { missing: objects, written: objects };
  await measureCase(bench, { name: 'enrich', objects, latency: 'head', enrich: 'head', heads: objects, expected });
  // what follows finds the bucket as it is connected otherwise
  await bench.world.removeIndex(BUCKET);
}

/** The keys are changed for the first latency, and changed back for the second. */
async function measureDrift(
  bench: Run,
  objects: number,
  { name, driftEvery }: { readonly name: Measure; readonly driftEvery: number },
): Promise<void> {
  const { missing, stale, phantom } = driftOf(bench.options.shape, objects, driftEvery);
  let isDrifted = false;
  for (const latency of bench.options.latency) {
    isDrifted = !isDrifted;
    const expected = isDrifted ? { missing, stale, phantom } : { missing: phantom, stale, phantom: missing };
    await measureCase(bench, { name, objects, latency, expected, ...(isDrifted && { driftEvery }) });
  }
  // what follows finds the bucket as it was
  if (isDrifted)
    await measureCase(bench, { name: `${name}, back`, objects, latency: 'none', expected: { missing: phantom, stale, phantom: missing } });
}

/** The live path's lag at idle, while everything is compared, and while everything is written anew, at full speed. */
async function measureLag(bench: Run, objects: number): Promise<void> {
  const { world } = bench;
  const add = (when: LagRow['while'], lagsMs: readonly number[]) =>
    bench.measured.lags.push({
      while: when,
      objects,
      probes: lagsMs.length,
      p50Ms: quantileOf(lagsMs, 0.5),
      p95Ms: quantileOf(lagsMs, 0.95),
    });
  const worker = await world.startWorker();
  const warm = probeLag(world.live);
  await delay(WARM_MS);
  await warm.end();
  const idle = probeLag(world.live);
  await delay(IDLE_MS);
  add('idle', await idle.end());
  await worker.stop();

  const live = { objects, latency: 'none', withLiveEvents: true } as const;
  add('comparing', await measureCase(bench, { ...live, name: 'unchanged, live events' }));
  await world.emptyIndex(BUCKET);
  add('writing', await measureCase(bench, { ...live, name: 'first, live events', expected: { missing: objects, written: objects } }));
}

interface Measurement {
  readonly name: string;
  readonly objects: number;
  readonly latency: LatencyName;
  /** Differences that the job is to find; others: none. */
  readonly expected?: Partial<JobCounts>;
  readonly driftEvery?: number;
  readonly withLiveEvents?: boolean;
  readonly enrich?: EnrichMode;
  /** Beside those of phantoms. */
  readonly heads?: number;
}

/** Measures it and checks what the job counted. The lags of the live events meanwhile. */
async function measureCase({ world, options, measured, tell }: Run, measurement: Measurement): Promise<readonly number[]> {
  const { expected = {}, driftEvery, heads = 0, ...rest } = measurement;
  const nodeArguments = options.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profile}`];
  const wanted = await setBucket(world, { bucket: BUCKET, shape: options.shape, count: rest.objects, driftEvery });
  const { row, counts, lagsMs } = await measureReindex(world, { bucket: BUCKET, nodeArguments, ...rest }, wanted);
  checkCounts(row, counts, { missing: 0, stale: 0, phantom: 0, ...expected, listed: wanted.objects }, heads);
  measured.cases.push(row);
  tell(tableText([row]));
  return lagsMs;
}

function checkCounts(row: CaseRow, counts: JobCounts, expected: Partial<JobCounts>, others: number): void {
  const found = Object.fromEntries(Object.keys(expected).map((kind) => [kind, new Map(Object.entries(counts)).get(kind)]));
  if (!isDeepStrictEqual(found, expected)) throw new Error(`${row.case}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
  const heads = counts.phantom + others;
  // no HEAD for anything else, and those that were under way when the bucket was confirmed are sent again: each five seconds
  const repeated = heads === 0 ? 0 : REINDEX_HEADS * (1 + Math.ceil(row.tookMs / 5_000));
  if (row.heads < heads || row.heads > heads + repeated)
    throw new Error(`${row.case}: ${row.heads} HEADs instead of ${heads} in ${row.tookMs} ms: ${JSON.stringify(counts)}`);
}
