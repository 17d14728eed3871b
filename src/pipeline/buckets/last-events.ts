/** When each bucket's last event arrived: noted in memory, stored now and then, since it decides nothing. */
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';

export interface LastEvents {
  /** An event of this connected bucket arrived. Costs nothing. */
  seen(bucket: string): void;
  /** Stores what was noted since the last time. Throws the store's fault; what was not stored is stored next time. */
  store(): Promise<void>;
}

/** Creates the notes; at most one for each connected bucket. */
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
