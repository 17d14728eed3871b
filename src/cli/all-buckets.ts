/** Reads the list of buckets to its end. */
import type { Activity, ShownBucket, UnconnectedBucket } from '../api/buckets.ts';
import type { Context, Operations } from '../api/contract.ts';

/** The largest page of the API. */
const PAGE_BUCKETS = 1_000;

interface AllBuckets {
  readonly items: readonly ShownBucket[];
  readonly unconnected: readonly UnconnectedBucket[];
  readonly activity?: Activity | undefined;
}

/** Returns the connected buckets and the names that are not connected. */
export async function allBuckets(control: Pick<Operations, 'listBuckets'>, context: Context): Promise<AllBuckets> {
  const items: ShownBucket[] = [];
  const unconnected: UnconnectedBucket[] = [];
  let activity: Activity | undefined;
  let cursor: string | undefined;
  do {
    const page = await control.listBuckets({ query: { limit: PAGE_BUCKETS, ...(cursor !== undefined && { cursor }) } }, context);
    items.push(...page.items);
    unconnected.push(...page.unconnected);
    activity ??= page.activity;
    cursor = page.next;
  } while (cursor !== undefined);
  return { items, unconnected, activity };
}
