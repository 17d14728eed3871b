/** Whether re-index jobs wait that no worker claims, for the readiness of every process. */
import { isDue } from '../../domain/reindex/claims.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import type { Clock } from '../ports/clock.ts';
import { OK, type ReadinessCheck } from './readiness.ts';

/** A job is claimed within seconds of its time, after a fault of the store within a minute, and after its worker died within two. */
const UNCLAIMED_MS = 180_000;

export interface UnclaimedJobs {
  /** Notes the jobs as they are stored now. */
  see(jobs: readonly Pick<JobRecord, 'id' | 'dueAtMs'>[]): void;
  readonly check: () => ReadinessCheck;
}

/**
 * Creates the check; nothing has been seen yet. A job was stored by another process, whose clock may differ: so what counts is for how
 * long this process has seen the job due at the same time. Each claim moves that time.
 */
export function createUnclaimedJobs(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): UnclaimedJobs {
  let waiting = 0;
  /** When each job that is due was first seen so, on this process's monotonic clock. There are as many as there are open jobs. */
  let seen: ReadonlyMap<string, number> = new Map();
  return {
    see(jobs) {
      const atMs = clock.monotonicMs();
      const due = jobs.filter((job) => isDue(job, clock.nowMs())).map(({ id, dueAtMs }) => `${id} ${dueAtMs}`);
      seen = new Map(due.map((job) => [job, seen.get(job) ?? atMs]));
      waiting = due.filter((job) => atMs - (seen.get(job) ?? atMs) > UNCLAIMED_MS).length;
    },
    check: () =>
      waiting === 0
        ? OK
        : {
            status: 'warning',
            code: 'no-worker',
            detail: `no worker has taken ${waiting === 1 ? 'a re-index job that waits' : `${waiting} re-index jobs that wait`}: they stay as they are, and gaps stay open`,
            advice: 'Check that a process with the role reindex runs, and its /readyz (TALLY_ROLES).',
          },
  };
}
