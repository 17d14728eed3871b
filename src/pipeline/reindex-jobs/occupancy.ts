/**
 * Which apply job occupies a bucket: at most one does. A record names the job and counts only while that job is stored as
 * queued or running. So a job is stored before it occupies its bucket, and an apply job runs only while the record names it.
 */
import { occupiesBucket, type JobRecord } from '../../domain/reindex/job.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Listed, StateStore } from '../ports/state.ts';
import { readRecord, refs } from '../records/stored.ts';

/** Attempts to occupy a bucket while other jobs occupy and leave it at the same moment. */
const ATTEMPTS_MAX = 5;

export interface Occupancy {
  /** Throws `job.conflict`, which names the job that occupies the bucket, unless it is this one. Throws the store's fault. */
  refuseIfOccupied(job: Pick<JobRecord, 'bucket'> & { readonly id?: string }, signal?: AbortSignal): Promise<void>;
  /**
   * Occupies the bucket for a job that is stored as queued or running. Lists show the record as {@link StateStore.put} says. Throws
   * `job.conflict`, `state.conflict` and the store's fault.
   */
  occupy(job: Pick<JobRecord, 'id' | 'bucket'>, listed?: Listed): Promise<void>;
  /** Whether the job may run: a report always may, an apply job only while its bucket's record names it. Throws the store's fault. */
  mayRun(job: Pick<JobRecord, 'id' | 'bucket' | 'mode'>, signal?: AbortSignal): Promise<boolean>;
  /** Removes the record of the bucket unless the job that it names occupies the bucket. Throws the store's fault. */
  forget(bucket: string): Promise<void>;
}

/** Creates the access to the occupancy of all buckets. */
export function createOccupancy(state: StateStore): Occupancy {
  async function occupantOf(bucket: string, signal?: AbortSignal): Promise<JobRecord | undefined> {
    const named = await readRecord(state, refs.jobSlot(bucket), signal);
    const job = named === undefined ? undefined : await readRecord(state, refs.job(named.jobId), signal);
    return job !== undefined && occupiesBucket(job) ? job : undefined;
  }

  const refuseIfOccupied: Occupancy['refuseIfOccupied'] = async ({ id, bucket }, signal) => {
    const job = await occupantOf(bucket, signal);
    if (job === undefined || job.id === id) return;
    throw new RequestError('job.conflict', `the job ${job.id} of ${bucket} is ${job.state}: wait until it has ended, or cancel it`, {
      job_id: job.id,
    });
  };

  return {
    refuseIfOccupied,
    // not by updateRecord: another record decides whether the bucket is free
    async occupy(job, listed = 'now') {
      const { id, kind } = refs.jobSlot(job.bucket);
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
        const entry = await state.get(id);
        await refuseIfOccupied(job);
        const stored = await state.put({ id, kind, record: { bucket: job.bucket, jobId: job.id }, listed }, entry?.version ?? null);
        if (stored !== 'conflict') return;
      }
      throw new RequestError('state.conflict', `other jobs of ${job.bucket} are being requested at the same moment: try again`);
    },
    async mayRun({ id, bucket, mode }, signal) {
      return mode === 'report' || (await readRecord(state, refs.jobSlot(bucket), signal))?.jobId === id;
    },
    async forget(bucket) {
      const entry = await state.get(refs.jobSlot(bucket).id);
      if (entry === undefined || (await occupantOf(bucket)) !== undefined) return;
      // a conflict means that a job has just occupied the bucket
      await state.remove(entry.id, entry.version);
    },
  };
}
