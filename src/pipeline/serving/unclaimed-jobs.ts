/** Whether re-index jobs wait that no worker claims, for the readiness of every process. */
import type { JobRecord } from '../../domain/reindex/job.ts';
import { OK, type ReadinessCheck } from './readiness.ts';

/** A job is claimed within seconds of its time, after a fault of the store within a minute, and after its worker died within two. */
const UNCLAIMED_MS = 180_000;

export interface UnclaimedJobs {
  /** Notes the jobs as they are stored now, and the time of this process. */
  see(jobs: readonly Pick<JobRecord, 'dueAtMs'>[], nowMs: number): void;
  readonly check: () => ReadinessCheck;
}

/** Creates the check; nothing has been seen yet. */
export function createUnclaimedJobs(): UnclaimedJobs {
  let waiting = 0;
  return {
    see(jobs, nowMs) {
      waiting = jobs.filter(({ dueAtMs = Infinity }) => nowMs - dueAtMs > UNCLAIMED_MS).length;
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
