/**
 * The bucket records that the data path decides by: cached, at most C = 10 s behind the store, asked by id before any
 * event of an unknown name is dropped.
 */
import PQueue from 'p-queue';
import type { BucketRecord } from '../../domain/bucket.ts';
import { BUCKET_RECORD_AGE_MAX_MS } from '../../domain/ordering/constants.ts';
import { FaultError } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs } from '../records/stored.ts';

/** A "not connected" is believed this long: a bucket connected just now is indexed at most this much later. */
const ABSENT_AGE_MAX_MS = 5_000;
/** Half of C: a busy bucket's record is read again before anybody must wait for it. */
const REFRESH_AGE_MS = BUCKET_RECORD_AGE_MAX_MS / 2;
/** Names that are not connected may be anything that is sent to the queue, so the memory for them is bounded. */
const ENTRIES_MAX = 10_000;
/** Records read at once: one message may name thousands of buckets. */
const READS_MAX = 32;

export interface BucketRegistry {
  /** The record if it is connected and fresh enough to decide by, without waiting. */
  peek(bucket: string): BucketRecord | undefined;
  /** The record, or undefined when the bucket is not connected. Throws the store's fault. */
  lookup(bucket: string): Promise<BucketRecord | undefined>;
  /** Forgets what is cached of the name: its record was just changed here. */
  forget(bucket: string): void;
}

interface CacheEntry {
  readonly record: BucketRecord | undefined;
  /** Monotonic, from before the read was sent. */
  readonly readAtMs: number;
}

/** Creates an empty registry. */
export function createBucketRegistry({ state, clock }: { readonly state: StateStore; readonly clock: Clock }): BucketRegistry {
  const cache = new Map<string, CacheEntry>();
  const reading = new Map<string, Promise<CacheEntry>>();
  const reads = new PQueue({ concurrency: READS_MAX });

  function read(bucket: string): Promise<CacheEntry> {
    const running = reading.get(bucket);
    if (running !== undefined) return running;
    const promise = reads
      .add(() => readFresh(bucket))
      .then((entry) => {
        // forgotten meanwhile: what was read may be from before the change
        if (reading.get(bucket) === promise) remember(bucket, entry);
        return entry;
      })
      .finally(() => {
        if (reading.get(bucket) === promise) reading.delete(bucket);
      });
    reading.set(bucket, promise);
    return promise;
  }

  async function readFresh(bucket: string): Promise<CacheEntry> {
    const readAtMs = clock.monotonicMs();
    return { record: await readRecord(state, refs.bucket(bucket)), readAtMs };
  }

  function remember(bucket: string, entry: CacheEntry): void {
    if (cache.size >= ENTRIES_MAX) cache.clear();
    cache.set(bucket, entry);
  }

  function ageMs(entry: CacheEntry): number {
    return clock.monotonicMs() - entry.readAtMs;
  }

  return {
    peek(bucket) {
      const entry = cache.get(bucket);
      if (entry?.record === undefined || ageMs(entry) > BUCKET_RECORD_AGE_MAX_MS) return undefined;
      // a failed refresh is told by the lookup that must wait for it
      if (ageMs(entry) > REFRESH_AGE_MS) read(bucket).catch(() => undefined);
      return entry.record;
    },
    async lookup(bucket) {
      const cached = cache.get(bucket);
      const ageMaxMs = cached?.record === undefined ? ABSENT_AGE_MAX_MS : BUCKET_RECORD_AGE_MAX_MS;
      if (cached !== undefined && ageMs(cached) <= ageMaxMs) return cached.record;
      const entry = await read(bucket);
      if (ageMs(entry) <= BUCKET_RECORD_AGE_MAX_MS) return entry.record;
      throw new FaultError('index.unreachable', 'the bucket record took longer to read than it may be old');
    },
    forget(bucket) {
      cache.delete(bucket);
      reading.delete(bucket);
    },
  };
}
