/** A state store whose lists show what was written with `listed: 'soon'` only after a while, as OpenSearch's do. */
import type { Clock } from '../../../src/process/clock.ts';
import type { StateEntry, StateStore } from '../../../src/store/store.ts';
import { dueAmong } from './due.ts';

/** What lists show of an entry until then; undefined: nothing. */
interface Hidden {
  readonly shown: StateEntry | undefined;
  readonly untilMs: number;
}

/** Wraps a state store; its lists are `lagMs` of the clock behind. */
export function laggingState(state: StateStore, clock: Pick<Clock, 'monotonicMs'>, lagMs: number): StateStore {
  const hidden = new Map<string, Hidden>();

  function shownOf(entry: StateEntry): readonly StateEntry[] {
    const behind = hidden.get(entry.id);
    if (behind === undefined || behind.untilMs <= clock.monotonicMs()) return [entry];
    return behind.shown === undefined ? [] : [behind.shown];
  }

  return {
    ...state,
    async put(entry, expected, signal) {
      const before = await state.get(entry.id);
      const stored = await state.put(entry, expected, signal);
      if (stored === 'conflict') return stored;
      const [shown] = before === undefined ? [] : shownOf(before);
      if (entry.listed === 'soon') hidden.set(entry.id, { shown, untilMs: clock.monotonicMs() + lagMs });
      else hidden.delete(entry.id);
      return stored;
    },
    async due(when, signal) {
      const all = await state.list('job', { limit: 1_000 }, signal);
      return dueAmong(all.flatMap(shownOf), when);
    },
    async list(...asked) {
      return (await state.list(...asked)).flatMap(shownOf);
    },
  };
}
