/**
 * What a crash or a lost message left undone, looked for every minute by one worker: jobs and ranges whose task is lost
 * get another one, records that nobody needs any more go.
 */
import { jobSchema, hasEnded, rangeSchema, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import { isOverdue } from '../../domain/reindex/range-steps.ts';
import { placeOf } from '../../domain/reindex/job-steps.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../records/stored.ts';
import type { SendTask } from './tasks.ts';
import { removeJob } from './job-records.ts';
import { boundsCut } from './range-records.ts';
import { removeRanges } from './job-ends.ts';

/** How long an ended job can be looked up. */
const KEPT_MS = 30 * 86_400_000;
/** And how many at most: what a process lists every few seconds. */
const KEPT_MAX = 1_000;

interface OverdueDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly sendTask: SendTask;
}

/** Creates one look. It throws the faults of the store and the work queue; the next look carries on. */
export function createOverdueTasks({ state, clock, sendTask }: OverdueDependencies): (signal: AbortSignal) => Promise<void> {
  /** A job whose task is lost, before it compares or when it has ranges that were never made. */
  async function resendJob(job: JobRecord): Promise<void> {
    const task = { taskAtMs: Math.max(job.taskAtMs ?? job.createdAtMs, job.waitUntilMs ?? 0), resends: job.resends ?? 0 };
    if (!isOverdue(task, clock.nowMs())) return;
    await sendTask({ job: job.id });
    await updateRecord(state, refs.job(job.id), (current) =>
      current === undefined || hasEnded(current) ? undefined : { ...current, taskAtMs: clock.nowMs(), resends: (current.resends ?? 0) + 1 },
    );
  }

  async function resendRange({ jobId, number, turn }: RangeRecord): Promise<void> {
    await sendTask({ job: jobId, range: number, turn });
    await updateRecord(state, refs.range(jobId, number), (current) =>
      current === undefined || !isLost(current, clock.nowMs())
        ? undefined
        : { ...current, taskAtMs: clock.nowMs(), resends: current.resends + 1 },
    );
  }

  async function lookAt(job: JobRecord, ranges: readonly RangeRecord[], signal: AbortSignal): Promise<void> {
    if (hasEnded(job)) {
      if (ranges.length > 0) await removeRanges(state, job.id);
      return;
    }
    if (job.state === 'paused') return;
    if (placeOf(job) !== 'comparing' || !isInOrder(job, ranges) || !(await hasSlot(job, signal))) await resendJob(job);
    for (const range of ranges.filter((each) => isLost(each, clock.nowMs()))) {
      signal.throwIfAborted();
      await resendRange(range);
    }
  }

  async function hasSlot(job: JobRecord, signal: AbortSignal): Promise<boolean> {
    return job.mode === 'report' || (await readRecord(state, refs.jobSlot(job.bucket), signal))?.jobId === job.id;
  }

  /** The oldest first, whichever of the two bounds they are beyond. */
  async function prune(jobs: readonly JobRecord[]): Promise<void> {
    const ended = jobs.filter(hasEnded).sort((a, b) => endedAtMs(a) - endedAtMs(b));
    const tooMany = ended.length - KEPT_MAX;
    const gone = ended.filter((job, index) => index < tooMany || clock.nowMs() - endedAtMs(job) > KEPT_MS);
    for (const { id } of gone) await removeJob(state, id);
  }

  return async function lookForOverdue(signal) {
    const jobs = await listAllRecords(state, 'job', jobSchema);
    const byJob = Map.groupBy(await listAllRecords(state, 'range', rangeSchema), ({ jobId }) => jobId);
    for (const job of jobs) {
      signal.throwIfAborted();
      await lookAt(job, byJob.get(job.id) ?? [], signal);
      byJob.delete(job.id);
    }
    for (const id of byJob.keys()) {
      // by id: the list of jobs may be older than the range
      if ((await readRecord(state, refs.job(id), signal)) === undefined) await removeRanges(state, id);
    }
    await prune(jobs);
  };
}

/** Whether all that was cut in advance is there, and something is still to do. */
function isInOrder(job: JobRecord, ranges: readonly RangeRecord[]): boolean {
  const made = ranges.filter(({ number }) => boundsCut(job, number) !== undefined).length;
  return made > (job.cuts?.length ?? 0) && ranges.some(({ done }) => !done);
}

function isLost(range: RangeRecord, nowMs: number): boolean {
  if (range.done || (range.lease?.untilMs ?? 0) > nowMs) return false;
  return isOverdue({ taskAtMs: Math.max(range.taskAtMs, range.lease?.untilMs ?? 0), resends: range.resends }, nowMs);
}

function endedAtMs(job: JobRecord): number {
  return job.finishedAtMs ?? job.createdAtMs;
}
