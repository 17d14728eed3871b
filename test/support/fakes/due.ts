/** What StateStore.due() promises, over entries in memory. */
import { z } from 'zod';
import type { StateEntry, StateStore } from '../../../src/store/store.ts';

const dueSchema = z.looseObject({ dueAtMs: z.number() });

/** In the order of `entries`. */
export function dueAmong(
  entries: Iterable<StateEntry>,
  { nowMs, aheadMaxMs, limit }: Parameters<StateStore['due']>[0],
): Awaited<ReturnType<StateStore['due']>> {
  const open = [...entries].filter(({ kind, record }) => kind === 'job' && dueSchema.safeParse(record).success);
  const found = open
    .filter(({ record }) => {
      const { dueAtMs } = dueSchema.parse(record);
      return dueAtMs <= nowMs || dueAtMs > nowMs + aheadMaxMs;
    })
    .slice(0, limit)
    .map(({ id }) => id);
  return { found, isAnyOpen: open.length > 0 };
}
