/** Reads the records of the hours of all processes. Hours that are over are read once by each process, and kept condensed. */
import { LRUCache } from 'lru-cache';
import { condensed, HOUR_MS, hourOf, hourRecordSchema, type HourRecord } from '../../domain/series/hour.ts';
import { seriesIdOf, pagesOf } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

/** A record has some kilobytes, so that a page has a few megabytes at most. */
const PAGE = 200;
/** From the beginning of an hour until its records do not change any more: two hours by their writers, and one for their clocks. */
const COMPLETE_MS = 3 * HOUR_MS;
/** A bucket of an hour takes some 200 bytes, so that all of them take 10 MB. A fortnight with 50 busiest buckets has a third of them. */
const KEPT_MAX = 50_000;

interface Window {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
}

/** Reads what the steps of a time are made of. One record that this version cannot read is left out. Throws the store's fault. */
export type ReadHours = (window: Window, signal?: AbortSignal) => Promise<readonly HourRecord[]>;

/** Creates the function. It keeps hours that are complete. */
export function createReadHours({ state, clock }: WithPorts<'state' | 'clock'>): ReadHours {
  const kept = new LRUCache<number, HourRecord>({ maxSize: KEPT_MAX, sizeCalculation: ({ busiest }) => busiest.length + 1 });

  return async function readHours({ fromMs, toMs, stepMs }, signal) {
    const firstMs = hourOf(fromMs);
    // shorter steps need the minutes
    if (stepMs < HOUR_MS) return readRecords(state, { fromMs: firstMs, toMs }, signal);
    const endMs = Math.min(hourOf(toMs), hourOf(clock.nowMs() - COMPLETE_MS) + HOUR_MS);
    const hours: HourRecord[] = [];
    let readMs = firstMs;
    for (let hour; readMs < endMs && (hour = kept.get(readMs)) !== undefined; readMs += HOUR_MS) hours.push(hour);
    const records = Map.groupBy(await readRecords(state, { fromMs: readMs, toMs }, signal), ({ hourMs }) => hourMs);
    for (; readMs < endMs; readMs += HOUR_MS) {
      const hour = condensed(readMs, records.get(readMs) ?? []);
      kept.set(readMs, hour);
      hours.push(hour);
      records.delete(readMs);
    }
    return [...hours, ...[...records.values()].flat()];
  };
}

/** The records of the hours that a time touches. */
async function readRecords(
  state: WithPorts<'state' | 'clock'>['state'],
  { fromMs, toMs }: Pick<Window, 'fromMs' | 'toMs'>,
  signal?: AbortSignal,
): Promise<readonly HourRecord[]> {
  const records: HourRecord[] = [];
  // ids are in the order of their hours, and the id of an hour alone is before those of its processes
  for await (const entries of pagesOf(state, 'series', { after: seriesIdOf(fromMs), limit: PAGE, signal })) {
    const parsed = entries.flatMap(({ record }) => hourRecordSchema.safeParse(record).data ?? []);
    records.push(...parsed.filter(({ hourMs }) => hourMs < toMs));
    if ((entries.at(-1)?.id ?? '') >= seriesIdOf(toMs)) break;
  }
  return records;
}
