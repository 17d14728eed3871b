/** Reads the connected buckets' records: one that must exist, or all. */
import { readsSome, type Readable } from '../store/readable.rules.ts';
import { isBucketName } from '../base/bucket-name.ts';
import { bucketRecordSchema, type BucketRecord } from '../records/bucket.ts';
import { RequestError } from '../base/request-error.ts';
import type { StateStore } from '../store/store.ts';
import { listAllRecords, readRecord, refs } from '../store/stored.ts';

/** Returns the record of a connected bucket. Throws `bucket.not-connected`. */
export async function requireBucket(state: StateStore, bucket: string, signal?: AbortSignal): Promise<BucketRecord> {
  // text that is not a bucket name might not be a valid id either
  const record = isBucketName(bucket) ? await readRecord(state, refs.bucket(bucket), signal) : undefined;
  if (record === undefined) throw notConnected(bucket);
  return record;
}

/** The same, but to a caller who may read nothing of the bucket it does not exist. */
export async function requireReadable(
  state: StateStore,
  { bucket, readable }: { readonly bucket: string; readonly readable: Readable },
  signal?: AbortSignal,
): Promise<BucketRecord> {
  if (!readsSome(readable, bucket)) throw notConnected(bucket);
  return requireBucket(state, bucket, signal);
}

/** The error for a request about a bucket that is not connected. */
export function notConnected(bucket: string): RequestError {
  return new RequestError(
    'bucket.not-connected',
    `${bucket.slice(0, 255)} is not connected; \`tally bucket list\` shows the buckets that are`,
  );
}

/**
 * Lists all bucket records in id order, for metrics and sweeps, which look at every bucket again and again. Decisions about one bucket
 * read its record by id instead. Throws the store's fault.
 */
export function listBuckets(state: StateStore): Promise<readonly BucketRecord[]> {
  return listAllRecords(state, 'bucket', bucketRecordSchema);
}
