/** Watches leases by the monotonic clock of this process: a wall clock that is wrong neither blocks a record nor takes it from a worker that lives. */
import { leaseName, WATCH_MS, type Claimable } from '../../domain/reindex/claims.ts';
import type { Clock } from '../ports/clock.ts';

/** More leases than are found at the same time; the one that was found first is forgotten, and its watch begins again. */
const WATCHED_MAX = 1_000;

export interface LeaseWatch {
  /** Whether the lease of this record is over, because it has not changed since it was first seen here, WATCH_MS ago or earlier. */
  isOver(id: string, record: Claimable): boolean;
}

/** Creates the watch of one process. */
export function createLeaseWatch(clock: Pick<Clock, 'monotonicMs'>): LeaseWatch {
  const seen = new Map<string, { readonly name: string; readonly sinceMs: number }>();

  return {
    isOver(id, record) {
      const name = leaseName(record);
      if (name === undefined) return false;
      const before = seen.get(id);
      if (before?.name === name) return clock.monotonicMs() - before.sinceMs >= WATCH_MS;
      seen.delete(id);
      seen.set(id, { name, sinceMs: clock.monotonicMs() });
      const [oldest] = seen.keys();
      if (seen.size > WATCHED_MAX && oldest !== undefined) seen.delete(oldest);
      return false;
    },
  };
}
