/**
 * A job's brake as one turn of one range uses it. Tombstones are reserved in the job's record before they are written, some
 * of them ahead of need, and the unused ones are given back when the turn has ended. The reservations of a worker that dies
 * are lost.
 */
import { faultOf, type Fault } from '../../domain/fault.ts';
import { givenBackTo, phaseOf, reserved } from '../../domain/reindex/job-transitions.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';

export interface Brake {
  /** Reserves up to `count` tombstones; resolves with how many, which is 0 if the store fails. Never rejects. One call at a time. */
  readonly reserve: (count: number) => Promise<number>;
  /** Whether the last reservation was refused by the limit alone. A pause or a fault of the store is no reason to hold deletions back. */
  readonly holdsBack: () => boolean;
  /** Gives back the unused reservations; they stay reserved if the store fails. Never rejects. */
  readonly giveBack: () => Promise<void>;
  /** Why the store granted no more, which ends the turn; undefined if it was asked in vain because the job does not compare now. */
  readonly fault: () => Fault | undefined;
}

/** Creates the brake of one turn. */
export function createBrake(state: StateStore, jobId: string): Brake {
  let fault: Fault | undefined;
  let isLimitMet = false;
  /** Tombstones reserved and not used yet. */
  let ahead = 0;

  async function reserveMore(wanted: number): Promise<void> {
    let granted = 0;
    isLimitMet = false;
    const reserve = (job: JobRecord | undefined): JobRecord | undefined => {
      if (job === undefined) return undefined;
      const reservation = reserved(job, wanted);
      ({ granted } = reservation);
      isLimitMet = granted < wanted && phaseOf(job) === 'comparing';
      return reservation.job;
    };
    // other ranges read the record by its id, and a slice waits for this
    await updateRecord(state, refs.job(jobId), reserve, 'soon');
    ahead += granted;
  }

  return {
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
    holdsBack: () => isLimitMet,
    async giveBack() {
      const unused = ahead;
      if (unused === 0) return;
      ahead = 0;
      await updateRecord(state, refs.job(jobId), (job) => job && givenBackTo(job, unused), 'soon').catch(() => undefined);
    },
    fault: () => fault,
  };
}
