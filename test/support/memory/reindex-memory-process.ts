/** Measures what a re-index keeps in memory, in a process of its own: `fork` it with `--expose-gc`, send a measurement, receive the result. */
import { createAwsClients } from '../../../src/aws/clients.ts';
import { createTelemetry } from '../../../src/process/metrics-and-log.ts';
import { createS3Listing } from '../../../src/aws/s3-listing.ts';
import { systemClock } from '../../../src/process/system-clock.ts';
import { compareKeys } from '../../../src/base/key-order.ts';
import { documentOf, type ObjectDocument } from '../../../src/ordering/document.ts';
import { addExamples } from '../../../src/records/counts.ts';
import { createBackgroundWriter } from '../../../src/repair/background-writer.ts';
import { createReconcileTurn, type ReconcileTurn } from '../../../src/repair/reconcile-turn.ts';
import type { ObjectIndex, ObjectScan } from '../../../src/store/store.ts';
import type { ObjectStorage } from '../../../src/aws/storage.ts';
import { createTestCircuits } from '../fakes/circuits.ts';
import { createFakeStorage } from '../fakes/ports.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { firstOf } from '../servers/listing/contents.ts';
import { createKeySpace, type KeySpace } from '../servers/listing/key-space.ts';
import { forkListingServer } from '../servers/listing/fork-listing-server.ts';
import { bucketRecord } from '../worlds/reindex.ts';
import { MEMORY_DRIFT, type Measured, type Measurement } from './reindex-memory.ts';

const BUCKET = 'memory';
/** Half as many as a worker compares at once by default. */
const RANGES = 4;
/** Forced collections of one measurement, whatever its size: the largest of more samples would be larger. */
const SAMPLES = 10;

const server = await forkListingServer();
const clock = systemClock;
// the real one: the fake one remembers everything
const { telemetry } = createTelemetry({ level: 'silent', clock });
const circuits = createTestCircuits({ clock, telemetry });
const aws = createAwsClients({
  region: bucketRecord.region,
  endpoints: { s3: server.url },
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  s3: { forcePathStyle: true, timeoutMs: 30_000, connectionsMax: 50 },
  sqs: { receivesMax: 1, waitS: 1 },
});
const listing = createS3Listing({ clientFor: aws.s3For, clock });
process.on('message', (measurement: Measurement) => void measure(measurement).then((measured) => process.send?.(measured)));
process.once('disconnect', () => void server.close().then(() => process.exit()));
process.send?.('ready');

async function measure({ mode, objects }: Measurement): Promise<Measured> {
  const space = createKeySpace('deep', objects);
  const driftEvery = MEMORY_DRIFT[mode];
  await server.control({ buckets: [{ name: BUCKET, shape: 'deep', count: objects, ...(driftEvery !== undefined && { driftEvery }) }] });
  const turn = createTurn(mode === 'first' ? createKeySpace('deep', 0) : space);
  const memory = createGauge(Math.ceil(objects / 1_000 / SAMPLES));
  const cuts = Array.from({ length: RANGES - 1 }, (_, at) => space.keyAt(Math.floor((objects * (at + 1)) / RANGES)));
  const bounds = Array.from({ length: RANGES }, (_, at) => ({ after: cuts[at - 1] ?? '', upTo: cuts[at] }));
  const ranges = await Promise.all(bounds.map((range) => runRange(turn, range, () => memory.compared())));
  memory.sample();
  const differences = ranges.reduce((sum, { found }) => sum + found, 0);
  return { peakBytes: memory.peakBytes(), differences };
}

/** Runs the turns of one range, and keeps what its record would keep. */
async function runRange(
  turn: ReconcileTurn,
  { after, upTo }: { readonly after: string; readonly upTo: string | undefined },
  compared: () => void,
) {
  const controls = {
    tombstones: { reserve: async (count: number) => count, giveBack: () => undefined, isUsedUp: () => false },
    shouldEnd: () => {
      compared();
      return false;
    },
    isOver: () => false,
  };
  let record = { cursor: after, examples: {}, found: 0 };
  for (let done = false; !done;) {
    const request = {
      bucket: { ...bucketRecord, bucket: BUCKET },
      prefix: '',
      after: record.cursor,
      mode: 'apply',
      fill: false,
      tags: false,
    } as const;
    const result = await turn({ ...request, ...(upTo !== undefined && { upTo }) }, controls, new AbortController().signal);
    if (result.fault !== undefined) throw new Error(result.fault.reason);
    const { missing, stale, phantom } = result.counts;
    record = {
      cursor: result.cursor,
      examples: addExamples(record.examples, result.examples),
      found: record.found + missing + stale + phantom,
    };
    ({ done } = result);
  }
  return record;
}

/** A turn on the listing server, a computed index, and HEADs that find nothing. */
function createTurn(indexed: KeySpace): ReconcileTurn {
  const { objects, scan } = createComputedIndex(indexed);
  const storage: ObjectStorage = {
    ...createFakeStorage(clock),
    readState: async () => ({ state: { present: false }, observedAtMs: clock.nowMs() }),
  };
  const limits = { actionsMax: 1_000, bytesMax: 5_000_000, concurrency: 4 };
  const { writeAll } = createBackgroundWriter({ objects, clock, telemetry, circuits, limits, liveIsBusy: () => false });
  return createReconcileTurn({ objects, scan, listing, storage, writeAll, clock, telemetry, circuits });
}

/** An index that holds the documents of a key space, and forgets what is written. */
function createComputedIndex(space: KeySpace): { readonly objects: ObjectIndex; readonly scan: ObjectScan } {
  const store = createMemoryStore();
  const documentAt = (at: number): ObjectDocument => {
    const { lastModifiedMs, ...state } = space.stateAt(at);
    return documentOf({
      bucket: BUCKET,
      key: space.keyAt(at),
      state: { present: true, lastModifiedMs, ...state },
      clock: lastModifiedMs * 1_000,
      settled: true,
      source: 'listing',
      cause: {},
      stateAtMs: lastModifiedMs,
      nowMs: lastModifiedMs,
    });
  };
  const firstAfter = (key: string): number => firstOf(space.count, (at) => compareKeys(space.keyAt(at), key) > 0);
  return {
    objects: {
      ...store.objects,
      write: async (writes) => writes.map(() => ({ kind: 'written' })),
      getMany: async (_bucket, keys) =>
        keys.map((key) => {
          const at = firstAfter(key) - 1;
          return at >= 0 && space.keyAt(at) === key ? documentAt(at) : undefined;
        }),
    },
    scan: {
      ...store.scan,
      async scan(_bucket, { after, upTo, limit }) {
        const from = firstAfter(after);
        const to = Math.min(from + limit, upTo === undefined ? space.count : firstAfter(upTo));
        return Array.from({ length: Math.max(0, to - from) }, (_, index) => documentAt(from + index));
      },
    },
  };
}

/** The most memory that survived a forced collection, V8's heap and what it keeps outside, of one after each `every` slices. */
function createGauge(every: number) {
  const collect = globalThis.gc;
  if (collect === undefined) throw new Error('this process needs --expose-gc');
  let peakBytes = 0;
  let slices = 0;
  const sample = (): void => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    peakBytes = Math.max(peakBytes, heapUsed + external);
  };
  return {
    sample,
    compared(): void {
      slices += 1;
      if (slices % every === 0) sample();
    },
    peakBytes: () => peakBytes,
  };
}
