/** The place of a job that a test lets begin now, stored in the record of its bucket as the product does with the floor. */
import { lastBeginOf, nextBeginOf } from '../../../src/records/job.ts';
import type { StateStore } from '../../../src/store/store.ts';
import { refs, updateRecord } from '../../../src/store/stored.ts';

export async function beginOrderNow(state: StateStore, bucket: string, nowMs: number): Promise<number> {
  const record = await updateRecord(
    state,
    refs.bucket(bucket),
    (current) => current && { ...current, lastBeginOrder: nextBeginOf(current, nowMs) },
  );
  return record === undefined ? 0 : lastBeginOf(record);
}
