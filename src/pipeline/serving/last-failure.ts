import type { Fault } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';

/** A failure after which nothing was tried for so long says nothing about the present. A message that failed is hidden for a quarter of an hour at most. */
const FORGOTTEN_MS = 1_200_000;

/** Why requests of one kind fail now, for the checks of the readiness. */
export interface LastFailure {
  readonly succeeded: () => void;
  readonly failed: (fault: Fault) => void;
  /** Why the last request failed; undefined if it did not, or nothing was tried for twenty minutes. */
  readonly current: () => Fault | undefined;
}

/** Creates the memory of what has not failed yet. */
export function createLastFailure(clock: Pick<Clock, 'monotonicMs'>): LastFailure {
  let last: { readonly fault: Fault; readonly atMs: number } | undefined;
  return {
    succeeded() {
      last = undefined;
    },
    failed({ code, reason }) {
      last = { fault: { code, reason }, atMs: clock.monotonicMs() };
    },
    current: () => (last !== undefined && clock.monotonicMs() - last.atMs < FORGOTTEN_MS ? last.fault : undefined),
  };
}
