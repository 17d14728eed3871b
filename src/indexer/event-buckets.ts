/**
 * Finds a change record's bucket record; an event of an unconnected bucket is counted and dropped. Records are cached, and decide
 * only while they are at most C old. "Not connected" decides only if it was read after the event was received: a later connection,
 * and the re-index with which it begins, then come after the change.
 */
import PQueue from 'p-queue';
import { LRUCache } from 'lru-cache';
import type { BucketRecord } from '../records/bucket.ts';
import { FaultError } from '../base/fault.ts';
import type { ChangeRecord } from '../events/record.ts';
import { reportUnconnectedEvents, type ReportUnconnected } from '../observing/gaps.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import { BUCKET_RECORD_AGE_MAX_MS } from '../ordering/constants.ts';
import type { WithPorts } from '../store/store.ts';

/** Half of C: the record of a busy bucket is read again before a record has to wait for it. */
const REFRESH_AGE_MS = BUCKET_RECORD_AGE_MAX_MS / 2;
/** Between two reads of an unconnected name, so that a flood of its events costs ten reads a second. */
const ABSENT_READ_MS = 100;
/** Bounds the cache, since anyone who can send to the queue can invent names. */
const ENTRIES_MAX = 10_000;
/** How many records are read at the same time: one message may name thousands of buckets. */
const READS_MAX = 32;
/** How often the region of a bucket that S3 does not find is read again. */
const REGION_READ_MS = 60_000;
/** How many unconnected names are counted at the same time. Above it only the metric counts, since senders can invent names. */
const COUNTING_MAX = 1_000;

export interface EventBuckets {
  /** Returns the record, without waiting, if the cached one may decide and the event changes nothing about it. */
  peek(record: ChangeRecord): BucketRecord | undefined;
  /**
   * Returns the record; undefined if the bucket is not connected, so that the event may be dropped. `receivedAtMonotonicMs`: when this
   * process received its message. Throws the store's faults.
   */
  lookup(record: ChangeRecord, message: { readonly receivedAtMonotonicMs: number }): Promise<BucketRecord | undefined>;
  /** Counts a record dropped because its bucket is not connected. The count is stored soon, and nothing waits for it. */
  countUnconnected(bucket: string, sentAtMs: number): void;
  /** Reads region and versioning again in the background, at most once a minute per bucket, because it may have been recreated in another region. */
  readRegionAgain(bucket: string): void;
}

export interface RefreshBucket {
  /** Reads region and versioning of a connected bucket again, and stores them. */
  refresh(bucket: string): Promise<unknown>;
}

interface EventBucketsDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly connect: RefreshBucket;
  readonly reportUnconnected: ReportUnconnected;
}

interface CachedRead {
  readonly record: BucketRecord | undefined;
  /** The moment before the read was sent, by the monotonic clock. */
  readonly readAtMs: number;
}

