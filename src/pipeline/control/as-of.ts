/** How far the index of a bucket can be relied on now: shown above the results of a search. */
import { defined } from '../../domain/defined.ts';
import type { z } from 'zod';
import { bucketView } from '../../api/buckets.ts';
import type { asOf } from '../../api/search.ts';
import type { BucketRecord } from '../../domain/bucket.ts';
import { bucketSeverities, bucketStatus } from '../../domain/bucket-status.ts';
import { readsAll, touches, type Readable } from '../../domain/access/readable.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { circuitOfBucket, listCircuits } from '../buckets/circuit-records.ts';
import { requireBucket } from '../buckets/list.ts';
import { shownTo } from '../buckets/statuses.ts';
import { gapsOf } from '../gaps/stored-gaps.ts';

type AsOf = z.output<typeof asOf>;

/** More buckets are not described: that is what fits above a result. */
const BUCKETS_MAX = 8;
const PREFIXES_MAX = 3;

/** Waits are noted once a minute. An older note says nothing about now: since then no event has come from the queue. */
const NOTE_AGE_MAX_MS = 180_000;

/** How far events are behind, by the queue in which they waited longest; undefined: not noticeably. */
function behindMs({ eventQueues = [] }: Pick<BucketRecord, 'eventQueues'>, nowMs: number): number | undefined {
  const waits = eventQueues.flatMap(({ atMs, waitedMs }) => (waitedMs !== undefined && nowMs - atMs <= NOTE_AGE_MAX_MS ? waitedMs : []));
  return waits.length === 0 ? undefined : Math.round(Math.max(...waits));
}

/** Creates the function for the buckets that a search names. */
export function createAsOf({
  state,
  clock,
  compareIntervalMs,
}: {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly compareIntervalMs: number;
}) {
  async function asOfBucket(bucket: string, readable: Readable, signal: AbortSignal | undefined): Promise<AsOf> {
    const nowMs = clock.nowMs();
    const [record, circuits, all] = await Promise.all([
      requireBucket(state, bucket, signal),
      listCircuits(state, nowMs),
      gapsOf(state, bucket, signal),
    ]);
    const gaps = all.filter((gap) => touches(readable, gap));
    const waitsFor = circuitOfBucket(circuits, record);
    const { status, last_event_at, last_compared_at } = bucketView(
      record,
      shownTo(readable, bucketStatus({ record, waitsFor, gaps, nowMs, compareIntervalMs })),
    );
    const times = defined({ last_event_at, last_compared_at, behind_ms: behindMs(record, nowMs) });
    const left = gaps.filter((gap) => gap.state !== 'closed');
    return {
      bucket,
      status,
      // they are about keys of the whole bucket
      ...(readsAll(readable, { bucket, prefix: '' }) && times),
      gaps: left.length,
      gap_prefixes: [...new Set(left.map(({ prefix }) => prefix ?? ''))].slice(0, PREFIXES_MAX),
    };
  }

  return async function asOfBuckets(buckets: readonly string[], readable: Readable, signal?: AbortSignal): Promise<readonly AsOf[]> {
    const all = await Promise.all(buckets.map((bucket) => asOfBucket(bucket, readable, signal)));
    // what may differ is never among those that are left out
    const rank = ({ status }: AsOf): number => bucketSeverities.indexOf(status.severity);
    return all.toSorted((a, b) => rank(a) - rank(b)).slice(0, BUCKETS_MAX);
  };
}
