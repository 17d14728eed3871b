/** Finds the bucket record for a change record: the bucket is connected, is connected now (auto-connect), or is counted as unconnected. */
import PQueue from 'p-queue';
import { isSubscribedAgain, type BucketRecord, type BucketSource } from '../../domain/bucket.ts';
import { FaultError } from '../../domain/fault.ts';
import type { ChangeRecord, Dialect } from '../../domain/events/record.ts';
import type { BucketRecordCache } from './record-cache.ts';
import type { ConnectBucket } from './connect.ts';
import type { GapReports, ReportUnconnected } from '../gaps/reports.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';

/** How long a refusal to connect a name is used, the same as "not connected" is cached: a flood of events of one name sends few requests to S3. */
const REFUSAL_AGE_MAX_MS = 5_000;
/** How often the region of a bucket that S3 does not find is read again. */
const REGION_READ_MS = 60_000;
/** The memory is bounded, since names may be anything that is sent to the queue. */
const REFUSALS_MAX = 1_000;

export interface BucketAccess {
  /** Returns the record if it is cached and the event changes nothing about it. `sentAtMs`: when its message was sent. */
  peek(record: ChangeRecord, sentAtMs: number): BucketRecord | undefined;
  /** Returns the record, or undefined if the bucket is not connected; the name is stored as unconnected then. */
  lookup(record: ChangeRecord, sentAtMs: number): Promise<BucketRecord | undefined>;
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
  autoConnectMax,
}: AccessDependencies): BucketAccess {
  /** Connects one bucket at a time; otherwise several would pass the maximum together. */
  const connecting = new PQueue({ concurrency: 1 });
  const refusedAtMs = new Map<string, number>();
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

  async function autoConnect({ bucket, dialect }: ChangeRecord): Promise<BucketRecord | undefined> {
    if (autoConnectMax === 0) return undefined;
    return connecting.add(async () => {
      // an earlier task in the queue may have connected the bucket, or may have been refused
      const known = await records.lookup(bucket);
      if (known !== undefined || isRefused(bucket)) return known;
      const record = await connectNow(bucket, bucketSourceOf(dialect));
      if (record === undefined) refuse(bucket);
      else records.forget(bucket);
      return record;
    });
  }

  function isRefused(bucket: string): boolean {
    const atMs = refusedAtMs.get(bucket);
    return atMs !== undefined && clock.monotonicMs() - atMs <= REFUSAL_AGE_MAX_MS;
  }

  function refuse(bucket: string): void {
    if (refusedAtMs.size >= REFUSALS_MAX) refusedAtMs.clear();
    refusedAtMs.set(bucket, clock.monotonicMs());
  }

  async function connectNow(bucket: string, source: BucketSource): Promise<BucketRecord | undefined> {
    try {
      return await connect.autoConnect(bucket, source, autoConnectMax);
    } catch (error) {
      // a name without a bucket is an unconnected name, not a fault that will pass
      if (error instanceof FaultError && error.code === 'bucket.missing') return undefined;
      throw error;
    }
  }

  return {
    peek(record, sentAtMs) {
      const bucket = records.peek(record.bucket);
      if (bucket === undefined || contradictsVersioning(record, bucket)) return undefined;
      return isSubscribedAgain(bucket, { sentAtMs, eventTimeMs: record.eventTimeMs }) ? undefined : bucket;
    },
    async lookup(record, sentAtMs) {
      const known = await records.lookup(record.bucket);
      if (known !== undefined) return withEvent(known, record, sentAtMs);
      const connected = await autoConnect(record);
      // never before the event by SQS's clock: this machine's may be slow
      if (connected === undefined) await reportUnconnected(record.bucket, Math.max(clock.nowMs(), sentAtMs));
      return connected;
    },
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

/** The source with which a bucket is connected whose events have this dialect. Events through a topic look like S3's notification. */
function bucketSourceOf(dialect: Dialect): BucketSource {
  switch (dialect) {
    case 'native':
      return 'notification';
    case 'eventbridge':
      return 'eventbridge';
    case 'trail':
    case 'synthetic':
      return 'routed';
  }
}
