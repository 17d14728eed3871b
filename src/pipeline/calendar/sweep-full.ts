/** Begins the weekly re-index of buckets whose source may lose events without anybody's notice. */
import { isBestEffort } from '../../domain/bucket.ts';
import { fullSweepBegun, fullSweepName, fullSweepStep } from '../../domain/calendar/full-sweep.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import type { StartJob } from './close-gaps.ts';
import type { Visit } from './sweep.ts';

interface FullSweepDependencies {
  readonly state: StateStore;
  readonly startJob: StartJob;
  readonly clock: Clock;
}

/** Creates the visit to one bucket. A bucket with a job of its own has its turn after that. */
export function createVisitFull({ state, startJob, clock }: FullSweepDependencies): Visit {
  return async function visitFull({ bucket, source }, signal) {
    if (!isBestEffort(source)) return undefined;
    const ref = refs.schedule(fullSweepName(bucket));
    const current = await readRecord(state, ref, signal);
    const job = current?.jobId === undefined ? undefined : await readRecord(state, refs.job(current.jobId), signal);
    const step = fullSweepStep(current, { bucket, nowMs: clock.nowMs(), job });
    switch (step.kind) {
      case 'wait':
        return undefined;
      case 'store':
        await updateRecord(state, ref, () => step.record);
        return undefined;
      case 'begin':
        return begin(bucket, signal);
    }
  };

  async function begin(bucket: string, signal: AbortSignal): Promise<number | undefined> {
    try {
      // no gap of its own: the brake stays on. What it covers is closed by it all the same
      const job = await startJob({ bucket, prefix: '', mode: 'apply', requestedBy: 'schedule', gapIds: [] }, signal);
      await updateRecord(state, refs.schedule(fullSweepName(bucket)), () => fullSweepBegun(bucket, job.id, clock.nowMs()));
      return 0;
    } catch (error) {
      if (error instanceof RequestError && error.code === 'job.conflict') return undefined;
      throw error;
    }
  }
}
