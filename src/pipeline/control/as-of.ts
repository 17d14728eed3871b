/** How far the index of a bucket can be relied on now: shown above the results of a search. */
import type { z } from 'zod';
import { bucketView } from '../../api/buckets.ts';
import type { asOf } from '../../api/search.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { circuitOfBucket, listCircuits } from '../buckets/circuit-records.ts';
import { requireBucket } from '../buckets/list.ts';
import { createListGaps } from '../gaps/reports.ts';

type AsOf = z.output<typeof asOf>;

/** More buckets are not described: that is what fits above a result. */
const BUCKETS_MAX = 8;
/** A bucket has one gap for each kind and prefix; more are counted up to here. */
const GAPS_MAX = 100;
const PREFIXES_MAX = 3;

/** Creates the function for the buckets that a search names. */
export function createAsOf({ state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> }) {
  const listGaps = createListGaps({ state });

  async function asOfBucket(bucket: string, signal: AbortSignal | undefined): Promise<AsOf> {
    const [record, open, gaps] = await Promise.all([
      requireBucket(state, bucket, signal),
      listCircuits(state, clock.nowMs()),
      listGaps({ bucket, limit: GAPS_MAX }, signal),
    ]);
    const { status, last_event_at, last_reindex_at } = bucketView(record, circuitOfBucket(open, record));
    const left = gaps.items.filter((gap) => gap.state !== 'closed');
    return {
      bucket,
      status,
      ...(last_event_at !== undefined && { last_event_at }),
      ...(last_reindex_at !== undefined && { last_reindex_at }),
      gaps: left.length,
      gap_prefixes: [...new Set(left.map(({ prefix }) => prefix ?? ''))].slice(0, PREFIXES_MAX),
    };
  }

  return function asOfBuckets(buckets: readonly string[], signal?: AbortSignal): Promise<readonly AsOf[]> {
    return Promise.all(buckets.slice(0, BUCKETS_MAX).map((bucket) => asOfBucket(bucket, signal)));
  };
}
