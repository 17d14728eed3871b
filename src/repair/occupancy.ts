/**
 * Which apply job occupies a bucket: at most one does. The bucket's record names the job, and the name counts only while that job is
 * stored as queued or running. So a job is stored before it occupies its bucket, and an apply job runs only while the record
 * names it.
 */
import { bucketRecordSchema } from '../records/bucket.ts';
import { occupiesBucket, type JobRecord } from '../records/job.ts';
import { RequestError } from '../base/request-error.ts';
import { notConnected } from '../observing/known-buckets.ts';
import type { Listed, StateStore } from '../store/store.ts';
import { keepingUnknown, parseEntry, readRecord, refs } from '../store/stored.ts';

/** Attempts to occupy a bucket while its record changes at the same moment. */
const ATTEMPTS_MAX = 10;

/** Throws `job.conflict`, which names the job that occupies the bucket, unless it is this one. Throws the store's fault. */
async function refuseIfNamed(
  state: StateStore,
  applyJobId: string | undefined,
  { id, bucket }: Pick<JobRecord, 'bucket'> & { readonly id?: string },
) {
  const job = applyJobId === undefined || applyJobId === id ? undefined : await readRecord(state, refs.job(applyJobId));
  if (job === undefined || !occupiesBucket(job)) return;
  throw new RequestError('job.conflict', `the job ${job.id} of ${bucket} is ${job.state}: wait until it has ended, or cancel it`, {
    job_id: job.id,
  });
}

/** Throws `job.conflict` if another apply job occupies the bucket. Throws the store's fault. */
export async function refuseIfOccupied(state: StateStore, job: Pick<JobRecord, 'bucket'> & { readonly id?: string }): Promise<void> {
  const record = await readRecord(state, refs.bucket(job.bucket));
  await refuseIfNamed(state, record?.applyJobId, job);
}

/**
 * Occupies the bucket for a job that is stored as queued or running. Lists show the record as {@link StateStore.put} says. Throws
 * `job.conflict`, `state.conflict`, `bucket.not-connected` and the store's fault.
 */
export async function occupyBucket(
  state: StateStore,
  { id: jobId, bucket }: Pick<JobRecord, 'id' | 'bucket'>,
  listed: Listed = 'now',
): Promise<void> {
  const { id, kind } = refs.bucket(bucket);
  // not by updateRecord: another record decides whether the bucket is free. Stored even if it names the job already, so that one that is stored meanwhile loses
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const entry = await state.get(id);
    if (entry === undefined) throw notConnected(bucket);
    const record = parseEntry(entry, bucketRecordSchema);
    await refuseIfNamed(state, record.applyJobId, { id: jobId, bucket });
    const named = keepingUnknown(entry, bucketRecordSchema, { ...record, applyJobId: jobId });
    const stored = await state.put({ id, kind, record: named, listed }, entry.version);
    if (stored !== 'conflict') return;
  }
  throw new RequestError('state.conflict', `the record of ${bucket} keeps changing: try again`);
}
