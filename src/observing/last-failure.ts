import type { Fault } from '../base/fault.ts';
import type { Clock } from '../process/clock.ts';

/** After this long without an attempt, a failure says nothing about the present. A failed message is hidden for at most a quarter of an hour. */
const FORGOTTEN_MS = 1_200_000;

/** Why requests of one kind are failing, for readiness checks. `of`: their target, because one queue may fail while another works. */
export interface LastFailure {
  readonly succeeded: (of: string) => void;
  readonly failed: (of: string, fault: Fault) => void;
  /** Why the last request to this target, or to any, failed; undefined if it succeeded, or nothing was tried for twenty minutes. */
  readonly current: (of?: string) => Fault | undefined;
  /** For how long requests to this target have been failing; 0 if they are not. */
  readonly forMs: (of: string) => number;
}

/** Creates the memory, in which nothing has failed yet. */
export function createLastFailure(clock: Pick<Clock, 'monotonicMs'>): LastFailure {
  /** By target. There are as many as there are queues. */
  const last = new Map<string, { readonly fault: Fault; readonly atMs: number; readonly firstMs: number }>();
  return {
    succeeded(of) {
      last.delete(of);
    },
    failed(of, { code, reason }) {
      const atMs = clock.monotonicMs();
      last.set(of, { fault: { code, reason }, atMs, firstMs: last.get(of)?.firstMs ?? atMs });
    },
    current(of) {
      for (const [each, { atMs }] of last) if (clock.monotonicMs() - atMs >= FORGOTTEN_MS) last.delete(each);
      const [first] = last.values();
      return (of === undefined ? first : last.get(of))?.fault;
    },
    forMs: (of) => clock.monotonicMs() - (last.get(of)?.firstMs ?? clock.monotonicMs()),
  };
}
