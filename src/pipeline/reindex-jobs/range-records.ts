/**
 * The records of a job's ranges. They are made of the job's own record (its cuts) or of the range that they were split
 * off, whichever worker comes first: a crash in between loses none and doubles none.
 */
import { noCounts } from '../../domain/reindex/counts.ts';
import { rangeSchema, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import type { StateStore } from '../ports/state.ts';
import { parseEntry, refs } from '../records/stored.ts';

/** Ranges of one job at most, splits included: with eight at once they keep sixty-four workers busy. */
export const RANGES_MAX = 512;

/** How small ranges may be. */
export interface RangeLimits {
  /** A range cut in advance has about so many documents at least. */
  readonly rangeDocumentsMin: number;
  /** What is split has so many keys left at least; at most 1,000. */
  readonly splitKeysMin: number;
}

/** One listing gets through so many documents in a second, of which more is better than to be split; and a thousand keys are one page. */
export const RANGE_LIMITS: RangeLimits = { rangeDocumentsMin: 10_000, splitKeysMin: 1_000 };

/** What the store lists at once. */
const LIST_MAX = 1_000;

/** The bounds of a range that is being made. */
interface Bounds {
  readonly from: string;
  readonly to?: string | undefined;
}

/** The bounds of the range by this number among those that were cut in advance; undefined for one that was split off. */
export function boundsCut({ cuts = [] }: Pick<JobRecord, 'cuts'>, number: number): Bounds | undefined {
  if (number > cuts.length) return undefined;
  return { from: cuts[number - 1] ?? '', to: cuts[number] };
}

/** A range that nobody has looked at. */
export function freshRange(jobId: string, number: number, { from, to, nowMs }: Bounds & { readonly nowMs: number }): RangeRecord {
  return {
    jobId,
    number,
    from,
    ...(to !== undefined && { to }),
    cursor: from,
    done: false,
    counts: noCounts,
    fruitless: 0,
    turn: 0,
    taskAtMs: nowMs,
    resends: 0,
  };
}

/** Stores the range unless it is there already; resolves with whether it was stored. Throws the store's fault. */
export async function ensureRange(state: StateStore, range: RangeRecord): Promise<boolean> {
  const { id, kind } = refs.range(range.jobId, range.number);
  return (await state.put({ id, kind, record: range }, null)) !== 'conflict';
}

/** Each write waits until the store's lists show it, many as long as one. */
const WRITES_AT_ONCE = 16;

/** Writes records of many ranges, a few at once. Rejects with the first failure, when none is on its way any more. */
export async function writeEach<Item>(items: readonly Item[], write: (item: Item) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const lanes = Array.from({ length: Math.min(WRITES_AT_ONCE, items.length) }, async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await write(item);
  });
  const results = await Promise.allSettled(lanes);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** A job's range records as listed, in the order of their numbers; at most RANGES_MAX. Throws the store's fault. */
export async function listRanges(state: StateStore, jobId: string, signal?: AbortSignal): Promise<readonly RangeRecord[]> {
  const entries = await state.list('range', { after: `range:${jobId}:`, limit: LIST_MAX }, signal);
  return entries.filter(({ id }) => id.startsWith(`range:${jobId}:`)).map((entry) => parseEntry(entry, rangeSchema));
}
