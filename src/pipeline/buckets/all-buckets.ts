/** All bucket records, for the metrics and the sweeps, which look at every bucket again and again. What decides about a bucket reads its record by id. */
import { bucketRecordSchema, type BucketRecord } from '../../domain/bucket.ts';
import type { WithPorts } from '../ports/ports.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords } from '../records/stored.ts';

/** Lists them in id order. Throws the store's fault. */
export type AllBuckets = () => Promise<readonly BucketRecord[]>;

/** Those who ask within this time share one list: less than the 15 s of those who ask most often, so that each of their reads is a newer one. */
const SHARED_MS = 14_000;

/** Lists them now. */
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
