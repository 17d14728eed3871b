/** The connected buckets: reads their records, one that must exist or all, and says how far each one's index can be relied on. */
import { readsSome, type Readable, touches } from '../store/readable.rules.ts';
import { isBucketName } from '../base/bucket-name.ts';
import { bucketRecordSchema, type BucketRecord } from '../records/bucket.ts';
import { RequestError } from '../base/request-error.ts';
import type { StateStore, WithPorts } from '../store/store.ts';
import { listAllRecords, readRecord, refs } from '../store/stored.ts';
import { bucketStatus, statusForReaders, type BucketStatus } from '../records/bucket-status.ts';
import type { DirtyMark } from '../records/dirty.ts';
import type { Trouble } from '../records/receiving.ts';
import { allGaps, gapsOf } from './gaps.ts';
import { troublesOf, type Processes } from './processes.ts';

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

interface Known {
  readonly troubles: readonly Trouble[];
  readonly gaps: readonly DirtyMark[];
  readonly nowMs: number;
  readonly compareIntervalMs: number;
}

/** The status of each bucket, in the order of the records, from what was read before. */
export function statusesOf(records: readonly BucketRecord[], { troubles, gaps, nowMs, compareIntervalMs }: Known): readonly BucketStatus[] {
  const byBucket = Map.groupBy(gaps, ({ bucket }) => bucket);
  return records.map((record) =>
    bucketStatus({
      record,
      ...troublesOf(troubles, record, nowMs),
      gaps: byBucket.get(record.bucket) ?? [],
      nowMs,
      compareIntervalMs,
    }),
  );
}

/** The status as shown to a caller who may read this. */
export function shownTo(readable: Readable, status: BucketStatus): BucketStatus {
  return readable === 'everything' ? status : statusForReaders(status);
}

export interface BucketStatuses {
  /** Returns the bucket's status, judged only by the parts that the caller may read. Throws the store's fault. */
  of(record: BucketRecord, readable: Readable, signal?: AbortSignal): Promise<BucketStatus>;
  /** Returns the status of each, in the order of the records. Throws the store's fault. */
  ofAll(records: readonly BucketRecord[], readable: Readable): Promise<readonly BucketStatus[]>;
}

interface StatusDependencies extends WithPorts<'state' | 'clock'> {
  readonly processes: Pick<Processes, 'troubles'>;
  readonly compareIntervalMs: number;
}

export function createBucketStatuses({ state, clock, processes, compareIntervalMs }: StatusDependencies): BucketStatuses {
  const known = async (stored: Promise<readonly DirtyMark[]>, readable: Readable): Promise<Known> => {
    const nowMs = clock.nowMs();
    const gaps = (await stored).filter((gap) => touches(readable, gap));
    return { gaps, troubles: await processes.troubles(), nowMs, compareIntervalMs };
  };
  return {
    async of(record, readable, signal) {
      const { gaps, troubles, ...rest } = await known(gapsOf(state, record.bucket, signal), readable);
      return shownTo(readable, bucketStatus({ record, gaps, ...troublesOf(troubles, record, rest.nowMs), ...rest }));
    },
    ofAll: async (records, readable) =>
      statusesOf(records, await known(allGaps(state), readable)).map((status) => shownTo(readable, status)),
  };
}
