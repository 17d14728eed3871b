/** Which buckets have lost events when messages of a bucket queue are lost. */
import { bucketRecordSchema, mayBeFedBy } from '../../domain/bucket.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords } from '../records/stored.ts';

interface FedBy {
  /** The queues that lost messages; none: it is not known which. */
  readonly queueUrls: readonly string[];
  /** All bucket queues of this process. */
  readonly bucketQueueUrls: readonly string[];
  readonly nowMs: number;
}

/** Returns the connected buckets whose events may come from one of these queues. Throws the store's fault. */
export async function bucketsFedBy(state: StateStore, { queueUrls, bucketQueueUrls, nowMs }: FedBy): Promise<readonly string[]> {
  const others = queueUrls.length === 0 ? [] : bucketQueueUrls.filter((url) => !queueUrls.includes(url));
  const buckets = await listAllRecords(state, 'bucket', bucketRecordSchema);
  return buckets.filter((bucket) => mayBeFedBy(bucket, { queueUrls, others, nowMs })).map(({ bucket }) => bucket);
}
