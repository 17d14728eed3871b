/** Disconnects a bucket: deletes its record first, then what Tally stored for it. The bucket itself is never touched. */
import type { BucketRecord } from '../../domain/bucket.ts';
import { isBucketName } from '../../domain/bucket-name.ts';
import { defined } from '../../domain/defined.ts';
import { lastBeginOf } from '../../domain/reindex/covers.ts';
import { noteIndex } from '../buckets/index-identity.ts';
import { notConnected } from '../buckets/known.ts';
import { openNeverCompared } from '../gaps/connection-gaps.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { ReindexJobs } from './reindex-jobs.ts';
import { readRecord, refs, removeRecord, updateRecord, pagesOf, gapIdsOf } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

interface DisconnectDependencies extends WithPorts<'state' | 'clock'> {
  readonly objects: ObjectIndex;
  readonly jobs: Pick<ReindexJobs, 'cancelOf'>;
  readonly gaps: Pick<GapReports, 'report'>;
}

/**
 * Creates the function. It cancels the bucket's jobs, deletes the record, so that workers stop indexing within C (10 s), and
 * deletes the documents, unless they are to stay, and the gaps. A second call completes a removal that was interrupted, and
 * then throws `bucket.not-connected`.
 */
export function createDisconnectBucket({
  state,
  objects,
  jobs,
  gaps,
  clock,
}: DisconnectDependencies): (bucket: string, signal?: AbortSignal, how?: { readonly keepDocuments?: boolean }) => Promise<void> {
  return async function disconnectBucket(bucket, signal, { keepDocuments = false } = {}) {
    if (!isBucketName(bucket)) throw notConnected(bucket);
    // first, so that the record says what they hold back
    await jobs.cancelOf(bucket);
    const record = await readRecord(state, refs.bucket(bucket), signal);
    if (keepDocuments && record !== undefined) await keepWaiting(record);
    await removeRecord(state, refs.bucket(bucket).id);
    // one that was started meanwhile
    await jobs.cancelOf(bucket);
    if (!keepDocuments) await objects.removeBucket(bucket, signal);
    await removeGaps(bucket);
    if (!keepDocuments) await removeRecord(state, refs.gapHistory(bucket).id);
    // the bucket was connected again in the meantime, so its record needs an index and its gap
    const again = await readRecord(state, refs.bucket(bucket), signal);
    if (again !== undefined) {
      const isProven = again.provenAtMs !== undefined;
      await openNeverCompared(
        { state, clock },
        { bucket, enrich: again.enrich, seenAtMs: clock.nowMs(), order: lastBeginOf(again), isHeld: false, isProven },
        'after',
      );
      await objects.createBucket(bucket, signal);
      // the record may name the index that was removed: found only by the next watch, it would cost another re-index
      await noteIndex({ state, objects, gaps, clock }, bucket, signal);
    }
    if (record === undefined) throw notConnected(bucket);
  };

  /** Where documents stay, so do the deletions of them that wait for a person. */
  async function keepWaiting({ bucket, waiting }: BucketRecord): Promise<void> {
    await updateRecord(state, refs.gapHistory(bucket), () => ({ bucket, closed: [], ...defined({ waiting }) }));
  }

  async function removeGaps(bucket: string): Promise<void> {
    for await (const page of pagesOf(state, 'gap', { prefix: gapIdsOf(bucket) })) for (const { id } of page) await removeRecord(state, id);
  }
}
