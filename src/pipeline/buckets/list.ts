/** Looking at the buckets that are connected, and at the names that are not. */
import { isBucketName, unconnectedSchema, bucketRecordSchema, type BucketRecord } from '../../domain/bucket.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Control } from '../control/control.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords, readRecord, refs } from '../records/stored.ts';

/** Creates the list, in name order. */
export function createListBuckets({ state }: { readonly state: StateStore }): Control['buckets']['list'] {
  return async function listBuckets(signal) {
    signal?.throwIfAborted();
    const [connected, unconnected] = await Promise.all([
      listAllRecords(state, 'bucket', bucketRecordSchema),
      listAllRecords(state, 'unconnected', unconnectedSchema),
    ]);
    return { connected, unconnected };
  };
}

/** The record of a connected bucket. Throws `bucket.not-connected`. */
export async function requireBucket(state: StateStore, bucket: string, signal?: AbortSignal): Promise<BucketRecord> {
  // what is no name at all might not even be an id
  const record = isBucketName(bucket) ? await readRecord(state, refs.bucket(bucket), signal) : undefined;
  if (record === undefined) throw notConnected(bucket);
  return record;
}

/** The refusal of a request about a bucket that is not connected. */
export function notConnected(bucket: string): RequestError {
  return new RequestError('bucket.not-connected', `${bucket.slice(0, 255)} is not connected: connect it with \`tally bucket add\``);
}
