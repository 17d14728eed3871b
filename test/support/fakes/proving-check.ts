/** A check of the connection of a bucket that finds every part in order. */
import type { WithPorts } from '../../../src/pipeline/ports/ports.ts';
import { noteProof } from '../../../src/pipeline/gaps/connection-gaps.ts';
import type { CheckConnection } from '../../../src/pipeline/provision/watch.ts';

export function createProvingCheck(parts: WithPorts<'state' | 'clock'>): CheckConnection {
  return async (record) => {
    await noteProof(parts, record);
    return [];
  };
}
