/** Watches leases of jobs and ranges by the steady clock of this process: a wall clock that is wrong or set neither blocks a record nor takes it from a worker that lives. */
import { leaseName, WATCH_MS, type Claimable } from '../../domain/reindex/claims.ts';
import type { Clock } from '../ports/clock.ts';
import { createWatch } from '../records/lease.ts';

export interface LeaseWatch {
  /** Whether the lease of this record is over, because it has not changed since it was first seen here, WATCH_MS ago or earlier. */
  isOver(id: string, record: Claimable): boolean;
}

/** Creates the watch of one process. */
export function createLeaseWatch(clock: Pick<Clock, 'steadyMs'>): LeaseWatch {
  const watchedMs = createWatch(clock);
  return {
    isOver(id, record) {
      const name = leaseName(record);
      return name !== undefined && watchedMs(id, name) >= WATCH_MS;
    },
  };
}
