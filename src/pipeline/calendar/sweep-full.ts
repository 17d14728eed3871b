/** Starts the scheduled re-index of every bucket. */
import { isSweepDue, maySweepBeDue } from '../../domain/calendar/full-sweep.ts';
import { RequestError } from '../../domain/request-error.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import type { StartJob } from './close-gaps.ts';
import type { DueOf, Visit } from './sweep.ts';
import type { WithPorts } from '../ports/ports.ts';

interface FullSweepDependencies extends WithPorts<'state' | 'clock'> {
  readonly startJob: StartJob;
  /** From one compare of a bucket to the next; 0: none is scheduled. */
  readonly intervalMs: number;
}

/** Creates the function that decides for which buckets something may be to be done in a run. */
export function createFullDue({ clock, intervalMs }: Pick<FullSweepDependencies, 'clock' | 'intervalMs'>): DueOf {
  return async () => (bucket) => intervalMs > 0 && maySweepBeDue(bucket, { nowMs: clock.nowMs(), intervalMs });
}

/** Creates the visit of one bucket. A bucket that a job occupies is visited again later. */
export function createVisitFull({ state, startJob, clock, intervalMs }: FullSweepDependencies): Visit {
  return async function visitFull(record, signal) {
    const { bucket, enrich, sweep } = record;
    const last = sweep && (await readRecord(state, refs.job(sweep.jobId), signal));
    if (intervalMs === 0 || !isSweepDue(record, last, { nowMs: clock.nowMs(), intervalMs })) return undefined;
    try {
      // its deletions are limited, whatever gaps it closes
      const tags = enrich === 'tags' ? { tags: true } : {};
      const { id: jobId } = await startJob({ bucket, prefix: '', mode: 'apply', requestedBy: 'schedule', ...tags }, signal);
      const begun = { jobId, atMs: clock.nowMs() };
      await updateRecord(state, refs.bucket(bucket), (current) => current && { ...current, sweep: begun });
      return 0;
    } catch (error) {
      if (error instanceof RequestError && error.code === 'job.conflict') return undefined;
      throw error;
    }
  };
}
