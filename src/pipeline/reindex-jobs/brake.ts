/**
 * A job's brake as one turn of one of its ranges meets it: tombstones are reserved in the job's record before they are
 * written, some ahead of their need, and what is left of them is given back when the turn has ended. A worker that dies
 * takes what it had reserved along.
 */
import { faultOf, type Fault } from '../../domain/fault.ts';
import { givenBackTo, placeOf, reserved } from '../../domain/reindex/job-steps.ts';
import type { StateStore } from '../ports/state.ts';
import type { TurnResult } from '../compare/reconcile-turn.ts';
import { refs, updateRecord } from '../records/stored.ts';

export interface Brake {
  /** Reserves up to `count` tombstones; answers how many. 0 as well where the store cannot be asked. Never rejects. One call at a time. */
  readonly reserve: (count: number) => Promise<number>;
  /** Gives back what was not used. Where the store cannot be asked it stays reserved. Never rejects. */
  readonly giveBack: () => Promise<void>;
  /** The limit that held a reservation back last. */
  readonly met: number | undefined;
  /** The turn's result, where what was held back is the brake's only if the brake held it: a job may have been paused or cancelled meanwhile, or the store out of reach. */
  readonly blame: (result: TurnResult) => TurnResult;
}

/** Creates the brake of one turn. */
export function createBrake(state: StateStore, jobId: string): Brake {
  let fault: Fault | undefined;
  let isHeld = false;
  let met: number | undefined;
  /** Reserved, and not used yet. */
  let ahead = 0;

  async function reserveMore(wanted: number): Promise<void> {
    let granted = 0;
    await updateRecord(state, refs.job(jobId), (job) => {
      if (job === undefined) return undefined;
      const reservation = reserved(job, wanted);
      ({ granted } = reservation);
      isHeld = granted < wanted && (placeOf(job) === 'comparing' || job.pausedBecause === 'brake');
      if (granted < wanted) met = job.brake?.limit;
      return reservation.job;
    });
    ahead += granted;
  }

  return {
    get met() {
      return met;
    },
    async reserve(count) {
      if (count > ahead) {
        await reserveMore(count - ahead).catch((error: unknown) => {
          fault = faultOf(error);
        });
      }
      const granted = Math.min(count, ahead);
      ahead -= granted;
      return granted;
    },
    async giveBack() {
      const unused = ahead;
      if (unused === 0) return;
      ahead = 0;
      await updateRecord(state, refs.job(jobId), (job) => job && givenBackTo(job, unused)).catch(() => undefined);
    },
    blame({ braked, ...result }) {
      if (braked === undefined) return result;
      if (fault !== undefined) return { ...result, fault };
      return isHeld ? { ...result, braked } : result;
    },
  };
}
