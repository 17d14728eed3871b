/** What is at work and what waits besides the buckets themselves, in numbers, from what is known or read in one request. */
import { z } from 'zod';
import type { Activity } from '../../api/buckets.ts';
import { hasEnded, jobSchema } from '../../domain/reindex/job.ts';
import type { DeadLetters } from '../letters/dead-letters.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords } from '../records/stored.ts';

/** A job has much else, and thousands may be stored. */
const stateOfJob = z.object({ state: jobSchema.shape.state });

/** Creates the function. It throws the store's fault. */
export function createActivity({
  state,
  deadLetters,
}: {
  readonly state: StateStore;
  readonly deadLetters: Pick<DeadLetters, 'known'>;
}): () => Promise<Activity> {
  return async function activity() {
    const jobs = await listAllRecords(state, 'job', stateOfJob);
    return {
      jobs: jobs.filter((job) => !hasEnded(job)).length,
      paused_jobs: jobs.filter((job) => job.state === 'paused').length,
      dead_letters: deadLetters.known(),
    };
  };
}
