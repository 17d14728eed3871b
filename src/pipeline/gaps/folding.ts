/**
 * Folding: a record that cannot be served for long is left to the gap of its bucket, and its message is deleted.
 *
 *   fold ──► is its change before a lastSeen that this worker has stored? ──yes──► folded (counted with the next write)
 *                              │ no
 *                              ▼
 *            joins the next write of the gap (one every 5 s), which writes lastSeen ahead ──► folded
 *
 * src/domain/gaps/folding.ts says why this is safe. Thousands of records a second cost one write every five seconds for each
 * of the two gaps of a bucket, and few of them wait for it.
 */
import { LRUCache } from 'lru-cache';
import { lastSeenAhead, momentOf, neededLastSeenMs } from '../../domain/gaps/folding.ts';
import type { LostChange } from '../../domain/messages/outcome.ts';
import { gapId, withSighting, type GapKind, type GapSighting } from '../../domain/gaps/gap.ts';
import { createCoalescingWriter } from './coalescing-writer.ts';
import type { FoldingPermission } from './folding-permission.ts';
import { createKeyGaps } from './key-gaps.ts';
import { factsOf, warnOfGap } from './reports.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { refs, updateRecord } from '../records/stored.ts';

/** From one write of a gap to the next: half of how far ahead lastSeen is written, so that records that were just sent need not wait. */
const INTERVAL_MS = 5_000;
/** For how many gaps it is remembered what is stored. Forgetting costs a write. */
const REMEMBERED_MAX = 10_000;

/** A record whose message is going to be deleted although the index does not have its change. */
export interface FoldedRecord {
  readonly bucket: string;
  /** What the record reports: a delete, a change of tags of a bucket whose enrichment is `tags`, or anything else. */
  readonly change: LostChange;
  /** SQS's SentTimestamp of its message. */
  readonly sentAtMs: number;
  readonly eventTimeMs: number | undefined;
  /** The code of the fault that kept it from being served; shown as the gap's reason. */
  readonly reason: string;
  /** Only for an object that fails alone: the gap is that of this key. */
  readonly key?: string;
}

export interface Folding {
  /** Whether gaps are closed, so that a folded record is going to be repaired. Read from memory. */
  readonly isPermitted: boolean;
  /**
   * Resolves when an open gap stands for the record durably, or a later reconcile has seen its change, so that its message may
   * be deleted. A record of a bucket that is not connected is dropped, since it has no index that could be repaired. Throws
   * the store's fault, or the signal's reason; then the message must be kept.
   */
  fold(record: FoldedRecord, signal?: AbortSignal): Promise<void>;
}

interface FoldingDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly permission: Pick<FoldingPermission, 'isPermitted'>;
}

/** Folded records that one write stores. */
interface FoldSum {
  readonly bucket: string;
  readonly kind: GapKind;
  readonly prefix?: string;
  readonly reason: string;
  readonly firstMomentMs: number;
  readonly lastMomentMs: number;
  readonly hasTags: boolean;
  readonly count: number;
}

/** What this worker has stored of a gap, and what it has folded since. */
interface Lane {
  /** Records whose change was made before this may be folded without a write. */
  storedLastSeenMs: number;
  /** The same for changes of tags: the gap had `tags` when this lastSeen was stored. */
  storedTagsMs: number;
  /** Records that were folded without a write. The next write counts them. */
  uncounted: FoldSum | undefined;
}

