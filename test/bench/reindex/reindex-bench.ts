/** `npm run bench -- reindex`: what a re-index of a large bucket costs, beside what OpenSearch alone takes. */
import { parseArgs } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';
import type { ReconcileCounts } from '../../../src/domain/reindex/counts.ts';
import { createKeySpace, keyShapes } from '../../support/listing/key-space.ts';
import type { KeyShape } from '../../support/listing/key-space.ts';
import { driftOf, latencies, measureBare, measureReindex, setBucket } from './cases.ts';
import type { CaseResult, LatencyName } from './cases.ts';
import { loadBare } from './bare-loader.ts';
import { probeLag } from './live-lag.ts';
import { reportOf, textOf } from './report.ts';
import type { BareResult, LagResult } from './report.ts';
import { openWorld } from './world.ts';
import type { BenchWorld } from './world.ts';

const HELP = `npm run bench -- reindex [options]

Measures re-indexes of buckets that a listing server of the tests' own serves, on a real OpenSearch: objects compared per
second with nothing to change, with everything missing and with 1 % drift; beside a bare bulk loader; with two workers;
and the live path's lag meanwhile. Every result is checked: index and bucket must say the same, and the counts be right.

  --opensearch URL     a server that may be loaded fully (default: http://127.0.0.1:9200)
  --objects N,N        sizes of the bucket (default: 100000,2000000)
  --latency none,s3    answers of S3 at once, and after 80 ± 40 ms (default: both)
  --cases NAME,NAME    of first, unchanged, drift, workers, lag (default: all)
  --shape flat|deep    of the keys (default: deep)
  --bulk N             actions of a bulk request of the bare loader (default: 1000, the product's own)
  --concurrency N      bulk requests at once of the bare loader (default: 4, the product's own)
  --profile DIR        CPU profiles of the workers
  --json               the results as JSON
  --help
`;

const caseNames = ['first', 'unchanged', 'drift', 'workers', 'lag'] as const;
type CaseName = (typeof caseNames)[number];

interface Options {
  readonly openSearchUrl: string;
  readonly sizes: readonly number[];
  readonly latencyNames: readonly LatencyName[];
  readonly wanted: ReadonlySet<CaseName>;
  readonly shape: KeyShape;
  readonly bulkActions: number;
  readonly concurrency: number;
  readonly nodeArguments: readonly string[];
}

const BUCKET = 'bench-reindex';
/** A cold JVM is half as fast: measured with 150,000 documents. */
const WARM_UP = 200_000;
/** Enough probes for a p95, at five a second. */
const IDLE_MS = 15_000;
const WARM_MS = 3_000;

/** Runs the benchmark; resolves with the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      opensearch: { type: 'string', default: 'http://127.0.0.1:9200' },
      objects: { type: 'string', default: '100000,2000000' },
      latency: { type: 'string', default: latencies.join(',') },
      cases: { type: 'string', default: caseNames.join(',') },
      shape: { type: 'string', default: 'deep' },
      bulk: { type: 'string', default: '1000' },
      concurrency: { type: 'string', default: '4' },
      profile: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const options: Options = {
    openSearchUrl: values.opensearch,
    sizes: values.objects.split(',').map(Number),
    latencyNames: chosen(values.latency, latencies),
    wanted: new Set(chosen(values.cases, caseNames)),
    shape: chosen(values.shape, keyShapes)[0] ?? 'deep',
    bulkActions: Number(values.bulk),
    concurrency: Number(values.concurrency),
    nodeArguments: values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`],
  };
  const world = await openWorld(options.openSearchUrl);
  try {
    const measured: Measured = { cases: [], bare: [], lags: [] };
    await warmUp(world);
    for (const size of options.sizes) await measureSize({ world, options, measured }, size);
    const report = reportOf(measured);
    process.stdout.write(values.json ? `${JSON.stringify(report, undefined, 2)}\n` : textOf(report));
    return 0;
  } finally {
    await world.close();
  }
}

interface Measured {
  readonly cases: CaseResult[];
  readonly bare: BareResult[];
  readonly lags: LagResult[];
}

interface Bench {
  readonly world: BenchWorld;
  readonly options: Options;
  readonly measured: Measured;
}

async function warmUp(world: BenchWorld): Promise<void> {
  say(`warming OpenSearch up with ${WARM_UP} documents`);
  await measureBare(world, { shape: 'flat', count: WARM_UP, bulkActions: 1_000, concurrency: 4 });
}

async function measureSize(bench: Bench, objects: number): Promise<void> {
  const { world, options, measured } = bench;
  const { wanted, latencyNames } = options;
  await prepare(bench, objects);
  if (wanted.has('first')) await measureFirst(bench, objects);
  if (wanted.has('unchanged')) for (const latency of latencyNames) await run(bench, { name: 'unchanged', objects, latency, expected: {} });
  if (wanted.has('workers')) await run(bench, { name: 'unchanged', objects, latency: 'none', expected: {}, workers: 2 });
  if (wanted.has('drift')) await measureDrift(bench, objects);
  if (wanted.has('lag')) measured.lags.push(await measureLag(bench, objects));
  await world.removeIndex(BUCKET);
}

/** An index that says what the bucket says. */
async function prepare({ world, options }: Bench, objects: number): Promise<void> {
  say(`${objects} objects: loading the index`);
  const { shape, bulkActions, concurrency } = options;
  await world.emptyIndex(BUCKET);
  const space = createKeySpace(shape, objects);
  await loadBare({ url: world.openSearchUrl, indexPrefix: world.indexPrefix, bucket: BUCKET, space, bulkActions, concurrency });
}

