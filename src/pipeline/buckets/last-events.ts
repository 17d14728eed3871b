/** When the last event of each bucket arrived. It is kept in memory and stored now and then, since no decision depends on it. */
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';

export interface LastEvents {
  /** Notes that an event of this connected bucket arrived. It only writes to memory. */
  seen(bucket: string): void;
  /** Stores the notes since the last call. Throws the store's fault; the notes that were not stored remain for the next call. */
  store(): Promise<void>;
}

/** Creates the memory, which has at most one note for each connected bucket. */
export function createLastEvents({ state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> }): LastEvents {
  const noted = new Map<string, number>();
  return {
    seen: (bucket) => void noted.set(bucket, clock.nowMs()),
    async store() {
      for (const [bucket, atMs] of noted) {
        await updateRecord(state, refs.bucket(bucket), (current) =>
          current === undefined ? undefined : { ...current, lastEventAtMs: Math.max(atMs, current.lastEventAtMs ?? 0) },
        );
        if (noted.get(bucket) === atMs) noted.delete(bucket);
      }
    },
  };
}