/** Creates the folding of one worker. Its memory is bounded by its callers, since each call waits for its write or leaves only a sum. */
export function createFolding({ state, clock, telemetry, permission }: FoldingDependencies): Folding {
  const lanes = new LRUCache<string, Lane>({ max: REMEMBERED_MAX });
  const keyGaps = createKeyGaps({ state, clock });
  const write = createCoalescingWriter<FoldSum>({ clock, merge: mergeSums, write: writeGap, intervalMs: INTERVAL_MS });

  function laneOf(id: string): Lane {
    const known = lanes.get(id);
    if (known !== undefined) return known;
    const lane: Lane = { storedLastSeenMs: 0, storedTagsMs: 0, uncounted: undefined };
    lanes.set(id, lane);
    return lane;
  }

  async function writeGap(id: string, asked: FoldSum): Promise<void> {
    const lane = laneOf(id);
    const sum = lane.uncounted === undefined ? asked : mergeSums(lane.uncounted, asked);
    lane.uncounted = undefined;
    const facts = await factsOf(state, sum.bucket);
    if (facts === undefined) return forget(lane);
    const nowMs = clock.nowMs();
    const seenAtMs = lastSeenAhead(nowMs, sum.lastMomentMs);
    const gap = await updateRecord(state, refs.gap(id), (current) => {
      // a folded record says itself whether it is of tags
      const next = withSighting(current, sightingOf(sum, seenAtMs), { ...facts, count: sum.count, toldAtMs: nowMs, enrich: 'none' });
      // lastSeen is ahead of the changes; firstSeen is not
      return { ...next, firstSeenMs: Math.min(next.firstSeenMs, sum.firstMomentMs) };
    });
    lane.storedLastSeenMs = Math.max(lane.storedLastSeenMs, seenAtMs);
    if (gap.tags === true) lane.storedTagsMs = Math.max(lane.storedTagsMs, seenAtMs);
    warnOfGap(telemetry, sum);
  }

  /** The records that come next ask again whether the bucket is connected. */
  function forget(lane: Lane): void {
    lane.storedLastSeenMs = 0;
    lane.storedTagsMs = 0;
  }

  /** Counts a record that is stored already. The first of them asks for the write that counts them all, and does not wait for it. */
  function countLater(id: string, lane: Lane, sum: FoldSum): void {
    const isFirst = lane.uncounted === undefined;
    lane.uncounted = isFirst || lane.uncounted === undefined ? sum : mergeSums(lane.uncounted, sum);
    // if it fails only the count is too low: a lastSeen that is later than their changes is stored
    if (isFirst) write(id, { ...sum, count: 0 }).catch(() => undefined);
  }

  async function foldInto(id: string, sum: FoldSum, signal: AbortSignal | undefined): Promise<void> {
    const lane = laneOf(id);
    const storedMs = sum.hasTags ? lane.storedTagsMs : lane.storedLastSeenMs;
    if (storedMs >= neededLastSeenMs(sum.lastMomentMs)) countLater(id, lane, sum);
    else await write(id, sum, signal);
  }

  return {
    get isPermitted() {
      return permission.isPermitted;
    },
    async fold(record, signal) {
      signal?.throwIfAborted();
      const kind = kindOf(record);
      const prefix = record.key === undefined ? undefined : await keyGaps.prefixFor(record.bucket, kind, record.key);
      const sum = sumOf(record, kind, prefix);
      await foldInto(gapId(sum), sum, signal);
    },
  };
}

/** Deletes are kept apart: the deletion limit of a re-index does not hold back what such a gap exists to delete. */
function kindOf({ change }: FoldedRecord): GapKind {
  switch (change) {
    case 'delete':
      return 'bulk-delete';
    case 'tags':
    case 'other':
      return 'loss';
  }
}

function sumOf({ bucket, change, reason, ...times }: FoldedRecord, kind: GapKind, prefix: string | undefined): FoldSum {
  const momentMs = momentOf(times);
  return {
    bucket,
    kind,
    ...(prefix !== undefined && { prefix }),
    reason,
    firstMomentMs: momentMs,
    lastMomentMs: momentMs,
    hasTags: change === 'tags',
    count: 1,
  };
}

function mergeSums(earlier: FoldSum, later: FoldSum): FoldSum {
  return {
    ...later,
    firstMomentMs: Math.min(earlier.firstMomentMs, later.firstMomentMs),
    lastMomentMs: Math.max(earlier.lastMomentMs, later.lastMomentMs),
    hasTags: earlier.hasTags || later.hasTags,
    count: earlier.count + later.count,
  };
}

function sightingOf({ bucket, kind, prefix, reason, hasTags }: FoldSum, seenAtMs: number): GapSighting {
  return {
    bucket,
    kind,
    ...(prefix !== undefined && { prefix }),
    reason: `could not be served: ${reason}`,
    seenAtMs,
    folded: true,
    ...(hasTags && { tags: true }),
  };
}
