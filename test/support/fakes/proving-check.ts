/** A check of the connection of a bucket that finds every part in order. */
import type { WithPorts } from '../../../src/pipeline/ports/ports.ts';
import { noteArrivals } from '../../../src/pipeline/gaps/connection-gaps.ts';
import type { CheckConnection } from '../../../src/pipeline/provision/watch.ts';

export function createProvingCheck(parts: WithPorts<'state' | 'clock'>): CheckConnection {
  return async (record) => {
    await noteArrivals(parts, record, ['created', 'removed']);
    return [];
  };
}
