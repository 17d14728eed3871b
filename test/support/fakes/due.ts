/** What StateStore.due() promises, over entries in memory. */
import type { StateEntry, StateStore } from '../../../src/store/store.ts';

/** When the job is due; undefined of one that has ended. Simulated years ask a hundred thousand times, too often for a schema. */
function dueAtMs({ kind, record }: StateEntry): number | undefined {
  if (kind !== 'job' || typeof record !== 'object' || record === null || !('dueAtMs' in record)) return undefined;
  return typeof record.dueAtMs === 'number' ? record.dueAtMs : undefined;
}

/** In the order of `entries`. */
export function dueAmong(
  entries: Iterable<StateEntry>,
  { nowMs, aheadMaxMs, limit }: Parameters<StateStore['due']>[0],
): Awaited<ReturnType<StateStore['due']>> {
  const due = [...entries].filter((entry) => {
    const atMs = dueAtMs(entry);
    return atMs !== undefined && (atMs <= nowMs || atMs > nowMs + aheadMaxMs);
  });
  return due.slice(0, limit).map(({ id }) => id);
}
