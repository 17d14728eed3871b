/**
 * A bucket's one place for an apply job. The slot names a job, and counts only while that job is there and queued or
 * running; so whoever takes it stores first that the job is, and an apply job runs only while the slot names it.
 */
import { occupiesBucket, type JobRecord } from '../../domain/reindex/job.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs } from '../records/stored.ts';

/** How often a slot is looked at that others take and leave at the same moment. */
const ATTEMPTS_MAX = 5;

export interface JobSlots {
  /** The job that has the bucket's place. Throws the store's fault. */
  occupantOf(bucket: string, signal?: AbortSignal): Promise<JobRecord | undefined>;
  /** Throws `job.conflict`, naming the job that has the place, unless it is this one. */
  refuseIfOccupied(job: Pick<JobRecord, 'bucket'> & { readonly id?: string }, signal?: AbortSignal): Promise<void>;
  /** Takes the place for a job that is stored as queued or running. Throws `job.conflict` and `state.conflict`. */
  take(job: Pick<JobRecord, 'id' | 'bucket'>): Promise<void>;
  /** Whether the slot names this job. */
  isOf(job: Pick<JobRecord, 'id' | 'bucket'>, signal?: AbortSignal): Promise<boolean>;
}

/** Creates the access to all slots. */
export function createJobSlots({ state }: { readonly state: StateStore }): JobSlots {
  async function occupantOf(bucket: string, signal?: AbortSignal): Promise<JobRecord | undefined> {
    const slot = await readRecord(state, refs.jobSlot(bucket), signal);
    const job = slot === undefined ? undefined : await readRecord(state, refs.job(slot.jobId), signal);
    return job !== undefined && occupiesBucket(job) ? job : undefined;
  }

  const refuseIfOccupied: JobSlots['refuseIfOccupied'] = async ({ id, bucket }, signal) => {
    const job = await occupantOf(bucket, signal);
    if (job === undefined || job.id === id) return;
    throw new RequestError('job.conflict', `${job.id} of ${bucket} is ${job.state}: wait until it ends, or cancel it`, { jobId: job.id });
  };

  return {
    occupantOf,
    refuseIfOccupied,
    /** Not by updateRecord: whether the slot is free is asked of another record. */
    async take(job) {
      const { id, kind } = refs.jobSlot(job.bucket);
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
        const entry = await state.get(id);
        await refuseIfOccupied(job);
        const stored = await state.put({ id, kind, record: { bucket: job.bucket, jobId: job.id } }, entry?.version ?? null);
        if (stored !== 'conflict') return;
      }
      throw new RequestError('state.conflict', `jobs of ${job.bucket} are requested by others at this moment: ask again`);
    },
    async isOf({ id, bucket }, signal) {
      return (await readRecord(state, refs.jobSlot(bucket), signal))?.jobId === id;
    },
  };
}
