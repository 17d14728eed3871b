/** Disconnects a bucket: deletes its record, then whatever Tally stored for it. The bucket itself is never touched. */
import type { BucketRecord } from '../../records/bucket.ts';
import { isBucketName } from '../../base/bucket-name.ts';
import { lastBeginOf } from '../../records/job.ts';
import { noteIndex } from '../../connect/index-identity.ts';
import { notConnected } from '../../observing/buckets.ts';
import { openNeverCompared, type GapReports } from '../../observing/gaps.ts';
import type { ObjectIndex, WithPorts, StateStore } from '../../store/store.ts';
import type { ReindexJobs } from '../../repair/job-requests.ts';
import { readRecord, refs, removeRecord, pagesOf, gapIdsOf } from '../../store/stored.ts';

interface DisconnectDependencies extends WithPorts<'state' | 'clock'> {
  readonly objects: ObjectIndex;
  readonly jobs: Pick<ReindexJobs, 'cancelOf'>;
  readonly gaps: Pick<GapReports, 'report'>;
}

/**
 * Cancels the bucket's jobs, deletes the record, so that workers stop indexing within C (10 s), and deletes the documents and the gaps.
 * A second call completes a removal that was interrupted, and then throws `bucket.not-connected`.
 */
export async function disconnectBucket(parts: DisconnectDependencies, bucket: string, signal?: AbortSignal): Promise<void> {
  const { state, objects, jobs } = parts;
  if (!isBucketName(bucket)) throw notConnected(bucket);
  await jobs.cancelOf(bucket);
  const record = await readRecord(state, refs.bucket(bucket), signal);
  await removeRecord(state, refs.bucket(bucket).id);
  // a job that was started in the meantime
  await jobs.cancelOf(bucket);
  await objects.removeBucket(bucket, signal);
  await removeGaps(state, bucket);
  await removeRecord(state, refs.gapHistory(bucket).id);
  const again = await readRecord(state, refs.bucket(bucket), signal);
  if (again !== undefined) await restore(parts, again, signal);
  if (record === undefined) throw notConnected(bucket);
}

async function removeGaps(state: StateStore, bucket: string): Promise<void> {
  for await (const page of pagesOf(state, 'gap', { prefix: gapIdsOf(bucket) })) for (const { id } of page) await removeRecord(state, id);
}

/** The bucket was connected again in the meantime, so its record needs an index and its gap. */
async function restore(parts: DisconnectDependencies, again: BucketRecord, signal: AbortSignal | undefined): Promise<void> {
  const { bucket, enrich, provenAtMs } = again;
  const isProven = provenAtMs !== undefined;
  const mark = { bucket, enrich, seenAtMs: parts.clock.nowMs(), order: lastBeginOf(again), isHeld: false, isProven };
  await openNeverCompared(parts, mark, 'after');
  await parts.objects.createBucket(bucket, signal);
  // the record may name the removed index: if only the next watch found that, it would cost another re-index
  await noteIndex(parts, bucket, signal);
}
