/** Observations of single objects with the writes that follow, over an index and an S3 in memory, with a clock that does not wait. */
import type { BucketRecord, BucketSource } from '../../../src/records/bucket.ts';
import { type ObjectDocument, clockOfMs } from '../../../src/ordering/document.ts';
import { observeAgain } from '../../../src/repair/sweeps.ts';
import { createBulkWriter } from '../../../src/observing/bulk-writer.ts';
import { createObserving } from '../../../src/observing/observer.ts';
import type { ObjectIndex } from '../../../src/store/store.ts';
import { refs, updateRecord } from '../../../src/store/stored.ts';
import { recordOf } from '../fakes/bucket-record.ts';
import { createTestCircuits } from '../fakes/circuits.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry, type FakeClock, type FakeTelemetry } from '../fakes/ports.ts';

interface WorldOptions {
  readonly buckets?: readonly string[];
  readonly source?: BucketSource;
  readonly headConcurrency?: number;
  /** What the bulk writer writes to instead of the index. */
  readonly writesTo?: (objects: ObjectIndex, parts: { readonly clock: FakeClock; readonly telemetry: FakeTelemetry }) => ObjectIndex;
}

/** Creates it with its buckets connected. */
export async function createObservingWorld({
  buckets = ['photos'],
  source = 'routed',
  headConcurrency = 8,
  writesTo = (objects) => objects,
}: WorldOptions = {}) {
  const index = createMemoryStore();
  const { state, objects } = index;
  const clock = createFakeClock({ autoAdvance: true });
  const telemetry = createFakeTelemetry();
  const storage = createFakeStorage(clock);
  const shared = { clock, telemetry, circuits: createTestCircuits({ clock, telemetry }) };
  const limits = { actionsMax: 1_000, bytesMax: 10_000_000, lingerMs: 0, concurrency: 1 };
  const write = createBulkWriter({ ...shared, objects: writesTo(objects, shared), limits });
  const stopped = new AbortController().signal;
  const { observe } = createObserving({ ...shared, storage, index, write, concurrency: headConcurrency, stopped });
  for (const bucket of buckets) {
    storage.createBucket(bucket);
    await objects.createBucket(bucket);
    await updateRecord(state, refs.bucket(bucket), () => recordOf(bucket, { source }));
  }
  return {
    ...shared,
    ...index,
    storage,
    observe,
    observeAgain: (bucket: BucketRecord, documents: readonly ObjectDocument[]) => observeAgain(observe, bucket, documents),
    /** A document of that age, of `photos` unless `more` says otherwise. */
    document: (key: string, ageMs: number, more: Partial<ObjectDocument> = {}): ObjectDocument => ({
      bucket: 'photos',
      key,
      clock: clockOfMs(clock.nowMs() - ageMs),
      deleted: false,
      settled: true,
      source: 'check',
      indexed_at: new Date(clock.nowMs() - ageMs).toISOString(),
      ...more,
    }),
    async store(documents: readonly ObjectDocument[]): Promise<void> {
      await objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
    },
    stored: async (key: string, bucket = 'photos') => (await objects.getMany(bucket, [key]))[0],
    /** Deletions of `photos` wait for a person, or no longer do. */
    async hold(held: 'open' | 'closed', prefix = ''): Promise<void> {
      const waiting = held === 'open' ? [{ prefix, count: 7, jobId: 'job-1', order: 1, sinceMs: 0 }] : undefined;
      await updateRecord(state, refs.bucket('photos'), (record) => ({ ...(record ?? recordOf('photos')), waiting }));
    },
  };
}
