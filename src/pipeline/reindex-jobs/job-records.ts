/** A job's record changed by its steps. */
import { afterStep, type JobSums, type JobStep } from '../../domain/reindex/job-steps.ts';
import { sumOf } from '../../domain/reindex/job-view.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, removeRecord, updateRecord } from '../records/stored.ts';
import { listRanges } from './range-records.ts';

/** The record after the step; `refused` when the job is where the step cannot follow; undefined when there is no such job. */
export type StepResult = JobRecord | 'refused' | undefined;

/** Carries out one step by compare-and-swap; what ends a job keeps its examples first. Throws the store's fault. */
export async function stepJob(state: StateStore, id: string, step: JobStep): Promise<StepResult> {
  if ('sums' in step) await keepExamples(state, id, step.sums);
  let isRefused = false;
  const job = await updateRecord(state, refs.job(id), (current) => {
    const next = current === undefined ? undefined : afterStep(current, step);
    isRefused = next === 'refused';
    return next === 'refused' ? undefined : next;
  });
  return isRefused ? 'refused' : job;
}

/** Stores the examples of a job that is about to end. Throws the store's fault. */
export async function keepExamples(state: StateStore, jobId: string, { examples = {} }: JobSums): Promise<void> {
  if (Object.keys(examples).length > 0) await updateRecord(state, refs.jobExamples(jobId), () => ({ jobId, examples }));
}

/** Removes a job that has ended. Its examples go first: none is left without its job. Throws the store's fault. */
export async function removeJob(state: StateStore, jobId: string): Promise<void> {
  await removeRecord(state, refs.jobExamples(jobId).id);
  await removeRecord(state, refs.job(jobId).id);
}

/** What the job's ranges add up to now, to be kept when it ends early. Throws the store's fault. */
export async function sumsNow(state: StateStore, job: JobRecord): Promise<JobSums> {
  return job.comparingAtMs === undefined ? {} : sumOf(job, await listRanges(state, job.id));
}
