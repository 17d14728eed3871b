/**
 * Splitting a range in hand, between two of its turns. The swap that shortens it also says what was split off, from which
 * those ranges' own records are made: a crash in between loses nothing, and no key is in two ranges at any moment.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { addCounts } from '../../domain/reindex/counts.ts';
import { placeOf } from '../../domain/reindex/job-steps.ts';
import type { JobRecord, RangeRecord } from '../../domain/reindex/job.ts';
import { givenBack, splitRange, type Cut } from '../../domain/reindex/range-steps.ts';
import { FaultError } from '../../domain/fault.ts';
import type { BucketListing } from '../ports-reindex.ts';
import { refs, updateRecord } from '../state-records.ts';
import type { HeldRange } from './held-range.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import { cutKeys, probeListing } from './key-probes.ts';
import { RANGES_MAX, type RangeLimits } from './range-records.ts';

interface SplitDependencies extends EndsDependencies {
  readonly listing: BucketListing;
  readonly ends: JobEnds;
  readonly limits: Pick<RangeLimits, 'splitKeysMin'>;
}

interface Splittable {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  readonly range: HeldRange;
  /** Into how many parts, as things stand: a stop or a pause is not kept waiting. */
  readonly partsWanted: () => number;
}

/** Creates the split: the range is given back, shorter where boundaries were found. Resolves with whether it was split. Throws the store's fault. */
export function createSplitHeld({ state, telemetry, listing, ends, limits }: SplitDependencies) {
  return async function splitHeld({ job, bucket, range, partsWanted }: Splittable, signal: AbortSignal): Promise<boolean> {
    const isWanted = (): boolean => partsWanted() > 1;
    const probe = probeListing({ listing, place: bucket, prefix: job.prefix, keysMin: limits.splitKeysMin, isWanted }, signal);
    const boundaries = await cutKeys(range.record, partsWanted(), probe).catch((error: unknown) => noBoundaries(error, signal));
    const cuts = await numbered(job.id, boundaries);
    const isStored = await range.change((record) => {
      const counted: RangeRecord = { ...record, counts: addCounts(record.counts, { listRequests: probe.requests() }) };
      return givenBack(splitRange(counted, cuts));
    });
    const isSplit = isStored && cuts.length > 0;
    telemetry.reindexSplit(isSplit);
    if (isSplit) await ends.completeSplit(range.record);
    return isSplit;
  };

  /** The cuts with numbers that no other range has: as many as the job may still have, none when it does not run. */
  async function numbered(jobId: string, boundaries: readonly string[]): Promise<readonly Cut[]> {
    if (boundaries.length === 0) return [];
    let first = 0;
    let count = 0;
    const job = await updateRecord(state, refs.job(jobId), (current) => {
      if (current?.rangesCut === undefined || placeOf(current) !== 'comparing') return undefined;
      first = current.rangesCut;
      count = Math.min(boundaries.length, RANGES_MAX - first);
      return count <= 0 ? undefined : { ...current, rangesCut: first + count };
    });
    return job === undefined ? [] : boundaries.slice(0, count).map((boundary, index) => ({ boundary, number: first + index }));
  }
}

/** A listing that does not answer now is the next turn's business; a stop leaves the range as it is. */
function noBoundaries(error: unknown, signal: AbortSignal): readonly string[] {
  if (error instanceof FaultError || signal.aborted) return [];
  throw error;
}
