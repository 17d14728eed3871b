/**
 * Splitting a range in hand, between two of its turns. The swap that shortens it also says what was split off, from which
 * that range's own record is made: a crash in between loses nothing, and no key is in two ranges at any moment.
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import { findBoundary } from '../../domain/reindex/boundary.ts';
import { addCounts } from '../../domain/reindex/counts.ts';
import { placeOf } from '../../domain/reindex/job-steps.ts';
import type { JobRecord, RangeRecord } from '../../domain/reindex/job.ts';
import { givenBack, splitRange } from '../../domain/reindex/range-steps.ts';
import { FaultError } from '../../domain/fault.ts';
import type { BucketListing } from '../ports-reindex.ts';
import { refs, updateRecord } from '../state-records.ts';
import type { HeldRange } from './held-range.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import { probeListing } from './key-probes.ts';
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
  /** Whether it is still wanted: a stop or a pause is not kept waiting. */
  readonly isWanted: () => boolean;
}

/** Creates the split: the range is given back, shorter where a boundary was found. Resolves with whether it was split. Throws the store's fault. */
export function createSplitHeld({ state, telemetry, listing, ends, limits }: SplitDependencies) {
  return async function splitHeld({ job, bucket, range, isWanted }: Splittable, signal: AbortSignal): Promise<boolean> {
    const probe = probeListing({ listing, place: bucket, prefix: job.prefix, keysMin: limits.splitKeysMin, isWanted }, signal);
    const boundary = await findBoundary(range.record, probe).catch((error: unknown) => noBoundary(error, signal));
    const number = boundary === undefined ? undefined : await takeNumber(job.id);
    const at = boundary === undefined || number === undefined ? undefined : { boundary, number };
    const isStored = await range.change((record) => {
      const counted: RangeRecord = { ...record, counts: addCounts(record.counts, { listRequests: probe.requests() }) };
      return givenBack(at === undefined ? counted : splitRange(counted, at));
    });
    telemetry.reindexSplit(isStored && at !== undefined);
    if (isStored && at !== undefined) await ends.completeSplit(range.record);
    return isStored && at !== undefined;
  };

  /** Undefined while the job has as many as it may, or does not run. */
  async function takeNumber(jobId: string): Promise<number | undefined> {
    const job = await updateRecord(state, refs.job(jobId), (current) => {
      const cut = current?.rangesCut;
      if (current === undefined || placeOf(current) !== 'comparing' || cut === undefined || cut >= RANGES_MAX) return undefined;
      return { ...current, rangesCut: cut + 1 };
    });
    return job?.rangesCut === undefined ? undefined : job.rangesCut - 1;
  }
}

/** A listing that does not answer now is the next turn's business; a stop leaves the range as it is. */
function noBoundary(error: unknown, signal: AbortSignal): undefined {
  if (error instanceof FaultError || signal.aborted) return undefined;
  throw error;
}
