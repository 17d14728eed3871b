/**
 * A job whose next step this worker takes. Its record has other writers too (tombstones are reserved in it, ranges are
 * numbered), so each change reads it first. A step that two workers take does no harm, since each of its transitions is one
 * compare-and-swap; the lease keeps the others from it and counts the attempts.
 */
import { randomBytes } from 'node:crypto';
import { asleep, claimOf, heldBy, RENEW_MS, type Claim } from '../../domain/reindex/claims.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { refs, updateRecord } from '../records/stored.ts';
import type { LeaseWatch } from './lease-watch.ts';
import type { WithPorts } from '../ports/ports.ts';

/** Every request of a step has its own time-out, and a step is bounded. One that hangs nevertheless keeps the job from others for this long. */
const STEP_STUCK_MS = 600_000;

export interface HeldJob {
  /** As claimed. */
  readonly job: JobRecord;
  /**
   * Gives the job up, and stores what `change` makes of it (its next time, at least). Nothing is stored if the job is paused, has
   * ended or was claimed by another worker meanwhile. Throws the store's fault; then the job is free when its lease is over.
   */
  release(change: (job: JobRecord) => JobRecord): Promise<void>;
}

interface HeldJobDependencies extends WithPorts<'state' | 'clock'> {
  readonly watch: LeaseWatch;
  readonly worker: string;
}

/** Why a job was not claimed; `poisonous` with its record. */
export type JobClaim =
  | { readonly kind: 'taken'; readonly held: HeldJob }
  | { readonly kind: Exclude<Claim['kind'], 'taken' | 'poisonous'> }
  | { readonly kind: 'poisonous'; readonly job: JobRecord };

/** Creates the function that claims jobs for one worker. It throws the store's fault. */
export function createClaimJob({ state, clock, watch, worker }: HeldJobDependencies): (id: string) => Promise<JobClaim> {
  return async function claimJob(id) {
    const holder = `${worker}/${randomBytes(4).toString('hex')}`;
    let result: JobClaim = { kind: 'early' };
    const claimed = await updateRecord(
      state,
      refs.job(id),
      (job) => {
        result = { kind: 'early' };
        if (job === undefined) return undefined;
        const nowMs = clock.nowMs();
        const claim = claimOf(job, nowMs, watch.isOver(refs.job(id).id, job));
        if (claim.kind === 'taken') return { ...job, fruitless: claim.fruitless, ...heldBy(holder, nowMs) };
        result = claim.kind === 'poisonous' ? { kind: 'poisonous', job } : { kind: claim.kind };
        return undefined;
      },
      'soon',
    );
    return claimed === undefined ? result : { kind: 'taken', held: hold(claimed, holder) };
  };

  /** Changes the job if this worker still holds it. */
  function change(id: string, holder: string, next: (job: JobRecord) => JobRecord): Promise<unknown> {
    return updateRecord(state, refs.job(id), (job) => (job?.lease?.worker === holder ? next(job) : undefined), 'soon');
  }

  function hold(job: JobRecord, holder: string): HeldJob {
    const released = new AbortController();
    const keep = async (): Promise<void> => {
      const untilMs = clock.monotonicMs() + STEP_STUCK_MS;
      while (clock.monotonicMs() < untilMs) {
        await clock.sleep(RENEW_MS, released.signal);
        // the next renewal may succeed; a lease that is over costs one more attempt
        await change(job.id, holder, (current) => ({ ...current, ...heldBy(holder, clock.nowMs()) })).catch(() => undefined);
      }
    };
    // rejects when the job is released, which is not a failure
    void keep().catch(() => undefined);
    return {
      job,
      async release(next) {
        released.abort(new Error('the job was released'));
        await change(job.id, holder, (current) => next(asleep(current)));
      },
    };
  }
}
