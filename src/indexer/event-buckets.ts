/**
 * Finds the bucket record for a change record: the bucket is connected, or its event is counted and dropped. A cached record is at most C = 10 s behind the store. An unknown name is read by its id before an event of it is
 * dropped.
 */
import PQueue from 'p-queue';
import { LRUCache } from 'lru-cache';
import type { BucketRecord } from '../records/bucket.ts';
import { FaultError } from '../base/fault.ts';
import type { ChangeRecord } from '../events/record.ts';
import { reportUnconnectedEvents, type ReportUnconnected } from '../observing/reports.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import { BUCKET_RECORD_AGE_MAX_MS } from '../ordering/constants.ts';
import type { WithPorts } from '../store/store.ts';

/** How often the region of a bucket that S3 does not find is read again. */
const REGION_READ_MS = 60_000;
/** How many names are counted at the same time. Above it the metric counts alone: names may be anything that is sent to the queue. */
const COUNTING_MAX = 1_000;

/** The message of a record, as far as it matters for its bucket. */
export interface Arrival {
  /** When the message was sent, by SQS's clock. */
  readonly sentAtMs: number;
  /** When this process received it, by the monotonic clock. */
  readonly receivedAtMonotonicMs: number;
}

export interface EventBuckets {
  /** Returns the record if it is cached and the event changes nothing about it. */
  peek(record: ChangeRecord): BucketRecord | undefined;
  /**
   * Returns the record; undefined if the bucket is not connected, and then the event may be dropped: its change lies before
   * every re-index that a later connection begins with. Throws the store's faults.
   */
  lookup(record: ChangeRecord, arrival: Arrival): Promise<BucketRecord | undefined>;
  /** Counts a record that is dropped because its bucket is not connected. The count is stored soon, and nothing waits for it. */
  countUnconnected(bucket: string, sentAtMs: number): void;
  /** Reads region and versioning again in the background, at most once a minute for each bucket: a bucket may have been created again in another region. */
  readRegionAgain(bucket: string): void;
}

export interface RefreshBucket {
  /** Reads region and versioning of a connected bucket again, and stores them. */
  refresh(bucket: string): Promise<unknown>;
}

interface EventBucketsDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly records: BucketRecordCache;
  readonly connect: RefreshBucket;
  readonly reportUnconnected: ReportUnconnected;
}

/** Creates the lookup. */
export function createEventBuckets(dependencies: EventBucketsDependencies): EventBuckets {
  const { records, state, clock, connect, reportUnconnected, telemetry } = dependencies;
  /** The names whose counts are being stored. */
  const counting = new Map<string, number>();
  const regionReadAtMs = new Map<string, number>();

  /** A version id on any event proves that versioning was enabled once, whatever was read before. */
  async function flipToVersioned(bucket: BucketRecord): Promise<BucketRecord | undefined> {
    const versioning = { status: 'enabled' as const, observedAtMs: clock.nowMs() };
    await updateRecord(state, refs.bucket(bucket.bucket), (current) =>
      current?.versioning.status === 'never' ? { ...current, versioning } : undefined,
    );
    records.forget(bucket.bucket);
    return records.lookup(bucket.bucket);
  }

  function countUnconnected(bucket: string, sentAtMs: number): void {
    const pending = counting.get(bucket) ?? 0;
    if (pending === 0 && counting.size >= COUNTING_MAX) return reportUnconnectedEvents(telemetry, bucket, 1);
    counting.set(bucket, pending + 1);
    // never before the event by SQS's clock: this machine's may be slow
    reportUnconnected(bucket, Math.max(clock.nowMs(), sentAtMs))
      .catch((error: unknown) => telemetry.requestFailed('count events of a bucket that is not connected', error))
      .finally(() => {
        const left = (counting.get(bucket) ?? 1) - 1;
        if (left === 0) counting.delete(bucket);
        else counting.set(bucket, left);
      });
  }

  return {
    peek(record) {
      const bucket = records.peek(record.bucket);
      return bucket === undefined || contradictsVersioning(record, bucket) ? undefined : bucket;
    },
    async lookup(record, arrival) {
      // "not connected" counts only if it was read after the event came: then a connection, and its first re-index, come after the change
      const known = await records.lookup(record.bucket, { absentSinceMs: arrival.receivedAtMonotonicMs });
      return known !== undefined && contradictsVersioning(record, known) ? flipToVersioned(known) : known;
    },
    countUnconnected,
    readRegionAgain(bucket) {
      const nowMs = clock.monotonicMs();
      if (nowMs - (regionReadAtMs.get(bucket) ?? -Infinity) < REGION_READ_MS) return;
      regionReadAtMs.set(bucket, nowMs);
      connect.refresh(bucket).then(
        () => records.forget(bucket),
        // the bucket is still missing, and its circuit says so
        () => undefined,
      );
    },
  };
}

function contradictsVersioning(record: ChangeRecord, bucket: BucketRecord): boolean {
  return record.versionId !== undefined && bucket.versioning.status === 'never';
}

// ── the cache of records ───────────────────────────────────────────────────────────────────────────────────────────

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
export function createBucketRecordCache({ state, clock }: WithPorts<'state' | 'clock'>): BucketRecordCache {
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
