/** Removes the records that jobs leave behind: ended jobs after a while, ranges that a crash left, and bucket slots of buckets that are gone. One worker runs it every minute. */
import { hasEnded, jobSchema, rangeSchema, type JobRecord } from '../../domain/reindex/job.ts';
import { listAllIds, listAllRecords, readRecord, refs } from '../records/stored.ts';
import { removeJob } from './job-records.ts';
import { createOccupancy } from './occupancy.ts';
import { removeRanges } from './range-records.ts';
import type { WithPorts } from '../ports/ports.ts';

/** How long a job is kept after it has ended. */
const KEPT_MS = 30 * 86_400_000;
/** How many ended jobs are kept at most, since every process lists all jobs every few seconds. */
const KEPT_MAX = 1_000;

/** Creates the function that runs once over all jobs. It throws the store's fault; the next run continues. */
export function createTidyJobs({ state, clock }: WithPorts<'state' | 'clock'>): (signal: AbortSignal) => Promise<void> {
  const occupancy = createOccupancy(state);

  /** Removes the ranges of jobs that have ended: the process that ended one may have died before it did. */
  async function tidyRanges(signal: AbortSignal): Promise<void> {
    const ranges = await listAllRecords(state, 'range', rangeSchema);
    for (const jobId of new Set(ranges.map((range) => range.jobId))) {
      // read by id, because a list of jobs may be older than the range
      const job = await readRecord(state, refs.job(jobId), signal);
      if (job === undefined || hasEnded(job)) await removeRanges(state, jobId);
    }
  }

  /** Removes ended jobs that are too old or too many, the oldest first. */
  async function prune(): Promise<void> {
    const jobs = await listAllRecords(state, 'job', jobSchema);
    const ended = jobs.filter(hasEnded).sort((a, b) => endedAtMs(a) - endedAtMs(b));
    const tooMany = ended.length - KEPT_MAX;
    const gone = ended.filter((job, index) => index < tooMany || clock.nowMs() - endedAtMs(job) > KEPT_MS);
    for (const { id } of gone) await removeJob(state, id);
  }

  /** Removes the records of occupied buckets that are no longer connected: a job may have begun while its bucket was disconnected. */
  async function pruneOccupancy(): Promise<void> {
    const occupied = await listAllIds(state, 'job-slot');
    const connected = new Set(await listAllIds(state, 'bucket'));
    const buckets = occupied.map((id) => id.slice(refs.jobSlot('').id.length));
    for (const bucket of buckets.filter((each) => !connected.has(refs.bucket(each).id))) await occupancy.forget(bucket);
  }

  return async function tidyJobs(signal) {
    await tidyRanges(signal);
    await prune();
    await pruneOccupancy();
  };
}

function endedAtMs(job: JobRecord): number {
  return job.finishedAtMs ?? job.createdAtMs;
}
