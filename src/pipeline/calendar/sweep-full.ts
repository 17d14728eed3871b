/** Starts the weekly re-index of buckets whose source may lose events silently. */
import { isBestEffort, type BucketRecord } from '../../domain/bucket.ts';
import { fullSweepAction, fullSweepBegun, fullSweepName } from '../../domain/calendar/full-sweep.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import type { StartJob } from './close-gaps.ts';
import type { Visit } from './sweep.ts';

/** Creates the visit of one bucket. A bucket that a job occupies is visited again later. */
export function createVisitFull({
  state,
  startJob,
  clock,
}: {
  readonly state: StateStore;
  readonly startJob: StartJob;
  readonly clock: Clock;
}): Visit {
  return async function visitFull({ bucket, source, enrich }, signal) {
    if (!isBestEffort(source)) return undefined;
    const ref = refs.schedule(fullSweepName(bucket));
    const current = await readRecord(state, ref, signal);
    const job = current?.jobId === undefined ? undefined : await readRecord(state, refs.job(current.jobId), signal);
    const action = fullSweepAction(current, { bucket, nowMs: clock.nowMs(), job });
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
      // without gap ids the brake keeps its limit; gaps that the job covers are closed all the same
      const tags = enrich === 'tags' ? { tags: true } : {};
      const job = await startJob({ bucket, prefix: '', mode: 'apply', requestedBy: 'schedule', gapIds: [], ...tags }, signal);
      await updateRecord(state, refs.schedule(fullSweepName(bucket)), () => fullSweepBegun(bucket, job.id, clock.nowMs()));
      return 0;
    } catch (error) {
      if (error instanceof RequestError && error.code === 'job.conflict') return undefined;
      throw error;
    }
  }
}
