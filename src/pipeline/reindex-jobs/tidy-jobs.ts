/** Removes ended jobs after a while. One process runs it every minute. */
import { hasEnded, jobSchema, type JobRecord } from '../../domain/reindex/job.ts';
import type { WithPorts } from '../ports/ports.ts';
import { listAllRecords, refs, removeRecord } from '../records/stored.ts';

/** How long a job is kept after it has ended. */
const KEPT_MS = 30 * 86_400_000;
/** How many ended jobs are kept at most, since every process lists all jobs every few seconds. */
const KEPT_MAX = 1_000;

/** Removes ended jobs that are too old or too many, the oldest first. Throws the store's fault; the next run continues. */
export async function tidyJobs({ state, clock }: WithPorts<'state' | 'clock'>): Promise<void> {
  const jobs = await listAllRecords(state, 'job', jobSchema);
  const ended = jobs.filter(hasEnded).toSorted((a, b) => endedAtMs(a) - endedAtMs(b));
  const tooMany = ended.length - KEPT_MAX;
  const gone = ended.filter((job, index) => index < tooMany || clock.nowMs() - endedAtMs(job) > KEPT_MS);
  for (const { id } of gone) await removeRecord(state, refs.job(id).id);
}

function endedAtMs(job: JobRecord): number {
  return job.finishedAtMs ?? job.createdAtMs;
}
