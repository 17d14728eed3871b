/** Claims a range for one turn, and tidies up ranges that no turn may run on: those of a job that is paused or has ended. */
import type { BucketRecord } from '../../domain/bucket.ts';
import { asleep, claimOf } from '../../domain/reindex/claims.ts';
import { phaseOf } from '../../domain/reindex/job-transitions.ts';
import { hasEnded, type JobRecord, type RangeRecord } from '../../domain/reindex/job.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import { createTakeRange, type HeldRange } from './held-range.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';
import type { LeaseWatch } from './lease-watch.ts';
import type { Occupancy } from './occupancy.ts';

export interface ClaimedRange {
  readonly job: JobRecord;
  readonly bucket: BucketRecord;
  readonly range: HeldRange;
}

interface ClaimDependencies extends EndsDependencies {
  readonly occupancy: Occupancy;
  readonly ends: JobEnds;
  readonly watch: LeaseWatch;
  readonly worker: string;
}

/** Creates the function. It resolves with undefined if there is nothing to do on the range now. It throws the store's fault. */
export function createClaimRange(dependencies: ClaimDependencies) {
  const { state, clock, telemetry, occupancy, ends, watch } = dependencies;
  const takeAndHold = createTakeRange(dependencies);

  return async function claimRange({ jobId, number }: Pick<RangeRecord, 'jobId' | 'number'>): Promise<ClaimedRange | undefined> {
    // the list may be behind, and many workers try the same few ranges: one request shows that another one has it
    const range = await readRecord(state, refs.range(jobId, number));
    if (range === undefined || !isClaimable(range)) return undefined;
    const job = await readRecord(state, refs.job(jobId));
    if (job === undefined || hasEnded(job)) {
      // a worker died before it had removed the ranges, or the list is behind
      await removeRecord(state, refs.range(jobId, number).id);
      return undefined;
    }
    // if another job occupies its bucket, the job's own step pauses it
    if (phaseOf(job) !== 'comparing' || !(await occupancy.mayRun(job))) {
      await putToSleep(jobId, number);
      return undefined;
    }
    const bucket = await readRecord(state, refs.bucket(job.bucket));
    if (bucket === undefined) {
      await ends.cancel(job);
      return undefined;
    }
    const taken = await takeAndHold(jobId, number);
    telemetry.count('tally_reindex_claims_total', 1, { result: taken.kind });
    switch (taken.kind) {
      case 'taken':
        return { job, bucket, range: taken.range };
      case 'early':
      case 'leased':
        return undefined;
      case 'poisonous':
        await ends.fail(job, taken.error);
        return undefined;
    }
  };

  function isClaimable(range: RangeRecord): boolean {
    const { kind } = claimOf(range, clock.nowMs(), watch.isOver(refs.range(range.jobId, range.number).id, range));
    if (kind === 'early' || kind === 'leased') telemetry.count('tally_reindex_claims_total', 1, { result: kind });
    return kind === 'taken' || kind === 'poisonous';
  }

  /** The range is not due until its job continues: hundreds of ranges of a paused job must not hide those of others. */
  async function putToSleep(jobId: string, number: number): Promise<void> {
    const ref = refs.range(jobId, number);
    await updateRecord(state, ref, (range) => (range !== undefined && isClaimable(range) ? asleep(range) : undefined), 'soon');
  }
}
