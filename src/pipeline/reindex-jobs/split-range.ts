/**
 * Splitting a range in hand. Boundaries are looked for while its turn goes on; the swap that stores the turn shortens the
 * range and says what was split off, from which those ranges' own records are made: a crash in between loses nothing, and
 * no key is in two ranges at any moment.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { placeOf } from '../../domain/reindex/job-steps.ts';
import type { JobRecord, RangeRecord } from '../../domain/reindex/job.ts';
import type { Cut } from '../../domain/reindex/range-steps.ts';
import { FaultError } from '../../domain/fault.ts';
import type { BucketListing } from '../ports/storage.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';
import { cutKeys, probeListing } from './key-probes.ts';
import { RANGES_MAX, type RangeLimits } from './range-records.ts';
import type { TurnSlot } from './run-range.ts';

/** LISTs of one search: eight parts take some fifty; keys that are hard to cut are not looked at for ever. */
const REQUESTS_MAX = 100;

interface SearchDependencies {
  readonly listing: BucketListing;
  readonly limits: Pick<RangeLimits, 'splitKeysMin'>;
}

interface Splittable {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  readonly range: Pick<RangeRecord, 'cursor' | 'to'>;
  readonly slot: Pick<TurnSlot, 'splitWanted' | 'partsWanted' | 'notSplit'>;
}

/** The search for where to cut a range, beside its turn. */
export interface CutSearch {
  /** The turn may end: there is something to be split. */
  readonly hasFound: boolean;
  /** Ends it. Where the range may be cut, in key order, and how many LISTs that took. Throws what nobody foresaw. */
  end(): Promise<{ readonly boundaries: readonly string[]; readonly requests: number }>;
}

/** Begins as soon as a split is wanted. A listing that does not answer now is the turn's business. */
export function searchCuts(
  { listing, limits }: SearchDependencies,
  { job, bucket, range, slot }: Splittable,
  stopped: AbortSignal,
): CutSearch {
  const ending = new AbortController();
  const signal = AbortSignal.any([stopped, ending.signal]);
  const isWanted = (): boolean => !signal.aborted && slot.partsWanted() > 1;
  const isAllowed = (): boolean => isWanted() && probe.requests() < REQUESTS_MAX;
  const probe = probeListing({ listing, place: bucket, prefix: job.prefix, keysMin: limits.splitKeysMin, isWanted: isAllowed }, signal);
  let boundaries: readonly string[] = [];
  let searching: Promise<void> | undefined;

  async function search(): Promise<void> {
    try {
      boundaries = await cutKeys(range, slot.partsWanted(), probe);
    } catch (error) {
      if (!(error instanceof FaultError) && !signal.aborted) throw error;
    }
    if (boundaries.length === 0 && isWanted()) slot.notSplit();
  }

  void slot.splitWanted.then(() => {
    if (!isWanted()) return;
    searching = search();
    // told by end()
    searching.catch(() => undefined);
  });

  return {
    get hasFound() {
      return boundaries.length > 0;
    },
    async end() {
      ending.abort(new Error('the turn has ended'));
      await searching;
      return { boundaries, requests: probe.requests() };
    },
  };
}

/**
 * The boundaries with numbers that no other range has: as many as the job may still have, none when it does not run or its
 * record cannot be changed now.
 */
export async function numberCuts(state: StateStore, jobId: string, boundaries: readonly string[]): Promise<readonly Cut[]> {
  if (boundaries.length === 0) return [];
  let first = 0;
  let count = 0;
  const job = await updateRecord(state, refs.job(jobId), (current) => {
    if (current?.rangesCut === undefined || placeOf(current) !== 'comparing') return undefined;
    first = current.rangesCut;
    count = Math.min(boundaries.length, RANGES_MAX - first);
    return count <= 0 ? undefined : { ...current, rangesCut: first + count };
  }).catch((error: unknown) => {
    if (error instanceof FaultError) return undefined;
    throw error;
  });
  return job === undefined ? [] : boundaries.slice(0, count).map((boundary, index) => ({ boundary, number: first + index }));
}
