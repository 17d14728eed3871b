/** Disconnecting a bucket: its record goes first, then what Tally made of it. The bucket itself is never touched. */
import { isBucketName } from '../../domain/bucket.ts';
import { fullSweepName } from '../../domain/calendar/full-sweep.ts';
import { notConnected } from '../buckets/list.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { StateStore } from '../ports/state.ts';
import type { ReindexJobs } from './reindex-jobs.ts';
import { readRecord, refs, removeRecord } from '../records/stored.ts';

/** Gaps removed from the store's list at once. */
const GAPS_MAX = 1_000;

interface DisconnectDependencies {
  readonly state: StateStore;
  readonly objects: ObjectIndex;
  readonly jobs: Pick<ReindexJobs, 'cancelOf'>;
}

/**
 * Creates the removal. The record goes first, so that workers stop indexing within C (10 s); then the job that has the
 * bucket's place is cancelled, and documents and gaps are deleted: there is nothing left to close a gap of. A removal
 * that was cut short is completed by asking again, which then answers `bucket.not-connected`.
 */
export function createDisconnectBucket({
  state,
  objects,
  jobs,
}: DisconnectDependencies): (bucket: string, signal?: AbortSignal) => Promise<void> {
  return async function disconnectBucket(bucket, signal) {
    if (!isBucketName(bucket)) throw notConnected(bucket);
    const wasConnected = (await readRecord(state, refs.bucket(bucket), signal)) !== undefined;
    await removeRecord(state, refs.bucket(bucket).id);
    await jobs.cancelOf(bucket);
    await objects.removeBucket(bucket, signal);
    await removeGaps(bucket);
    // a bucket that is connected again starts without a history
    for (const { id } of [refs.gapBudget(bucket), refs.schedule(fullSweepName(bucket))]) await removeRecord(state, id);
    // connected again meanwhile (its next event does that under auto-connect): its record must have an index
    if ((await readRecord(state, refs.bucket(bucket), signal)) !== undefined) await objects.createBucket(bucket, signal);
    if (!wasConnected) throw notConnected(bucket);
  };

  async function removeGaps(bucket: string): Promise<void> {
    const prefix = `gap:${bucket}:`;
    for (;;) {
      const entries = await state.list('gap', { after: prefix, limit: GAPS_MAX });
      const gaps = entries.filter(({ id }) => id.startsWith(prefix));
      for (const { id } of gaps) await removeRecord(state, id);
      if (gaps.length < GAPS_MAX) return;
    }
  }
}
