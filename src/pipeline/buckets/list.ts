/** Lists the connected buckets and the names that are not connected. */
import type { BucketsRequest } from '../../api/buckets.ts';
import { readsSome, type Readable } from '../../domain/access/readable.ts';
import { isBucketName } from '../../domain/bucket-name.ts';
import { unconnectedSchema, bucketRecordSchema, type BucketRecord, type UnconnectedRecord } from '../../domain/bucket.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { BucketStatus } from '../../domain/bucket-status.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import { readPage } from '../records/pages.ts';
import type { BucketStatuses } from './statuses.ts';
import { listAllRecords, readRecord, refs } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

/** A page of a person who reads 300 buckets takes ten round trips. */
const AT_ONCE = 32;

interface BucketList {
  readonly connected: readonly { readonly record: BucketRecord; readonly status: BucketStatus }[];
  readonly unconnected: readonly UnconnectedRecord[];
  readonly next?: string;
}

/**
 * Creates the list: one page of the connected buckets of which the caller may read some, and with the first page of a caller who
 * may read everything the names that are not connected, which are bounded. Both are in the order of their names. A record that
 * this version cannot read is left out.
 */
export function createListBuckets({
  state,
  statuses,
}: {
  readonly state: StateStore;
  readonly statuses: Pick<BucketStatuses, 'ofAll'>;
}): (request: BucketsRequest, readable: Readable, signal?: AbortSignal) => Promise<BucketList> {
  /** The entries after an id. Of a caller who may read some buckets these alone are read, so that a page tells nothing about the others. */
  async function entriesOf(readable: Readable, { limit, after }: { limit: number; after: string }, signal: AbortSignal | undefined) {
    if (readable === 'everything') return state.list('bucket', { limit, ...(after !== '' && { after }) }, signal);
    const ids = [...new Set(readable.map(({ bucket }) => refs.bucket(bucket).id))].filter((id) => compareKeys(id, after) > 0);
    return firstEntries(state, ids, limit, signal);
  }

  return async function listPage({ limit, cursor }, readable, signal) {
    signal?.throwIfAborted();
    const [{ items, ...more }, unconnected] = await Promise.all([
      readPage<StateEntry, readonly [string]>({
        limit,
        after: cursor === undefined ? undefined : [decodeCursor(cursor, 1)[0] ?? ''],
        fetch: (count, [after] = ['']) => entriesOf(readable, { limit: count, after }, signal),
        positionOf: ({ id }) => [id],
      }),
      cursor === undefined && readable === 'everything' ? listAllRecords(state, 'unconnected', unconnectedSchema) : [],
    ]);
    const records = items.flatMap(({ record }) => bucketRecordSchema.safeParse(record).data ?? []);
    const found = await statuses.ofAll(records, readable);
    const connected = records.flatMap((record, at) => (found[at] === undefined ? [] : [{ record, status: found[at] }]));
    return { connected, unconnected, ...more };
  };
}

/** The first entries of those that are stored, read by their ids. Throws the store's fault. */
export async function firstEntries(
  state: Pick<StateStore, 'get'>,
  ids: readonly string[],
  limit: number,
  signal?: AbortSignal,
): Promise<readonly StateEntry[]> {
  const found: StateEntry[] = [];
  for (let from = 0; from < ids.length && found.length < limit; from += AT_ONCE) {
    const entries = await Promise.all(ids.slice(from, from + AT_ONCE).map((id) => state.get(id, signal)));
    found.push(...entries.filter((entry) => entry !== undefined));
  }
  return found.slice(0, limit);
}

/** Returns the record of a connected bucket. Throws `bucket.not-connected`. */
export async function requireBucket(state: StateStore, bucket: string, signal?: AbortSignal): Promise<BucketRecord> {
  // text that is not a bucket name might not be a valid id either
  const record = isBucketName(bucket) ? await readRecord(state, refs.bucket(bucket), signal) : undefined;
  if (record === undefined) throw notConnected(bucket);
  return record;
}

/** The same for a caller who may read some of the bucket. For anyone else it does not exist. */
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
 * Lists all bucket records in id order, for the metrics and the sweeps, which look at every bucket again and again. What decides about
 * a bucket reads its record by id. Throws the store's fault.
 */
export type AllBuckets = () => Promise<readonly BucketRecord[]>;

/** Those who ask within this time share one list: less than the 15 s of those who ask most often, so that each of their reads is a newer one. */
const SHARED_MS = 14_000;

/** Lists all bucket records now. */
export function listBuckets(state: StateStore): ReturnType<AllBuckets> {
  return listAllRecords(state, 'bucket', bucketRecordSchema);
}

/** Creates the function, once for the process. */
export function createAllBuckets({ state, clock }: WithPorts<'state' | 'clock'>): AllBuckets {
  let shared: { readonly sinceMs: number; readonly list: ReturnType<AllBuckets> } | undefined;
  return function allBuckets() {
    const nowMs = clock.monotonicMs();
    if (shared !== undefined && nowMs - shared.sinceMs < SHARED_MS) return shared.list;
    const list = listBuckets(state);
    const own = { sinceMs: nowMs, list };
    shared = own;
    list.catch(() => {
      if (shared === own) shared = undefined;
    });
    return list;
  };
}
