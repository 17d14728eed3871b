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
  const open = [...entries].flatMap((entry) => {
    const atMs = dueAtMs(entry);
    return atMs === undefined ? [] : [{ id: entry.id, atMs }];
  });
  const found = open.filter(({ atMs }) => atMs <= nowMs || atMs > nowMs + aheadMaxMs).slice(0, limit);
  return { found: found.map(({ id }) => id), isAnyOpen: open.length > 0 };
}
