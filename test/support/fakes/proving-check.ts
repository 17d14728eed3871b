/** A check of the connection of a bucket that finds every part in order. */
import type { WithPorts } from '../../../src/store/store.ts';
import { noteArrivals } from '../../../src/observing/gaps.ts';
import type { CheckConnection } from '../../../src/connect/watch.ts';

export function createProvingCheck(parts: WithPorts<'state' | 'clock'>): CheckConnection {
  return async (record) => {
    await noteArrivals(parts, record, ['created', 'removed']);
    return [];
  };
}
