/** A look at the connection of a bucket that finds every part in order. */
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { noteProof } from '../../../src/pipeline/gaps/connection-gaps.ts';
import type { Look } from '../../../src/pipeline/provision/watch.ts';

export function createProvingLook(parts: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> }): Look {
  return async (record) => {
    await noteProof(parts, record);
    return [];
  };
}
