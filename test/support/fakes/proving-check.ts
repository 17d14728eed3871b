/** A check of the connection of a bucket that finds every part in order. */
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { noteProof } from '../../../src/pipeline/gaps/connection-gaps.ts';
import type { CheckConnection } from '../../../src/pipeline/provision/watch.ts';

export function createProvingCheck(parts: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> }): CheckConnection {
  return async (record) => {
    await noteProof(parts, record);
    return [];
  };
}
