/**
 * The cache of the bucket records that the data path decides by. A cached record is at most C = 10 s behind the store. An
 * unknown name is read by its id before an event of it is dropped.
 */
import { LRUCache } from 'lru-cache';
import PQueue from 'p-queue';
import type { BucketRecord } from '../../domain/bucket.ts';
import { BUCKET_RECORD_AGE_MAX_MS } from '../../domain/ordering/constants.ts';
import { FaultError } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs } from '../records/stored.ts';

/** How long the answer "not connected" is used: the events of a bucket that was just connected are indexed at most this much later. */
const ABSENT_AGE_MAX_MS = 5_000;
/** From one read of a name that is not connected to the next, so that a flood of its events costs ten reads a second. */
const ABSENT_READ_MS = 100;
/** Half of C: the record of a busy bucket is read again before a record has to wait for it. */
const REFRESH_AGE_MS = BUCKET_RECORD_AGE_MAX_MS / 2;
/** The cache is bounded, since names that are not connected may be anything that is sent to the queue. */
const ENTRIES_MAX = 10_000;
/** How many records are read at the same time: one message may name thousands of buckets. */
const READS_MAX = 32;

export interface BucketRecordCache {
  /** Returns the record, without waiting, if the bucket is connected and the cached record is fresh enough to decide by. */
  peek(bucket: string): BucketRecord | undefined;
  /**
   * Returns the record, or undefined if the bucket is not connected. `absentSinceMs`: the answer "not connected" must be of a read
   * that was sent at this moment of the monotonic clock or later. Throws the store's fault.
   */
  lookup(bucket: string, how?: { readonly absentSinceMs: number }): Promise<BucketRecord | undefined>;
  /** Forgets the cached record of this name, because this process has just changed it. */
  forget(bucket: string): void;
}

interface CacheEntry {
  readonly record: BucketRecord | undefined;
  /** The moment before the read was sent, by the monotonic clock. */
  readonly readAtMs: number;
}

/** Creates an empty cache. */
export function createBucketRecordCache({ state, clock }: { readonly state: StateStore; readonly clock: Clock }): BucketRecordCache {
  const cache = new LRUCache<string, CacheEntry>({ max: ENTRIES_MAX });
  const reading = new Map<string, Promise<CacheEntry>>();
  const reads = new PQueue({ concurrency: READS_MAX });

  function read(bucket: string): Promise<CacheEntry> {
    const running = reading.get(bucket);
    if (running !== undefined) return running;
    const promise = reads
      .add(() => readFresh(bucket))
      .then((entry) => {
        // if the name was forgotten in the meantime, this read may be older than the change
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
    cache.set(bucket, entry);
  }

  function ageMs(entry: CacheEntry): number {
    return clock.monotonicMs() - entry.readAtMs;
  }

  function isUsable(entry: CacheEntry, absentSinceMs: number): boolean {
    if (entry.record !== undefined) return ageMs(entry) <= BUCKET_RECORD_AGE_MAX_MS;
    return entry.readAtMs >= absentSinceMs && ageMs(entry) <= ABSENT_AGE_MAX_MS;
  }

  function restBeforeReadMs(cached: CacheEntry | undefined): number {
    return cached === undefined || cached.record !== undefined ? 0 : ABSENT_READ_MS - ageMs(cached);
  }

  async function readInTime(bucket: string): Promise<CacheEntry> {
    const entry = await read(bucket);
    if (ageMs(entry) <= BUCKET_RECORD_AGE_MAX_MS) return entry;
    throw new FaultError('index.unreachable', 'reading the bucket record took longer than the age at which it may still be used');
  }

  return {
    peek(bucket) {
      const entry = cache.get(bucket);
      if (entry?.record === undefined || ageMs(entry) > BUCKET_RECORD_AGE_MAX_MS) return undefined;
      // if the refresh fails, the lookup that has to wait for the record will throw
      if (ageMs(entry) > REFRESH_AGE_MS) read(bucket).catch(() => undefined);
      return entry.record;
    },
    async lookup(bucket, { absentSinceMs } = { absentSinceMs: clock.monotonicMs() - ABSENT_AGE_MAX_MS }) {
      for (;;) {
        const cached = cache.get(bucket);
        if (cached !== undefined && isUsable(cached, absentSinceMs)) return cached.record;
        const restMs = restBeforeReadMs(cached);
        if (restMs > 0) {
          await clock.sleep(restMs);
          continue;
        }
        const entry = await readInTime(bucket);
        // a read that ran already when it was wanted may be too early
        if (entry.record !== undefined || entry.readAtMs >= absentSinceMs) return entry.record;
      }
    },
    forget(bucket) {
      cache.delete(bucket);
      reading.delete(bucket);
    },
  };
}
