/** A job's brake as one turn of one of its ranges meets it: tombstones are reserved in the job's record before they are written. */
import { faultOf, type Fault } from '../../domain/fault.ts';
import { placeOf, reserved } from '../../domain/reindex/job-steps.ts';
import type { StateStore } from '../ports.ts';
import type { TurnResult } from '../reindex/reconcile-turn.ts';
import { refs, updateRecord } from '../state-records.ts';

/** Of one swap: large enough to be rare, small enough to leave some to the other ranges. */
const RESERVE_MAX = 500;

export interface Brake {
  /** Reserves up to `count` tombstones, at most 500; answers how many. 0 as well where the store cannot be asked. Never rejects. */
  readonly reserve: (count: number) => Promise<number>;
  /** The turn's result, where what was held back is the brake's only if the brake held it: a job may have been paused or cancelled meanwhile, or the store out of reach. */
  readonly blame: (result: TurnResult) => TurnResult;
}

/** Creates the brake of one turn. */
export function createBrake(state: StateStore, jobId: string): Brake {
  let fault: Fault | undefined;
  let isHeld = false;

  async function reserve(wanted: number): Promise<number> {
    let granted = 0;
    await updateRecord(state, refs.job(jobId), (job) => {
      if (job === undefined) return undefined;
      const reservation = reserved(job, wanted);
      ({ granted } = reservation);
      isHeld = granted < wanted && (placeOf(job) === 'comparing' || job.pausedBecause === 'brake');
      return reservation.job;
    });
    return granted;
  }

  return {
    reserve: (count) =>
      reserve(Math.min(count, RESERVE_MAX)).catch((error: unknown) => {
        fault = faultOf(error);
        return 0;
      }),
    blame({ braked, ...result }) {
      if (braked === undefined) return result;
      if (fault !== undefined) return { ...result, fault };
      return isHeld ? { ...result, braked } : result;
    },
  };
}
