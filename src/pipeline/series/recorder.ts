/**
 * Counts what this process sees, and stores it once a minute in the record of the hour: one small write, whatever arrived. A minute
 * that a process has not stored when it ends is lost.
 */
import { createHourCounts, HOUR_MS, hourOf, type HourCounts } from '../../domain/series/hour.ts';
import { refs, updateRecord } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

export interface SeriesRecorder {
  /** An event arrived. `lagMs`: how long it took until a search found it; absent: it is not known. It only writes to memory. */
  event(bucket: string, lagMs?: number): void;
  /** How many buckets have each status now. It only writes to memory. */
  statuses(counts: Readonly<Record<string, number>>): void;
  /** Stores what was counted. Throws the store's fault; the next call stores it then. */
  store(): Promise<void>;
}

/** What records nothing. */
export const noSeries: SeriesRecorder = { event: () => undefined, statuses: () => undefined, store: () => Promise.resolve() };

interface RecorderDependencies extends WithPorts<'state' | 'clock'> {
  /** The name of this process, which no other one has or had. */
  readonly worker: string;
}

/** While the store does not answer, this hour and the one before are kept: a record is never written later than an hour after its hour. */
const HOURS_MAX = 2;

/** Creates the recorder of one process. */
export function createSeriesRecorder({ state, clock, worker }: RecorderDependencies): SeriesRecorder {
  const hours = new Map<number, HourCounts>();

  function current(nowMs: number): HourCounts {
    const hourMs = hourOf(nowMs);
    let counts = hours.get(hourMs);
    if (counts !== undefined) return counts;
    hours.set(hourMs, (counts = createHourCounts(hourMs)));
    const [oldest] = hours.keys();
    if (hours.size > HOURS_MAX && oldest !== undefined) hours.delete(oldest);
    return counts;
  }

  return {
    event(bucket, lagMs) {
      const nowMs = clock.nowMs();
      current(nowMs).event(bucket, nowMs, lagMs);
    },
    statuses(counts) {
      const nowMs = clock.nowMs();
      current(nowMs).statuses(counts, nowMs);
    },
    async store() {
      for (const [hourMs, counts] of hours) {
        const passed = (hourOf(clock.nowMs()) - hourMs) / HOUR_MS;
        if (passed >= HOURS_MAX) {
          hours.delete(hourMs);
          continue;
        }
        await updateRecord(state, refs.series(hourMs, worker), () => counts.record(worker), 'soon');
        if (passed > 0) hours.delete(hourMs);
      }
    },
  };
}
