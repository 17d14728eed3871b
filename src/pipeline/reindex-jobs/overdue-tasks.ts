/**
 * Repairs what a crash or a lost message left undone: jobs and ranges whose task is lost get a new one, and records that
 * are no longer needed are removed. One worker runs it every minute.
 */
import { jobSchema, hasEnded, rangeSchema, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import { isOverdue, leaseName, lookAtLease, WATCH_MS } from '../../domain/reindex/range-transitions.ts';
import { phaseOf } from '../../domain/reindex/job-transitions.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllIds, listAllRecords, readRecord, refs, updateRecord } from '../records/stored.ts';
import { removeJob } from './job-records.ts';
import { createOccupancy } from './occupancy.ts';
import { boundsCut, removeRanges } from './range-records.ts';
import type { SendTask } from './tasks.ts';

/** How long a job is kept after it has ended. */
const KEPT_MS = 30 * 86_400_000;
/** How many ended jobs are kept at most, since every process lists all jobs every few seconds. */
const KEPT_MAX = 1_000;

/** Creates the function that runs once over all jobs. It throws the faults of the store and the work queue; the next run continues. */
export function createOverdueTasks({
  state,
  clock,
  sendTask,
}: {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly sendTask: SendTask;
}): (signal: AbortSignal) => Promise<void> {
  const occupancy = createOccupancy(state);
  const leases = createLeaseWatch(clock);

  /** Sends the task of a job again if it is overdue: the job does not compare yet, or range records are missing. */
  async function resendJob(job: JobRecord): Promise<void> {
    const task = { taskAtMs: Math.max(job.taskAtMs ?? job.createdAtMs, job.waitUntilMs ?? 0), resends: job.resends ?? 0 };
    if (!isOverdue(task, clock.nowMs())) return;
    await sendTask({ job: job.id });
    await updateRecord(state, refs.job(job.id), (current) =>
      current === undefined || hasEnded(current) ? undefined : { ...current, taskAtMs: clock.nowMs(), resends: (current.resends ?? 0) + 1 },
    );
  }

  function isLost(range: RangeRecord): boolean {
    return isRangeLost(range, clock.nowMs(), leases.isUnchanged(range));
  }

  async function resendRange({ jobId, number, turn }: RangeRecord): Promise<void> {
    await sendTask({ job: jobId, range: number, turn });
    await updateRecord(state, refs.range(jobId, number), (current) =>
      current === undefined || !isLost(current) ? undefined : { ...current, taskAtMs: clock.nowMs(), resends: current.resends + 1 },
    );
  }

  async function repair(job: JobRecord, ranges: readonly RangeRecord[], signal: AbortSignal): Promise<void> {
    if (hasEnded(job)) {
      if (ranges.length > 0) await removeRanges(state, job.id);
      return;
    }
    if (job.state === 'paused') return;
    if (phaseOf(job) !== 'comparing' || !isInOrder(job, ranges) || !(await occupancy.mayRun(job, signal))) await resendJob(job);
    for (const range of ranges.filter(isLost)) {
      signal.throwIfAborted();
      await resendRange(range);
    }
  }

  /** Removes ended jobs that are too old or too many, the oldest first. */
  async function prune(jobs: readonly JobRecord[]): Promise<void> {
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

  return async function repairOverdue(signal) {
    const jobs = await listAllRecords(state, 'job', jobSchema);
    const ranges = await listAllRecords(state, 'range', rangeSchema);
    leases.look(ranges);
    const byJob = Map.groupBy(ranges, ({ jobId }) => jobId);
    for (const job of jobs) {
      signal.throwIfAborted();
      await repair(job, byJob.get(job.id) ?? [], signal);
      byJob.delete(job.id);
    }
    for (const id of byJob.keys()) {
      // read by id, because the list of jobs may be older than the range
      if ((await readRecord(state, refs.job(id), signal)) === undefined) await removeRanges(state, id);
    }
    await prune(jobs);
    await pruneOccupancy();
  };
}

/** Whether every range that was cut in advance has its record, and a range is still open. */
function isInOrder(job: JobRecord, ranges: readonly RangeRecord[]): boolean {
  const made = ranges.filter(({ number }) => boundsCut(job, number) !== undefined).length;
  return made > (job.cuts?.length ?? 0) && ranges.some(({ done }) => !done);
}

/** Whether the range's task counts as lost. `isUnchanged`: its lease has not changed for long enough to be over. */
function isRangeLost({ done, lease, taskAtMs, resends }: RangeRecord, nowMs: number, isUnchanged: boolean): boolean {
  if (done || (lease !== undefined && lookAtLease(lease, nowMs, isUnchanged).kind === 'leased')) return false;
  const leasedUntilMs = lease === undefined || isUnchanged ? 0 : lease.untilMs;
  return isOverdue({ taskAtMs: Math.max(taskAtMs, leasedUntilMs), resends }, nowMs);
}

/** Watches leases by the monotonic clock of this process: a wall clock that was wrong must not block a range. It remembers the leases of the last look only. */
function createLeaseWatch(clock: Pick<Clock, 'monotonicMs'>) {
  let seen: ReadonlyMap<string, number> = new Map();

  function nameOf({ jobId, number, lease }: RangeRecord): string | undefined {
    return lease && `${jobId} ${number} ${leaseName(lease)}`;
  }

  return {
    look(ranges: readonly RangeRecord[]): void {
      const names = ranges.flatMap((range) => nameOf(range) ?? []);
      seen = new Map(names.map((name) => [name, seen.get(name) ?? clock.monotonicMs()]));
    },
    isUnchanged(range: RangeRecord): boolean {
      const sinceMs = seen.get(nameOf(range) ?? '');
      return sinceMs !== undefined && clock.monotonicMs() - sinceMs >= WATCH_MS;
    },
  };
}

function endedAtMs(job: JobRecord): number {
  return job.finishedAtMs ?? job.createdAtMs;
}
