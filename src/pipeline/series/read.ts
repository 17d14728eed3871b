/** Reads the records of the hours of all processes. */
import { hourOf, hourRecordSchema, type HourRecord } from '../../domain/series/hour.ts';
import type { StateStore } from '../ports/state.ts';
import { seriesIdOf } from '../records/stored.ts';

/** A record has some kilobytes, so that a page has a few megabytes at most. */
const PAGE = 200;

/** The records of the hours that a time touches. One that this version cannot read is left out. Throws the store's fault. */
export async function readHours(
  state: Pick<StateStore, 'list'>,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  signal?: AbortSignal,
): Promise<readonly HourRecord[]> {
  const records: HourRecord[] = [];
  // ids are in the order of their hours, and the id of an hour alone is before those of its processes
  for (let after = seriesIdOf(hourOf(fromMs)); ;) {
    const entries = await state.list('series', { after, limit: PAGE }, signal);
    const parsed = entries.flatMap(({ record }) => hourRecordSchema.safeParse(record).data ?? []);
    records.push(...parsed.filter(({ hourMs }) => hourMs < toMs));
    const last = entries.at(-1);
    if (last === undefined || entries.length < PAGE || last.id >= seriesIdOf(toMs)) return records;
    after = last.id;
  }
}