/** Creates the lookup, with an empty cache. */
export function createEventBuckets({ state, clock, connect, reportUnconnected, telemetry }: EventBucketsDependencies): EventBuckets {
  const cache = new LRUCache<string, CachedRead>({ max: ENTRIES_MAX });
  const reading = new Map<string, Promise<CachedRead>>();
  const reads = new PQueue({ concurrency: READS_MAX });
  /** The names whose counts are being stored. */
  const counting = new Map<string, number>();
  const regionReadAtMs = new Map<string, number>();

  function ageMs({ readAtMs }: CachedRead): number {
    return clock.monotonicMs() - readAtMs;
  }

  function read(bucket: string): Promise<CachedRead> {
    const running = reading.get(bucket);
    if (running !== undefined) return running;
    const promise = reads
      .add(async () => {
        const readAtMs = clock.monotonicMs();
        return { record: await readRecord(state, refs.bucket(bucket)), readAtMs };
      })
      .then((known) => {
        // if the name was forgotten in the meantime, this read may be older than the change
        if (reading.get(bucket) === promise) cache.set(bucket, known);
        return known;
      })
      .finally(() => {
        if (reading.get(bucket) === promise) reading.delete(bucket);
      });
    reading.set(bucket, promise);
    return promise;
  }

  /** This process has just changed the record. */
  function forget(bucket: string): void {
    cache.delete(bucket);
    reading.delete(bucket);
  }

  /** `sinceMs`: "not connected" counts only if its read was sent at or after this moment of the monotonic clock. */
  async function find(bucket: string, sinceMs: number): Promise<BucketRecord | undefined> {
    for (;;) {
      let known = cache.get(bucket);
      if (known !== undefined && mayDecide(known, sinceMs)) return known.record;
      // if a running read began too early, another follows
      const restMs = known === undefined || known.record !== undefined ? 0 : ABSENT_READ_MS - ageMs(known);
      if (restMs > 0) {
        await clock.sleep(restMs);
        continue;
      }
      known = await read(bucket);
      if (mayDecide(known, sinceMs)) return known.record;
      if (known.record !== undefined)
        throw new FaultError('index.unreachable', 'reading the bucket record took so long that it may be outdated');
    }
  }

  function mayDecide(known: CachedRead, sinceMs: number): boolean {
    return known.record === undefined ? known.readAtMs >= sinceMs : ageMs(known) <= BUCKET_RECORD_AGE_MAX_MS;
  }

  /** A version id on any event proves that versioning was enabled once, whatever was read before. */
  async function flipToVersioned(bucket: string): Promise<BucketRecord | undefined> {
    const versioning = { status: 'enabled' as const, observedAtMs: clock.nowMs() };
    await updateRecord(state, refs.bucket(bucket), (current) =>
      current?.versioning.status === 'never' ? { ...current, versioning } : undefined,
    );
    forget(bucket);
    return find(bucket, clock.monotonicMs());
  }

  return {
    peek(record) {
      const known = cache.get(record.bucket);
      if (known?.record === undefined || ageMs(known) > BUCKET_RECORD_AGE_MAX_MS) return undefined;
      // if the refresh fails, the lookup that has to wait for the record will throw
      if (ageMs(known) > REFRESH_AGE_MS) read(record.bucket).catch(() => undefined);
      return contradictsVersioning(record, known.record) ? undefined : known.record;
    },
    async lookup(record, { receivedAtMonotonicMs }) {
      const known = await find(record.bucket, receivedAtMonotonicMs);
      return known !== undefined && contradictsVersioning(record, known) ? flipToVersioned(record.bucket) : known;
    },
    countUnconnected(bucket, sentAtMs) {
      const pending = counting.get(bucket) ?? 0;
      if (pending === 0 && counting.size >= COUNTING_MAX) return reportUnconnectedEvents(telemetry, bucket, 1);
      counting.set(bucket, pending + 1);
      // never before the event by SQS's clock: this machine's may be slow
      reportUnconnected(bucket, Math.max(clock.nowMs(), sentAtMs))
        .catch((error: unknown) => telemetry.requestFailed('count the events of an unconnected bucket', error))
        .finally(() => {
          const left = (counting.get(bucket) ?? 1) - 1;
          if (left === 0) counting.delete(bucket);
          else counting.set(bucket, left);
        });
    },
    readRegionAgain(bucket) {
      const nowMs = clock.monotonicMs();
      if (nowMs - (regionReadAtMs.get(bucket) ?? -Infinity) < REGION_READ_MS) return;
      regionReadAtMs.set(bucket, nowMs);
      connect.refresh(bucket).then(
        () => forget(bucket),
        // the bucket is still missing, as its circuit shows
        () => undefined,
      );
    },
  };
}

function contradictsVersioning(record: ChangeRecord, bucket: BucketRecord): boolean {
  return record.versionId !== undefined && bucket.versioning.status === 'never';
}
