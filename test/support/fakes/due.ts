/** What StateStore.due() promises, over entries in memory. */
import { z } from 'zod';
import type { StateEntry, StateStore } from '../../../src/pipeline/ports/state.ts';

const dueSchema = z.looseObject({ dueAtMs: z.number() });

/** Jobs first, otherwise in the order of `entries`. */
export function dueAmong(
  entries: Iterable<StateEntry>,
  { nowMs, aheadMaxMs, limit }: Parameters<StateStore['due']>[0],
): Awaited<ReturnType<StateStore['due']>> {
  const open = [...entries].filter(({ kind, record }) => ['job', 'range'].includes(kind) && dueSchema.safeParse(record).success);
  const found = open
    .filter(({ record }) => {
      const { dueAtMs } = dueSchema.parse(record);
      return dueAtMs <= nowMs || dueAtMs > nowMs + aheadMaxMs;
    })
    .toSorted((a, b) => (a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : 0))
    .slice(0, limit)
    .map(({ id, record }) => {
      const { examples: _, ...rest } = z.looseObject({}).parse(record);
      return { id, record: rest };
    });
  return { found, isAnyOpen: open.length > 0 };
}