async function measureFirst(bench: Bench, objects: number): Promise<void> {
  const { world, options, measured } = bench;
  const { shape, bulkActions, concurrency } = options;
  for (const latency of options.latencyNames) {
    // right before and not long before: what OpenSearch takes changes with what it has to merge
    const objectsPerSecond = await measureBare(world, { shape, count: objects, bulkActions, concurrency });
    measured.bare.push({ objects, latency, objectsPerSecond });
    say(`bare loader, ${objects} objects: ${Math.round(objectsPerSecond)}/s`);
    await world.emptyIndex(BUCKET);
    await run(bench, { name: 'first', objects, latency, expected: { missing: objects } });
  }
}

/** 1 % is changed for the first latency, and changed back for the second. */
async function measureDrift(bench: Bench, objects: number): Promise<void> {
  const { missing, stale, phantom } = driftOf(bench.options.shape, objects);
  let isDrifted = false;
  for (const latency of bench.options.latencyNames) {
    isDrifted = !isDrifted;
    const expected = isDrifted ? { missing, stale, phantom } : { missing: phantom, stale, phantom: missing };
    await run(bench, { name: 'drift', objects, latency, expected, isDrifted });
  }
}

interface Run {
  readonly name: string;
  readonly objects: number;
  readonly latency: LatencyName;
  readonly expected: Partial<ReconcileCounts>;
  readonly workers?: number;
  readonly isDrifted?: boolean;
  readonly withLiveEvents?: boolean;
}

async function run({ world, options, measured }: Bench, { expected, isDrifted = false, ...rest }: Run): Promise<CaseResult> {
  const wanted = await setBucket(world, { bucket: BUCKET, shape: options.shape, count: rest.objects, isDrifted });
  const result = await measureReindex(world, { bucket: BUCKET, nodeArguments: options.nodeArguments, ...rest }, wanted);
  checkCounts(result, { missing: 0, stale: 0, phantom: 0, ...expected, listed: wanted.objects });
  measured.cases.push(result);
  say(
    `${result.name}, ${result.objects} objects, latency ${result.latency}, workers ${result.workers}: ${Math.round(result.objectsPerSecond)}/s`,
  );
  return result;
}

function checkCounts({ name, counts, requests }: CaseResult, expected: Partial<ReconcileCounts>): void {
  for (const [kind, count] of Object.entries(expected)) {
    const found = Object.entries(counts).find(([each]) => each === kind)?.[1];
    if (found !== count) throw new Error(`${name}: ${kind} is ${found}, not ${count}: ${JSON.stringify(counts)}`);
  }
  // HEADs only for phantoms, each confirmed once
  if (requests.head !== counts.phantom) throw new Error(`${name}: ${requests.head} HEADs for ${counts.phantom} phantoms`);
}

/** The live path's lag at idle, while everything is compared, and while everything is written anew, at full speed. */
async function measureLag(bench: Bench, objects: number): Promise<LagResult> {
  const { world } = bench;
  const worker = await world.startWorker();
  const warm = probeLag(world.live);
  await delay(WARM_MS);
  await warm.end();
  const idle = probeLag(world.live);
  await delay(IDLE_MS);
  const idleMs = await idle.end();
  await worker.stop();

  const live = { objects, latency: 'none', withLiveEvents: true } as const;
  const comparing = await run(bench, { ...live, name: 'unchanged, live events', expected: {} });
  await world.emptyIndex(BUCKET);
  const writing = await run(bench, { ...live, name: 'first, live events', expected: { missing: objects } });
  return { objects, idleMs, comparingMs: comparing.lagsMs, writingMs: writing.lagsMs };
}

function chosen<Name extends string>(text: string, names: readonly Name[]): readonly Name[] {
  return text.split(',').map((part) => {
    const name = names.find((each) => each === part.trim());
    if (name === undefined) throw new Error(`${part} is none of ${names.join(', ')}`);
    return name;
  });
}

/** Beside the results, which alone go to stdout. */
function say(text: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
}
