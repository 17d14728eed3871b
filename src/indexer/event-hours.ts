/** Counts the events of this process, and stores them once a minute in its record of the hour. */
import { createHourCounts, DAY_MS, hourOf } from '../records/event-hours.ts';
import type { WithPorts } from '../store/store.ts';
import { eventHourIdOf, pagesOf, refs, updateRecord } from '../store/stored.ts';

/** Records of one request, each of at most a few kilobytes. */
const PAGE = 200;
/** While the store does not answer, the hour before is kept as well. */
const HOURS_MAX = 2;

export interface EventCounter {
  /** An event arrived. `lagMs`: how long it took until a search found it; absent: it is not known. It only writes to memory. */
  event(lagMs?: number): void;
  /** Stores what was counted. Throws the store's fault; the next call stores it then. */
  store(signal?: AbortSignal): Promise<void>;
}

/** Creates the recorder of one process. What was not stored when the process ends is lost: a minute at most. */
export function createEventCounter({
  state,
  clock,
  worker,
}: WithPorts<'state' | 'clock'> & { /** No other process has or had this name. */ readonly worker: string }): EventCounter {
  const hours = new Map<number, ReturnType<typeof createHourCounts>>();

  function countsAt(nowMs: number): ReturnType<typeof createHourCounts> {
    const hourMs = hourOf(nowMs);
    let counts = hours.get(hourMs);
    if (counts === undefined) hours.set(hourMs, (counts = createHourCounts(hourMs)));
    const [oldest] = hours.keys();
    if (hours.size > HOURS_MAX && oldest !== undefined) hours.delete(oldest);
    return counts;
  }

  /** Deletes the records of all processes that are older than a day. */
  async function purge(nowMs: number, signal: AbortSignal | undefined): Promise<void> {
    const firstKept = eventHourIdOf(hourOf(nowMs - DAY_MS));
    for await (const entries of pagesOf(state, 'event-hour', { limit: PAGE, signal })) {
      const old = entries.filter(({ id }) => id < firstKept);
      for (const { id, version } of old) await state.remove(id, version, signal, 'soon');
      if (old.length < PAGE) return;
    }
  }

  return {
    event(lagMs) {
      const nowMs = clock.nowMs();
      countsAt(nowMs).event(nowMs, lagMs);
    },
    async store(signal) {
      const nowMs = clock.nowMs();
      countsAt(nowMs).seen(nowMs);
      for (const [hourMs, counts] of hours) {
        await updateRecord(state, refs.eventHour(hourMs, worker), () => counts.record(worker), 'soon');
        if (hourMs === hourOf(nowMs)) continue;
        hours.delete(hourMs);
        await purge(nowMs, signal);
      }
    },
  };
}
