/** Lists the connected buckets and the names that are not connected. */
import { isBucketName } from '../../domain/bucket-name.ts';
import { unconnectedSchema, bucketRecordSchema, type BucketRecord, type UnconnectedRecord } from '../../domain/bucket.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { CircuitRecord } from '../../domain/circuit-record.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { circuitOfBucket, listCircuits } from './circuit-records.ts';
import { listAllRecords, readRecord, refs } from '../records/stored.ts';

interface BucketList {
  /** With the open circuit that a bucket waits for. */
  readonly connected: readonly { readonly record: BucketRecord; readonly waitsFor: CircuitRecord | undefined }[];
  readonly unconnected: readonly UnconnectedRecord[];
}

/** Creates the list. Both parts are in the order of their names. */
export function createListBuckets({
  state,
  clock,
}: {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
}): (signal?: AbortSignal) => Promise<BucketList> {
  return async function listBuckets(signal) {
    signal?.throwIfAborted();
    const [connected, unconnected, open] = await Promise.all([
      listAllRecords(state, 'bucket', bucketRecordSchema),
      listAllRecords(state, 'unconnected', unconnectedSchema),
      listCircuits(state, clock.nowMs()),
    ]);
    return { connected: connected.map((record) => ({ record, waitsFor: circuitOfBucket(open, record) })), unconnected };
  };
}

/** Returns the record of a connected bucket. Throws `bucket.not-connected`. */
export async function requireBucket(state: StateStore, bucket: string, signal?: AbortSignal): Promise<BucketRecord> {
  // text that is not a bucket name might not be a valid id either
  const record = isBucketName(bucket) ? await readRecord(state, refs.bucket(bucket), signal) : undefined;
  if (record === undefined) throw notConnected(bucket);
  return record;
}

/** The error for a request about a bucket that is not connected. */
export function notConnected(bucket: string): RequestError {
  return new RequestError(
    'bucket.not-connected',
    `${bucket.slice(0, 255)} is not connected; \`tally bucket list\` shows the buckets that are`,
  );
}
