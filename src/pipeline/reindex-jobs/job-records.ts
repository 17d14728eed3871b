/** Changes of a job's record, and of the records that end and go with it. */
import { afterTransition, type JobSums, type JobTransition } from '../../domain/reindex/job-transitions.ts';
import { sumOf } from '../../domain/reindex/job-view.ts';
import { hasEnded, type JobRecord } from '../../domain/reindex/job.ts';
import { noteEarlyReport } from './compared.ts';
import type { StateStore } from '../ports/state.ts';
import { keepHeld } from '../gaps/stored-gaps.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import { readRanges } from './range-records.ts';

/**
 * Carries out one transition by compare-and-swap. Resolves with the record after it, `refused` if the job's phase does not allow
 * it, or undefined if there is no such job. A transition that ends the job first stores its examples, and what it holds back. Throws the store's fault.
 */
export async function transitionJob(state: StateStore, id: string, transition: JobTransition): Promise<JobRecord | 'refused' | undefined> {
  if ('sums' in transition) {
    await keepExamples(state, id, transition.sums);
    await keepHeldOf(state, id, transition);
  }
  let isRefused = false;
  const change = (current: JobRecord | undefined): JobRecord | undefined => {
    const next = current === undefined ? undefined : afterTransition(current, transition);
    isRefused = next === 'refused';
    return next === 'refused' ? undefined : next;
  };
  // comparing begins without the wait for lists: whatever works on the job reads it by its id
  const job = await updateRecord(state, refs.job(id), change, transition.kind === 'compare' ? 'soon' : 'now');
  return isRefused ? 'refused' : job;
}

/** What a job that ends early holds back so far may be less than what was known before. */
async function keepHeldOf(state: StateStore, id: string, { sums, atMs }: { readonly sums: JobSums; readonly atMs: number }): Promise<void> {
  const { counts } = sums;
  const job = counts === undefined ? undefined : await readRecord(state, refs.job(id));
  if (job !== undefined && counts !== undefined && !hasEnded(job)) await noteEarlyReport(state, job, { atMs, counts });
  // it may be paused now, and cannot be resumed then
  if (job !== undefined)
    await keepHeld(state, { ...job, counts, state: 'cancelled' }, { held: counts?.held ?? 0, isWhole: false, nowMs: atMs });
}

/** Stores the examples of a job that is about to end. Throws the store's fault. */
export async function keepExamples(state: StateStore, jobId: string, { examples = {} }: JobSums): Promise<void> {
  if (Object.keys(examples).length > 0) await updateRecord(state, refs.jobExamples(jobId), () => ({ jobId, examples }), 'soon');
}

/** Removes a job that has ended. Its examples are removed first, so that none remain without their job. Throws the store's fault. */
export async function removeJob(state: StateStore, jobId: string): Promise<void> {
  await removeRecord(state, refs.jobExamples(jobId).id);
  await removeRecord(state, refs.job(jobId).id);
}

/** The sums of the job's ranges now, which are kept when the job ends early. Throws the store's fault. */
export async function sumsNow(state: StateStore, job: JobRecord): Promise<JobSums> {
  return job.comparingAtMs === undefined ? {} : sumOf(job, await readRanges(state, job));
}
