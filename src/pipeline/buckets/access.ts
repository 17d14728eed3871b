/** From a record's bucket name to the bucket record it is decided by: connected, auto-connected, or counted as unconnected. */
import PQueue from 'p-queue';
import type { BucketRecord, BucketSource } from '../../domain/bucket.ts';
import { FaultError } from '../../domain/fault.ts';
import type { ChangeRecord, Dialect } from '../../domain/events/record.ts';
import type { BucketRegistry } from './record-cache.ts';
import type { ConnectBucket } from './connect.ts';
import type { UnconnectedReports } from '../gaps/reports.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';

/** A refusal to connect a name is believed this long, as a "not connected" is: a flood of events of one name asks S3 seldom. */
const REFUSAL_AGE_MAX_MS = 5_000;
/** Names may be anything that is sent to the queue, so the memory for them is bounded. */
const REFUSALS_MAX = 1_000;

export interface BucketAccess {
  /** The record when it can be had without waiting and the event changes nothing about it. */
  peek(record: ChangeRecord): BucketRecord | undefined;
  /** The record, or undefined when the bucket is not connected; then that was stored. */
  lookup(record: ChangeRecord): Promise<BucketRecord | undefined>;
}

interface AccessDependencies {
  readonly registry: BucketRegistry;
  readonly state: StateStore;
  readonly clock: Clock;
  readonly connect: ConnectBucket;
  readonly unconnected: UnconnectedReports;
  /** At most so many buckets are connected at their first event; 0: none. */
  readonly autoConnectMax: number;
}

/** Creates the access. */
export function createBucketAccess({ registry, state, clock, connect, unconnected, autoConnectMax }: AccessDependencies): BucketAccess {
  /** One at a time: otherwise those that are asked for together would pass the maximum together. */
  const connecting = new PQueue({ concurrency: 1 });
  const refusedAtMs = new Map<string, number>();

  /** A version id on any event proves that versioning was enabled once, whatever was read before. */
  async function flipToVersioned(bucket: BucketRecord): Promise<BucketRecord | undefined> {
    const versioning = { status: 'enabled' as const, observedAtMs: clock.nowMs() };
    await updateRecord(state, refs.bucket(bucket.bucket), (current) =>
      current?.versioning.status === 'never' ? { ...current, versioning } : undefined,
    );
    registry.forget(bucket.bucket);
    return registry.lookup(bucket.bucket);
  }

  async function autoConnect({ bucket, dialect }: ChangeRecord): Promise<BucketRecord | undefined> {
    if (autoConnectMax === 0) return undefined;
    return connecting.add(async () => {
      // whoever was first in the queue may have connected it, or been refused
      const known = await registry.lookup(bucket);
      if (known !== undefined || isRefused(bucket)) return known;
      const record = await connectNow(bucket, bucketSourceOf(dialect));
      if (record === undefined) refuse(bucket);
      else registry.forget(bucket);
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
      // a name that no bucket has is an unconnected name, not a fault to wait for
      if (error instanceof FaultError && error.code === 'bucket.missing') return undefined;
      throw error;
    }
  }

  return {
    peek(record) {
      const bucket = registry.peek(record.bucket);
      return bucket !== undefined && contradictsVersioning(record, bucket) ? undefined : bucket;
    },
    async lookup(record) {
      const bucket = await registry.lookup(record.bucket);
      if (bucket !== undefined) return contradictsVersioning(record, bucket) ? flipToVersioned(bucket) : bucket;
      const connected = await autoConnect(record);
      if (connected === undefined) await unconnected.report(record.bucket, clock.nowMs());
      return connected;
    },
  };
}

function contradictsVersioning(record: ChangeRecord, bucket: BucketRecord): boolean {
  return record.versionId !== undefined && bucket.versioning.status === 'never';
}

/** How a bucket whose events are of this dialect is connected; a topic of the user's own cannot be told from S3's notification. */
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
