/** The cases of the re-index benchmark, each measured on a fresh worker and checked for its result. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Job, JobCounts } from '../../../src/registry/contract/job.ts';
import type { EnrichMode } from '../../../src/records/bucket.ts';
import { createContents } from './listing/contents.ts';
import { applyDrift } from './drift.ts';
import type { Drift } from './drift.ts';
import { createKeySpace } from './listing/key-space.ts';
import type { KeyShape, KeySpace } from './listing/key-space.ts';
import type { Latency } from './listing-control.ts';
import { loadBare, type Load } from './bare-loader.ts';
import { probeLag } from './live-lag.ts';
import { fingerprintOfContents } from './verify.ts';
import type { Fingerprint } from './verify.ts';
import type { BenchWorld } from './world.ts';

export const chosenLatencies = ['none', 's3'] as const;
/** `head`: what S3 takes for a HEAD at its best. */
export type LatencyName = (typeof chosenLatencies)[number] | 'head';

const latencyOf: Readonly<Record<LatencyName, Latency | null>> = {
  none: null,
  s3: { meanMs: 80, jitterMs: 40 },
  head: { meanMs: 20, jitterMs: 0 },
};

export interface CaseOptions {
  readonly name: string;
  readonly bucket: string;
  readonly objects: number;
  readonly latency: LatencyName;
  readonly nodeArguments?: readonly string[];
  /** Whether the live path is at work meanwhile, and its lag measured. */
  readonly withLiveEvents?: boolean;
  /** Which further data its documents get. */
  readonly enrich?: EnrichMode;
}

const START_MS = 3_000;
/** Objects of which the listing server renders the listing before the clock starts, as the loader makes its bodies: 1.1 GB. */
const PREPARED_MAX = 3_000_000;

/** What a bucket is to hold: all of a key space, or that with every n-th key changed. */
export interface BucketState {
  readonly bucket: string;
  readonly shape: KeyShape;
  readonly count: number;
  readonly driftEvery?: number | undefined;
}

/** Makes the bucket so, and answers what it holds and how many keys of each kind differ between the two states. */
export async function setBucket(world: BenchWorld, { bucket, shape, count, driftEvery }: BucketState): Promise<Fingerprint> {
  const space = createKeySpace(shape, count);
  const contents = createContents(space);
  if (driftEvery !== undefined) applyDrift(contents, space, driftEvery);
  // more would not fit into memory
  const isPrepared = count <= PREPARED_MAX;
  await world.listing.control({ buckets: [{ name: bucket, shape, count, isPrepared, ...(driftEvery !== undefined && { driftEvery }) }] });
  return fingerprintOfContents(contents);
}

/** How many keys differ between a bucket and its drifted state. */
export function driftOf(shape: KeyShape, count: number, driftEvery: number): Drift {
  const space: KeySpace = createKeySpace(shape, count);
  return applyDrift(createContents(space), space, driftEvery);
}

/** What the same documents take without listing, comparing and reading. */
export async function measureBare(
  world: BenchWorld,
  { shape, count, ...bulks }: Pick<BucketState, 'shape' | 'count'> & Pick<Load, 'bulkActions' | 'concurrency'>,
) {
  const bucket = 'bench-bare';
  await world.emptyIndex(bucket);
  const space = createKeySpace(shape, count);
  let own: NodeJS.CpuUsage | undefined;
  let indexBeforeUs = 0;
  const ready = async (): Promise<void> => {
    indexBeforeUs = await world.indexCpuUs();
    own = process.cpuUsage();
  };
  const { openSearchUrl: url, indexPrefix } = world;
  const tookMs = await loadBare({ url, indexPrefix, bucket, space, ...bulks, ready });
  const { user, system } = process.cpuUsage(own);
  await world.settle(bucket);
  const indexCpuUs = (await world.indexCpuUs()) - indexBeforeUs;
  const { objects } = await world.fingerprint(bucket);
  if (objects !== count) throw new Error(`the bare loader loaded ${objects} of ${count} documents`);
  await world.removeIndex(bucket);
  // user and system time of the loader, which is this process, and of OpenSearch, for one object
  return { objectsPerSecond: (count / tookMs) * 1_000, cpuUsPerObject: (user + system) / count, indexCpuUsPerObject: indexCpuUs / count };
}

/** Re-indexes a bucket with a fresh worker, from the request to the job's end. Throws unless the job is done and the index says what the bucket says. */
export async function measureReindex(world: BenchWorld, options: CaseOptions, wanted: Fingerprint) {
  const { name, bucket, objects, latency, enrich = 'none' } = options;
  const worker = await world.startWorker(options.nodeArguments);
  await worker.ask('POST', '/v1/buckets', { bucket, source: 'notification', reindex: false, wired_by_hand: true, enrich });
  // what starting costs is not what re-indexing costs, nor what a first message does
  const warm = options.withLiveEvents === true ? probeLag(world.live) : undefined;
  await delay(START_MS);
  await warm?.end();
  await world.listing.control({ latency: latencyOf[latency], resetCounts: true });
  const [cpuBefore, indexCpuBefore] = [worker.usage().cpuUs, await world.indexCpuUs()];
  const live = options.withLiveEvents === true ? probeLag(world.live) : undefined;
  const job = await worker.reindex(bucket);
  const lagsMs = (await live?.end()) ?? [];
  const requests = await world.listing.control({ latency: null });
  const cpuUs = worker.usage().cpuUs - cpuBefore;
  await world.settle(bucket);
  const indexCpuUs = (await world.indexCpuUs()) - indexCpuBefore;
  const { peakRssBytes } = worker.usage();
  const turns = await worker.turns();
  await worker.stop();
  check(name, await world.fingerprint(bucket), wanted);
  const { counts, tookMs } = endOf(job);
  const row = {
    case: name,
    objects,
    latency,
    objectsPerSecond: (objects / tookMs) * 1_000,
    tookMs,
    peakRssMib: peakRssBytes / 1_048_576,
    /** User and system time of the worker for one object. */
    cpuUsPerObject: cpuUs / objects,
    /** That of OpenSearch, until searches find everything and its merges have ended. */
    indexCpuUsPerObject: indexCpuUs / objects,
    turns,
    /** What S3 was asked, as S3 counted it. */
    lists: requests.list,
    heads: requests.head,
    written: counts.written,
    tombstones: counts.tombstones,
  };
  return { row, counts, lagsMs };
}

/** What was measured of one case. */
export type CaseRow = Awaited<ReturnType<typeof measureReindex>>['row'];

function endOf(job: Job): { readonly counts: JobCounts; readonly tookMs: number } {
  const { state, counts, created_at: createdAt, finished_at: finishedAt } = job;
  if (state !== 'done' || counts === undefined || finishedAt === undefined) {
    throw new Error(`the job is ${state}: ${JSON.stringify(job)}`);
  }
  return { counts, tookMs: Date.parse(finishedAt) - Date.parse(createdAt) };
}

function check(name: string, found: Fingerprint, wanted: Fingerprint): void {
  if (found.objects === wanted.objects && found.sum === wanted.sum) return;
  throw new Error(`${name}: the index has ${found.objects} objects and the bucket ${wanted.objects}; they do not say the same`);
}
