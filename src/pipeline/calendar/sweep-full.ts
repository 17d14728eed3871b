/** Starts the scheduled re-index of every bucket. */
import type { BucketRecord } from '../../domain/bucket.ts';
import { fullSweepAction, fullSweepBegun, fullSweepName } from '../../domain/calendar/full-sweep.ts';
import { scheduleSchema } from '../../domain/calendar/schedule.ts';
import { jobSchema } from '../../domain/reindex/job.ts';
import { RequestError } from '../../domain/request-error.ts';
import { listAllRecords, readRecord, refs, updateRecord } from '../records/stored.ts';
import type { StartJob } from './close-gaps.ts';
import type { DueOf, Visit } from './sweep.ts';
import type { WithPorts } from '../ports/ports.ts';

interface FullSweepDependencies extends WithPorts<'state' | 'clock'> {
  readonly startJob: StartJob;
  /** From one compare of a bucket to the next; 0: none is scheduled. */
  readonly intervalMs: number;
}

/** Creates the function that decides, by lists of all schedules and jobs, for which buckets something is to be done in a run. */
export function createFullDue({ state, clock, intervalMs }: Pick<FullSweepDependencies, 'state' | 'clock' | 'intervalMs'>): DueOf {
  return async () => {
    if (intervalMs === 0) return () => false;
    const schedules = new Map((await listAllRecords(state, 'schedule', scheduleSchema)).map((each) => [each.name, each]));
    const jobs = new Map((await listAllRecords(state, 'job', jobSchema)).map((each) => [each.id, each]));
    return ({ bucket }) => {
      const current = schedules.get(fullSweepName(bucket));
      const job = current?.jobId === undefined ? undefined : jobs.get(current.jobId);
      return fullSweepAction(current, { bucket, nowMs: clock.nowMs(), intervalMs, job }).kind !== 'wait';
    };
  };
}

/** Creates the visit of one bucket. A bucket that a job occupies is visited again later. */
export function createVisitFull({ state, startJob, clock, intervalMs }: FullSweepDependencies): Visit {
  return async function visitFull({ bucket, enrich }, signal) {
    if (intervalMs === 0) return undefined;
    const ref = refs.schedule(fullSweepName(bucket));
    const current = await readRecord(state, ref, signal);
    const job = current?.jobId === undefined ? undefined : await readRecord(state, refs.job(current.jobId), signal);
    const action = fullSweepAction(current, { bucket, nowMs: clock.nowMs(), intervalMs, job });
    switch (action.kind) {
      case 'wait':
        return undefined;
      case 'store':
        await updateRecord(state, ref, () => action.record);
        return undefined;
      case 'begin':
        return begin({ bucket, enrich }, signal);
    }
  };

  async function begin({ bucket, enrich }: Pick<BucketRecord, 'bucket' | 'enrich'>, signal: AbortSignal): Promise<number | undefined> {
    try {
      // its deletions are limited, whatever gaps it closes
      const tags = enrich === 'tags' ? { tags: true } : {};
      const job = await startJob({ bucket, prefix: '', mode: 'apply', requestedBy: 'schedule', ...tags }, signal);
      await updateRecord(state, refs.schedule(fullSweepName(bucket)), () =>
        fullSweepBegun(bucket, job.id, { nowMs: clock.nowMs(), intervalMs }),
      );
      return 0;
    } catch (error) {
      if (error instanceof RequestError && error.code === 'job.conflict') return undefined;
      throw error;
    }
  }
}
