/** Lists the connected buckets and the names that are not connected. */
import type { BucketsRequest } from '../contract/buckets.ts';
import type { Readable } from '../../store/readable.rules.ts';
import { unconnectedSchema, bucketRecordSchema, type BucketRecord, type UnconnectedRecord } from '../../records/bucket.ts';
import { compareKeys } from '../../base/key-order.ts';
import { decodeCursor } from '../../base/cursor.ts';
import type { BucketStatus } from '../../records/bucket-status.ts';
import type { StateEntry, StateStore } from '../../store/store.ts';
import { readPage, listAllRecords, refs } from '../../store/stored.ts';
import type { BucketStatuses } from '../../observing/bucket-statuses.ts';

/** A page of a person who reads 300 buckets takes ten round trips. */
const AT_ONCE = 32;

interface BucketList {
  readonly connected: readonly { readonly record: BucketRecord; readonly status: BucketStatus }[];
  readonly unconnected: readonly UnconnectedRecord[];
  readonly next?: string;
}

/**
 * Lists one page of the connected buckets of which the caller may read some, and with the first page of a caller who may read
 * everything the names that are not connected, which are bounded. Both are in the order of their names. A record that this version
 * cannot read is left out.
 */
export async function listBuckets(
  { state, statuses }: { readonly state: StateStore; readonly statuses: Pick<BucketStatuses, 'ofAll'> },
  { limit, cursor }: BucketsRequest,
  readable: Readable,
  signal?: AbortSignal,
): Promise<BucketList> {
  signal?.throwIfAborted();
  const [{ items, ...more }, unconnected] = await Promise.all([
    readPage<StateEntry, readonly [string]>({
      limit,
      after: cursor === undefined ? undefined : [decodeCursor(cursor, 1)[0] ?? ''],
      fetch: (count, [after] = ['']) => entriesOf(state, readable, { limit: count, after }, signal),
      positionOf: ({ id }) => [id],
    }),
    cursor === undefined && readable === 'everything' ? listAllRecords(state, 'unconnected', unconnectedSchema) : [],
  ]);
  const records = items.flatMap(({ record }) => bucketRecordSchema.safeParse(record).data ?? []);
  const found = await statuses.ofAll(records, readable);
  const connected = records.flatMap((record, at) => (found[at] === undefined ? [] : [{ record, status: found[at] }]));
  return { connected, unconnected, ...more };
}

/** The entries after an id. Of a caller who may read some buckets these alone are read, so that a page tells nothing about the others. */
async function entriesOf(
  state: StateStore,
  readable: Readable,
  { limit, after }: { readonly limit: number; readonly after: string },
  signal: AbortSignal | undefined,
): Promise<readonly StateEntry[]> {
  if (readable === 'everything') return state.list('bucket', { limit, ...(after !== '' && { after }) }, signal);
  const ids = [...new Set(readable.map(({ bucket }) => refs.bucket(bucket).id))].filter((id) => compareKeys(id, after) > 0);
  return firstEntries(state, ids, limit, signal);
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
