/** Finds the bucket record for a change record: the bucket is connected, is connected now (auto-connect), or is counted as unconnected. */
import { isSubscribedAgain, type BucketRecord } from '../../domain/bucket.ts';
import { faultOf } from '../../domain/fault.ts';
import type { ChangeRecord } from '../../domain/events/record.ts';
import { createConnectAtEvent, type Found, type Waits } from './connect-at-event.ts';
import type { BucketRecordCache } from './record-cache.ts';
import type { ConnectBucket } from './connect.ts';
import { reportUnconnectedEvents, type GapReports, type ReportUnconnected } from '../gaps/reports.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { refs, updateRecord } from '../records/stored.ts';

/** How often the region of a bucket that S3 does not find is read again. */
const REGION_READ_MS = 60_000;
/** How many names are counted at the same time. Above it the metric counts alone: names may be anything that is sent to the queue. */
const COUNTING_MAX = 1_000;

/** The message of a record, as far as it matters for its bucket. */
export interface Arrival extends Waits {
  /** When the message was sent, by SQS's clock. */
  readonly sentAtMs: number;
  /** When this process received it, by the monotonic clock. */
  readonly receivedAtMonotonicMs: number;
}

export interface BucketAccess {
  /** Returns the record if it is cached and the event changes nothing about it. `sentAtMs`: when its message was sent. */
  peek(record: ChangeRecord, sentAtMs: number): BucketRecord | undefined;
  /**
   * Returns the record; or that the bucket is not connected, and then the record may be dropped: its change lies before every
   * re-index that a later connection begins with; or why it cannot be connected now. Throws the store's faults.
   */
  lookup(record: ChangeRecord, arrival: Arrival): Promise<Found>;
  /** Counts a record that is dropped because its bucket is not connected. The count is stored soon, and nothing waits for it. */
  countUnconnected(bucket: string, sentAtMs: number): void;
  /** Reads region and versioning again in the background, at most once a minute for each bucket: a bucket may have been created again in another region. */
  readRegionAgain(bucket: string): void;
}

interface AccessDependencies {
  readonly records: BucketRecordCache;
  readonly state: StateStore;
  readonly clock: Clock;
  readonly connect: ConnectBucket;
  readonly gaps: Pick<GapReports, 'report'>;
  readonly reportUnconnected: ReportUnconnected;
  readonly telemetry: Telemetry;
  /** How many buckets may be connected at their first event; 0: none. */
  readonly autoConnectMax: number;
}

/** Creates the access. */
export function createBucketAccess({
  records,
  state,
  clock,
  connect,
  gaps,
  reportUnconnected,
  telemetry,
  autoConnectMax,
}: AccessDependencies): BucketAccess {
  const connectAtEvent = createConnectAtEvent({
    connect,
    lookup: (bucket) => records.lookup(bucket),
    connected: (bucket) => records.forget(bucket),
    clock,
    telemetry,
    max: autoConnectMax,
  });
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

  /** The topic delivers again: what it did not deliver in between is a gap, which is stored before the end is. */
  async function endUnsubscription({ bucket, unsubscribed }: BucketRecord, sentAtMs: number): Promise<BucketRecord | undefined> {
    const reason = 'the bucket queue had been unsubscribed from the topic of the bucket';
    await gaps.report({ bucket, kind: 'loss', reason, seenAtMs: Math.max(clock.nowMs(), sentAtMs) });
    await updateRecord(state, refs.bucket(bucket), (current) => {
      if (current === undefined || current.unsubscribed?.atMs !== unsubscribed?.atMs) return current;
      const { unsubscribed: _, ...rest } = current;
      return rest;
    });
    records.forget(bucket);
    return records.lookup(bucket);
  }

  /** The record with what the event changes about it. */
  async function withEvent(known: BucketRecord, record: ChangeRecord, sentAtMs: number): Promise<BucketRecord | undefined> {
    const bucket = contradictsVersioning(record, known) ? await flipToVersioned(known) : known;
    const isEnd = bucket !== undefined && isSubscribedAgain(bucket, { sentAtMs, eventTimeMs: record.eventTimeMs });
    return isEnd ? endUnsubscription(bucket, sentAtMs) : bucket;
  }

  function countUnconnected(bucket: string, sentAtMs: number): void {
    const pending = counting.get(bucket) ?? 0;
    if (pending === 0 && counting.size >= COUNTING_MAX) return reportUnconnectedEvents(telemetry, bucket, 1);
    counting.set(bucket, pending + 1);
    // never before the event by SQS's clock: this machine's may be slow
    reportUnconnected(bucket, Math.max(clock.nowMs(), sentAtMs))
      .catch((error: unknown) => {
        const { code, reason } = faultOf(error);
        telemetry.requestFailed('count events of a bucket that is not connected', code, reason);
      })
      .finally(() => {
        const left = (counting.get(bucket) ?? 1) - 1;
        if (left === 0) counting.delete(bucket);
        else counting.set(bucket, left);
      });
  }

  return {
    peek(record, sentAtMs) {
      const bucket = records.peek(record.bucket);
      if (bucket === undefined || contradictsVersioning(record, bucket)) return undefined;
      return isSubscribedAgain(bucket, { sentAtMs, eventTimeMs: record.eventTimeMs }) ? undefined : bucket;
    },
    async lookup(record, arrival) {
      // "not connected" counts only if it was read after the event came: then a connection, and its first re-index, come after the change
      const known = await records.lookup(record.bucket, { absentSinceMs: arrival.receivedAtMonotonicMs });
      if (known === undefined) return connectAtEvent(record, arrival);
      const bucket = await withEvent(known, record, arrival.sentAtMs);
      return bucket === undefined ? { kind: 'unconnected' } : { kind: 'connected', bucket };
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
