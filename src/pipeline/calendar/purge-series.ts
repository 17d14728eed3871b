/** Removes the records of hours that are older than a fortnight. */
import { hourOf, SERIES_KEPT_MS } from '../../domain/series/hour.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { seriesIdOf } from '../records/stored.ts';

/** One request lists this many. */
const PAGE = 200;

/** Creates the work of one run. Throws the store's fault. */
export function createPurgeSeries({
  state,
  clock,
}: {
  readonly state: Pick<StateStore, 'list' | 'remove'>;
  readonly clock: Pick<Clock, 'nowMs'>;
}): (signal: AbortSignal) => Promise<void> {
  return async function purgeSeries(signal) {
    // ids are in the order of their hours
    const firstKept = seriesIdOf(hourOf(clock.nowMs() - SERIES_KEPT_MS));
    for (let after: string | undefined; ;) {
      const entries = await state.list('series', { limit: PAGE, ...(after !== undefined && { after }) }, signal);
      const old = entries.filter(({ id }) => id < firstKept);
      for (const { id, version } of old) await state.remove(id, version, signal, 'soon');
      if (old.length < PAGE) return;
      after = old.at(-1)?.id;
    }
  };
}
