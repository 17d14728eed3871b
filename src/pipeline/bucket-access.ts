/** From a record's bucket name to the bucket record it is decided by: connected, auto-connected, or counted as unconnected. */
import type { BucketRecord } from '../domain/bucket.ts';
import { bucketRecordSchema } from '../domain/bucket.ts';
import { FaultError } from '../domain/fault.ts';
import type { ChangeRecord } from '../domain/record.ts';
import type { BucketRegistry } from './bucket-registry.ts';
import type { ConnectBucket } from './connect-bucket.ts';
import type { UnconnectedReports } from './gap-records.ts';
import type { Clock, StateStore } from './ports.ts';
import { bucketRecordId, updateRecord } from './state-records.ts';

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
  /** A version id on any event proves that versioning was enabled once, whatever was read before. */
  async function flipToVersioned(bucket: BucketRecord): Promise<BucketRecord | undefined> {
    const versioning = { status: 'enabled' as const, observedAtMs: clock.nowMs() };
    await updateRecord(state, { id: bucketRecordId(bucket.bucket), kind: 'bucket', schema: bucketRecordSchema }, (current) =>
      current?.versioning.status === 'never' ? { ...current, versioning } : undefined,
    );
    registry.forget(bucket.bucket);
    return registry.lookup(bucket.bucket);
  }

  async function autoConnect(bucket: string): Promise<BucketRecord | undefined> {
    if (autoConnectMax === 0) return undefined;
    try {
      const record = await connect.autoConnect(bucket, autoConnectMax);
      registry.forget(bucket);
      return record;
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
      const connected = await autoConnect(record.bucket);
      if (connected === undefined) await unconnected.report(record.bucket, clock.nowMs());
      return connected;
    },
  };
}

function contradictsVersioning(record: ChangeRecord, bucket: BucketRecord): boolean {
  return record.versionId !== undefined && bucket.versioning.status === 'never';
}
