/**
 * The first gap of every bucket: what it held before it was connected is not in the index until a re-index has compared all of
 * it. The gap is stored before the bucket's record, so that no crash can leave a connected bucket without it.
 */
import type { EnrichMode } from '../../domain/bucket.ts';
import { gapId, withSighting, type GapRecord } from '../../domain/gaps/gap.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';

const REASON = 'never compared';
const HELD = 'the bucket was connected without a first re-index: start one when you want it';

interface NeverComparedPorts {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
}

export interface FirstGap {
  readonly bucket: string;
  readonly enrich: EnrichMode;
  /** Every re-index that begins from now on covers this time. */
  readonly seenAtMs: number;
  /** The latest beginning of a job of the bucket, as in the record that is stored with the gap. */
  readonly afterBeginOrder: number;
  /** The gap is shown, but no job is started for it until a re-index is requested. */
  readonly isHeld: boolean;
  /** The events of the bucket are known to arrive. */
  readonly isProven?: boolean;
}

/**
 * Stores the gap. `before`: the bucket's record is stored next, so a gap that is there already belongs to an earlier life of
 * the bucket and is replaced, and one of deletions that wait for a person is removed: its documents are gone. `after`: the record is stored, and the gap only if it is missing. Throws the store's fault.
 */
export async function openNeverCompared(
  { state, clock }: NeverComparedPorts,
  { bucket, enrich, seenAtMs, afterBeginOrder, isHeld, isProven }: FirstGap,
  at: 'before' | 'after',
): Promise<void> {
  const sighting = { bucket, kind: 'loss', reason: REASON, seenAtMs } as const;
  const gap = withSighting(undefined, sighting, { count: 1, toldAtMs: clock.nowMs(), afterBeginOrder, enrich });
  const stored: GapRecord = {
    ...gap,
    ...(isProven !== true && { unproven: true }),
    ...(isHeld && { held: true, waits: { reason: HELD } }),
  };
  const ref = refs.gap(gapId(sighting));
  await updateRecord(state, ref, (current) => (at === 'after' ? (current ?? stored) : stored));
}
