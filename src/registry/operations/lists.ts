/** What is listed from stored records: buckets, gaps, and the events of the last day. */
import type { BucketsRequest } from '../contract/buckets.ts';
import type { Events } from '../contract/events.ts';
import { timeOf } from '../contract/fields.ts';
import type { GapsRequest } from '../contract/gaps.ts';
import type { Readable } from '../../store/readable.rules.ts';
import { unconnectedSchema, bucketRecordSchema, type BucketRecord, type UnconnectedRecord } from '../../records/bucket.ts';
import { compareKeys } from '../../base/key-order.ts';
import { decodeCursor } from '../../base/cursor.ts';
import { defined } from '../../base/defined.ts';
import type { BucketStatus } from '../../records/bucket-status.ts';
import { keptOf, markHistorySchema, markSchema, type ListedGap } from '../../records/dirty.ts';
import { DAY_MS, eventHourSchema, hourOf, percentileMs, STEP_MS, stepsOf, type EventHour } from '../../records/event-hours.ts';
import type { StateEntry, StateStore, WithPorts } from '../../store/store.ts';
import {
  eventHourIdOf,
  gapHistoryIdsOf,
  gapIdsOf,
  listAllRecords,
  pagesOf,
  parseEntry,
  readPage,
  refs,
  type Page,
} from '../../store/stored.ts';
import type { BucketStatuses } from '../../observing/buckets.ts';

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
  const found: StateEntry[] = [];
  for (let from = 0; from < ids.length && found.length < limit; from += AT_ONCE) {
    const entries = await Promise.all(ids.slice(from, from + AT_ONCE).map((id) => state.get(id, signal)));
    found.push(...entries.filter((entry) => entry !== undefined));
  }
  return found.slice(0, limit);
}

/** Lists gaps: those that are open by bucket and prefix; those that were closed by bucket and time. */
export async function listGaps(
  { state, clock }: WithPorts<'state' | 'clock'>,
  { limit, cursor, bucket, state: wanted, closed_after: closedAfter }: GapsRequest,
  signal?: AbortSignal,
): Promise<Page<ListedGap>> {
  const fromMs = closedAfter === undefined ? 0 : Date.parse(closedAfter);
  const prefix = gapIdsOf(bucket);
  async function open(count: number, [position = '']: readonly string[] = []): Promise<readonly ListedGap[]> {
    const found: ListedGap[] = [];
    for await (const page of pagesOf(state, 'gap', { prefix, after: position > prefix ? position : prefix, signal })) {
      found.push(...page.map((entry) => parseEntry(entry, markSchema)));
      if (found.length >= count) break;
    }
    return found.slice(0, count);
  }
  async function closed(count: number, [position = '', after = '0']: readonly string[] = []): Promise<readonly ListedGap[]> {
    const found: ListedGap[] = [];
    for await (const page of pagesOf(state, 'gap-history', { prefix: gapHistoryIdsOf(bucket), limit: 10, signal })) {
      const left = page.filter(({ id }) => position === '' || id >= refs.gapHistory(position).id);
      for (const history of left.map((entry) => parseEntry(entry, markHistorySchema))) {
        const afterMs = Math.max(fromMs, history.bucket === position ? Number(after) : 0);
        const kept = keptOf(history, clock.nowMs()).filter(({ closedAtMs }) => closedAtMs > afterMs);
        found.push(...kept.map((each) => ({ ...each, bucket: history.bucket })));
      }
      if (found.length >= count) break;
    }
    return found.slice(0, count);
  }
  const positionOf = (gap: ListedGap): readonly string[] => ('closedAtMs' in gap ? [gap.bucket, String(gap.closedAtMs)] : [gap.id]);
  return wanted === 'closed'
    ? readPage({ limit, after: decodeCursor(cursor, 2), fetch: closed, positionOf })
    : readPage({ limit, after: decodeCursor(cursor, 1), fetch: open, positionOf });
}

/** Records of one request, each of at most a few kilobytes. */
const PAGE = 200;

/** The events and the lag of the last 24 hours. A record that cannot be read is left out. Throws the store's fault. */
export async function getEvents({ state, clock }: WithPorts<'state' | 'clock'>, signal?: AbortSignal): Promise<Events> {
  const toMs = clock.nowMs();
  const fromMs = Math.floor((toMs - DAY_MS) / STEP_MS) * STEP_MS;
  const records: EventHour[] = [];
  // ids are in the order of their hours, and the id of an hour alone is before those of its processes
  for await (const entries of pagesOf(state, 'event-hour', { after: eventHourIdOf(hourOf(fromMs)), limit: PAGE, signal }))
    records.push(...entries.flatMap(({ record }) => eventHourSchema.safeParse(record).data ?? []));
  return {
    from: timeOf(fromMs),
    to: timeOf(toMs),
    step_s: STEP_MS / 1_000,
    steps: stepsOf(records, fromMs).map(({ atMs, events, lags }) => ({
      at: timeOf(atMs),
      events,
      ...defined({ lag_p50_ms: percentileMs(lags, 0.5), lag_p95_ms: percentileMs(lags, 0.95) }),
    })),
  };
}
