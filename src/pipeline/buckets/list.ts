/** Lists the connected buckets and the names that are not connected. */
import { isBucketName } from '../../domain/bucket-name.ts';
import { unconnectedSchema, bucketRecordSchema, type BucketRecord, type UnconnectedRecord } from '../../domain/bucket.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { BucketStatus } from '../../domain/bucket-status.ts';
import type { StateStore } from '../ports/state.ts';
import type { BucketStatuses } from './statuses.ts';
import { listAllRecords, readRecord, refs } from '../records/stored.ts';

interface BucketList {
  readonly connected: readonly { readonly record: BucketRecord; readonly status: BucketStatus }[];
  readonly unconnected: readonly UnconnectedRecord[];
}

/** Creates the list. Both parts are in the order of their names. */
export function createListBuckets({
  state,
  statuses,
}: {
  readonly state: StateStore;
  readonly statuses: Pick<BucketStatuses, 'ofAll'>;
}): (signal?: AbortSignal) => Promise<BucketList> {
  return async function listBuckets(signal) {
    signal?.throwIfAborted();
    const [records, unconnected] = await Promise.all([
      listAllRecords(state, 'bucket', bucketRecordSchema),
      listAllRecords(state, 'unconnected', unconnectedSchema),
    ]);
    const found = await statuses.ofAll(records);
    return { connected: records.flatMap((record, at) => (found[at] === undefined ? [] : [{ record, status: found[at] }])), unconnected };
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
