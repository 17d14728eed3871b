/**
 * The records of a job's ranges. Any worker can create them from records that are stored already: from the job's cuts, or from
 * the range that one was split off. So a crash neither loses a range nor creates it twice.
 */
import { noCounts } from '../../domain/reindex/counts.ts';
import { rangeSchema, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import type { StateStore } from '../ports/state.ts';
import { parseEntry, readRecord, refs, removeRecord, pagesOf } from '../records/stored.ts';

/**
 * The most ranges of one job, those that are done included. 64 workers compare 512 at once, and parts that were cut without
 * knowing their sizes are cut again three or four times: with 512 in all, 64 workers took longer than 8 (100,000,000 objects).
 */
export const RANGES_MAX = 2_048;

/** The smallest sizes of ranges. */
export interface RangeLimits {
  /** Documents in a range that is cut in advance, approximately. */
  readonly rangeDocumentsMin: number;
  /** Keys that a range must have left to be split; at most 1,000. */
  readonly splitKeysMin: number;
}

/** One listing compares 10,000 documents in about a second, so a smaller range is not worth its overhead; 1,000 keys are one page. */
export const RANGE_LIMITS: RangeLimits = { rangeDocumentsMin: 10_000, splitKeysMin: 1_000 };

/** The bounds of a new range. */
interface Bounds {
  readonly from: string;
  readonly to?: string | undefined;
}

/** The bounds of the range with this number, if it was cut in advance; undefined if it was split off. */
export function boundsCut({ cuts = [] }: Pick<JobRecord, 'cuts'>, number: number): Bounds | undefined {
  if (number > cuts.length) return undefined;
  return { from: cuts[number - 1] ?? '', to: cuts[number] };
}

/** A new range, of which nothing is compared yet. It is due. `isCounted`: it is a part of a range whose keys are counted. */
export function freshRange(
  jobId: string,
  number: number,
  { from, to, nowMs, isCounted }: Bounds & { readonly nowMs: number; readonly isCounted?: boolean | undefined },
): RangeRecord {
  return {
    jobId,
    number,
    from,
    ...(to !== undefined && { to }),
    cursor: from,
    done: false,
    counts: noCounts,
    ...(isCounted === true && { isCounted }),
    fruitless: 0,
    dueAtMs: nowMs,
  };
}

/**
 * Stores the range unless its record exists; resolves with whether it was stored. Lists may lack it for a second, since
 * whatever decides about a range reads it by its id. Throws the store's fault.
 */
export async function ensureRange(state: StateStore, range: RangeRecord): Promise<boolean> {
  const { id, kind } = refs.range(range.jobId, range.number);
  return (await state.put({ id, kind, record: range, listed: 'soon' }, null)) !== 'conflict';
}

/**
 * Stores the record of a range that was cut in advance, unless it exists. Resolves with false if the number is not one of
 * those ranges. Throws the store's fault.
 */
export async function ensureCutRange(
  state: StateStore,
  job: JobRecord,
  range: { readonly number: number; readonly nowMs: number },
): Promise<boolean> {
  const bounds = boundsCut(job, range.number);
  if (bounds === undefined) return false;
  await ensureRange(state, freshRange(job.id, range.number, { ...bounds, nowMs: range.nowMs }));
  return true;
}

/** A write that lists show at once waits for the next refresh, and 16 of them take no longer than one. */
const WRITES_AT_ONCE = 16;

/** Writes the records of many ranges, 16 at a time. Waits for all writes in flight, then rejects with the first failure, if any. */
export async function writeEach<Item>(items: readonly Item[], write: (item: Item) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const writers = Array.from({ length: Math.min(WRITES_AT_ONCE, items.length) }, async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await write(item);
  });
  const results = await Promise.allSettled(writers);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/**
 * A job's range records as they are stored now, in the order of their numbers: those that the list shows as done, which never
 * change again, and the others read by their ids. Throws the store's fault.
 */
export async function readRanges(state: StateStore, job: Pick<JobRecord, 'id' | 'rangesCut'>): Promise<readonly RangeRecord[]> {
  const ranges = new Map((await listRanges(state, job.id)).filter(({ done }) => done).map((range) => [range.number, range]));
  const open = Array.from({ length: job.rangesCut ?? 0 }, (_, number) => number).filter((number) => !ranges.has(number));
  await writeEach(open, async (number) => {
    const range = await readRecord(state, refs.range(job.id, number));
    if (range !== undefined) ranges.set(number, range);
  });
  return [...ranges.values()].toSorted((a, b) => a.number - b.number);
}

/** A job's range records as listed, which may be a second behind, in the order of their numbers; at most RANGES_MAX. Throws the store's fault. */
export async function listRanges(state: StateStore, jobId: string, signal?: AbortSignal): Promise<readonly RangeRecord[]> {
  const pages = await Array.fromAsync(pagesOf(state, 'range', { prefix: `range:${jobId}:`, signal }));
  return pages.flat().map((entry) => parseEntry(entry, rangeSchema));
}

/** A page of a job's range records as listed: at most `limit` (1 to 1,000) with greater numbers than this one. Throws the store's fault. */
export async function listRangesAfter(
  state: StateStore,
  jobId: string,
  { number, limit }: { readonly number: number; readonly limit: number },
  signal?: AbortSignal,
): Promise<readonly RangeRecord[]> {
  const ofJob = `range:${jobId}:`;
  const after = number < 0 ? ofJob : refs.range(jobId, number).id;
  const entries = await state.list('range', { after, limit }, signal);
  return entries.filter(({ id }) => id.startsWith(ofJob)).map((entry) => parseEntry(entry, rangeSchema));
}

/**
 * Removes all range records of a job, one request for each. Lists may show them for a second, because nothing is decided by
 * a list of ranges alone: waiting for each removal to be listed took 26 s for 2,048 ranges. Throws the store's fault.
 */
export async function removeRanges(state: StateStore, jobId: string): Promise<void> {
  for await (const page of pagesOf(state, 'range', { prefix: `range:${jobId}:` }))
    await writeEach(page, async ({ id, version }) => {
      // the list may be behind, or a worker holds the range
      if ((await state.remove(id, version, undefined, 'soon')) === 'conflict') await removeRecord(state, id);
    });
}
