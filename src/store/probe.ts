import type { ObjectIndex } from './object-index.ts';
import type { StateStore } from './state.ts';

/** The record that probes write. Its kind is one that every version knows. */
const PROBE_ID = 'lock:probe';

/**
 * Creates the probe of a store: it reads a record of the state and swaps it. So it meets what prevents a real write:
 * connection, credentials, a block of the cluster or of the state index, a missing primary, a full queue, a full disk.
 */
export function createStateProbe(state: Pick<StateStore, 'get' | 'put'>): ObjectIndex['probe'] {
  return async function probe(signal) {
    const stored = await state.get(PROBE_ID, signal);
    // a conflict is no failure: another process has written the record since
    await state.put({ id: PROBE_ID, kind: 'lock', record: {} }, stored?.version ?? null, signal);
  };
}
