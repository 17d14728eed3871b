/**
 * What waits, as stored records, so that `tally bucket list` can show it from any process. A circuit is one process's memory;
 * its record says that some worker has seen it open within the last minutes.
 */
import { mayBeFedBy, type BucketRecord } from '../../domain/bucket.ts';
import { circuitRecordSchema, type CircuitRecord } from '../../domain/circuit-record.ts';
import type { StateStore } from '../ports/state.ts';
import { listAllRecords, refs, removeRecord, updateRecord } from '../records/stored.ts';
import type { Circuits } from '../serving/circuits.ts';
import type { OpenCircuit } from '../serving/open-circuits.ts';
import type { WithPorts } from '../ports/ports.ts';

/** How often open circuits are stored. */
export const CIRCUITS_STORED_MS = 30_000;
/** A record that was not stored again for so long is not shown: its worker is gone, or its circuit has closed. */
const SHOWN_MS = 3 * CIRCUITS_STORED_MS;
/** Records of workers that were killed are removed after this time. */
const KEPT_MS = 86_400_000;

interface CircuitRecordsDependencies extends WithPorts<'state' | 'clock'> {
  readonly circuits: Pick<Circuits, 'waitedFor'>;
}

/** Creates the function that stores what records wait for, and removes what it stored of what they wait for no longer. Throws the store's fault. */
export function createCircuitRecords({ state, clock, circuits }: CircuitRecordsDependencies): () => Promise<void> {
  let stored = new Set<string>();

  async function store({ level, name, fault, sinceMs }: OpenCircuit): Promise<string> {
    const ref = refs.circuit(level, name);
    const nowMs = clock.nowMs();
    const { code, reason } = fault;
    await updateRecord(state, ref, (current) => {
      // another worker may have seen it open earlier
      const isSame = current !== undefined && nowMs - current.seenAtMs <= SHOWN_MS;
      return { level, name, code, reason, sinceMs: isSame ? Math.min(current.sinceMs, sinceMs) : sinceMs, seenAtMs: nowMs };
    });
    return ref.id;
  }

  async function removeOld(open: ReadonlySet<string>): Promise<void> {
    const all = await listAllRecords(state, 'circuit', circuitRecordSchema);
    const old = all.filter(({ seenAtMs }) => clock.nowMs() - seenAtMs > KEPT_MS).map(({ level, name }) => refs.circuit(level, name).id);
    for (const id of [...stored, ...old]) if (!open.has(id)) await removeRecord(state, id);
  }

  return async function storeCircuits() {
    // the cluster's could not be stored, and nothing waits for enrichment
    const waiting = circuits.waitedFor().filter(({ level }) => level !== 'cluster' && level !== 'enrichment');
    if (waiting.length === 0 && stored.size === 0) return;
    const open = new Set<string>();
    for (const circuit of waiting) open.add(await store(circuit));
    await removeOld(open);
    stored = open;
  };
}

/** Lists what some worker has seen open within the last minutes. Throws the store's fault. */
export async function listCircuits(state: StateStore, nowMs: number): Promise<readonly CircuitRecord[]> {
  const all = await listAllRecords(state, 'circuit', circuitRecordSchema);
  return all.filter(({ seenAtMs }) => nowMs - seenAtMs <= SHOWN_MS);
}

/**
 * What the records of this bucket wait for: a worker first, without which nothing of it is indexed, then the circuit of its index,
 * because exact events wait for it too.
 */
export function circuitOfBucket(open: readonly CircuitRecord[], record: BucketRecord): CircuitRecord | undefined {
  const named = (level: CircuitRecord['level'], name: string) => open.find((each) => each.level === level && each.name === name);
  return (
    open.find((each) => isQueueOf(each, record)) ??
    named('index', record.bucket) ??
    named('endpoint', record.region) ??
    named('bucket', record.bucket)
  );
}

function isQueueOf({ level, name, otherQueues: others = [], seenAtMs }: CircuitRecord, record: BucketRecord): boolean {
  return level === 'queue' && mayBeFedBy(record, { queueUrls: [name], others, nowMs: seenAtMs });
}
