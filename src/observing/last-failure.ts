import type { Fault } from '../base/fault.ts';
import type { Clock } from '../process/clock.ts';

/** A failure after which nothing was tried for so long says nothing about the present. A message that failed is hidden for a quarter of an hour at most. */
const FORGOTTEN_MS = 1_200_000;

/** Why requests of one kind fail now, for the checks of the readiness. `of`: what they are sent to, since one queue may fail beside another. */
export interface LastFailure {
  readonly succeeded: (of: string) => void;
  readonly failed: (of: string, fault: Fault) => void;
  /** Why the last request failed to the first of those whose last one did; undefined if there is none, or nothing was tried for twenty minutes. */
  readonly current: (of?: string) => Fault | undefined;
  /** For how long requests to this one have failed; 0 if they do not. */
  readonly forMs: (of: string) => number;
}

/** Creates the memory of what has not failed yet. */
export function createLastFailure(clock: Pick<Clock, 'monotonicMs'>): LastFailure {
  /** There are as many as there are queues. */
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
