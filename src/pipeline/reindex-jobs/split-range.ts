/**
 * Splits a held range. Boundaries are searched while its turn runs. The swap that stores the turn also shortens the range and
 * stores what was split off; the records of the new ranges are created from that. So a crash loses nothing, and no key is ever
 * in two ranges.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { phaseOf } from '../../domain/reindex/job-transitions.ts';
import type { JobRecord, RangeRecord } from '../../domain/reindex/job.ts';
import type { Cut } from '../../domain/reindex/range-transitions.ts';
import { placeAfter } from '../../domain/reindex/passed-pages.ts';
import { FaultError } from '../../domain/fault.ts';
import type { BucketListing } from '../ports/storage.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';
import { cutKeys, probeListing } from './key-probes.ts';
import { RANGES_MAX, type RangeLimits } from './range-records.ts';
import type { WorkerSlot } from './worker-slots.ts';

/** LIST requests of one search. Eight parts take about fifty; the bound ends a search among keys that are hard to cut. */
const REQUESTS_MAX = 100;

interface Splittable {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  readonly range: Pick<RangeRecord, 'cursor' | 'to' | 'passed'>;
  readonly slot: Pick<WorkerSlot, 'splitWanted' | 'partsWanted' | 'notSplit'>;
}

/** The search for boundaries of a range, which runs beside its turn. */
export interface CutSearch {
  /** Boundaries were found, so the turn may end and the range be split. */
  readonly hasFound: boolean;
  /** Ends the search. Resolves with the boundaries in key order, and with the number of LIST requests. Throws unexpected errors only. */
  end(): Promise<{ readonly boundaries: readonly string[]; readonly requests: number }>;
}

/** Creates the search, which begins once a split is wanted. A fault of the listing ends it silently: the turn reports such faults. */
export function searchCuts(
  { listing, limits }: { readonly listing: BucketListing; readonly limits: Pick<RangeLimits, 'splitKeysMin'> },
  { job, bucket, range, slot }: Splittable,
  stopped: AbortSignal,
): CutSearch {
  const ending = new AbortController();
  const signal = AbortSignal.any([stopped, ending.signal]);
  const isWanted = (): boolean => !signal.aborted && slot.partsWanted() > 1;
  const isAllowed = (): boolean => isWanted() && probe.requests() < REQUESTS_MAX;
  const probe = probeListing({ listing, location: bucket, prefix: job.prefix, keysMin: limits.splitKeysMin, isWanted: isAllowed }, signal);
  let boundaries: readonly string[] = [];
  let searching: Promise<void> | undefined;

  async function search(): Promise<void> {
    try {
      // pages without keys follow the cursor: the search would pass them as the turn does, and find no key either
      if (placeAfter(range.passed, range.cursor) === undefined) boundaries = await cutKeys(range, slot.partsWanted(), probe);
    } catch (error) {
      if (!(error instanceof FaultError) && !signal.aborted) throw error;
    }
    if (boundaries.length === 0 && isWanted()) slot.notSplit();
  }

  void slot.splitWanted.then(() => {
    if (!isWanted()) return;
    searching = search();
    // end() throws it
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
 * Reserves a range number for each boundary, as far as RANGES_MAX allows. Resolves with none if the job no longer compares or
 * the store fails.
 */
export async function numberCuts(state: StateStore, jobId: string, boundaries: readonly string[]): Promise<readonly Cut[]> {
  if (boundaries.length === 0) return [];
  let first = 0;
  let count = 0;
  const job = await updateRecord(state, refs.job(jobId), (current) => {
    if (current?.rangesCut === undefined || phaseOf(current) !== 'comparing') return undefined;
    first = current.rangesCut;
    count = Math.min(boundaries.length, RANGES_MAX - first);
    return count <= 0 ? undefined : { ...current, rangesCut: first + count };
  }).catch((error: unknown) => {
    if (error instanceof FaultError) return undefined;
    throw error;
  });
  return job === undefined ? [] : boundaries.slice(0, count).map((boundary, index) => ({ boundary, number: first + index }));
}
