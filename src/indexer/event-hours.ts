/** Counts the events of this process, and stores them once a minute in its record of the hour. */
import { createHourCounts, DAY_MS, hourOf } from '../records/event-hours.ts';
import type { WithPorts } from '../store/store.ts';
import { eventHourIdOf, pagesOf, refs, updateRecord } from '../store/stored.ts';

/** Records read by one request, of at most a few kilobytes each. */
const PAGE = 200;
/** The present hour, and the one before while the store does not answer. */
const HOURS_MAX = 2;

export interface EventCounter {
  /** Counts an event, in memory only. `lagMs`: how long it took until a search found it, if that is known. */
  event(lagMs?: number): void;
  /** Stores the counts. Throws the store's fault; the next call then stores them. */
  store(signal?: AbortSignal): Promise<void>;
}

/** Creates a process's counter. When the process ends, counts that were not stored are lost: a minute's at most. */
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
