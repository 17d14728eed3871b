/**
 * Handover: a record that cannot be served for long is left to the gap of its bucket, and its message is deleted.
 *
 *   handed over ──► is its change before a lastSeen that this worker has stored? ──yes──► stored
 *                              │ no
 *                              ▼
 *            joins the next write of the gap (one every 5 s), which writes lastSeen ahead ──► stored
 *
 * src/indexer/handover.rules.ts says why this is safe. Thousands of records a second cost one write every five seconds for each
 * of the two kinds of a bucket's mark, and few of them wait for it.
 */
import { LRUCache } from 'lru-cache';
import { lastSeenAhead, momentOf, neededLastSeenMs } from './handover.rules.ts';
import type { LostChange } from '../events/outcome.ts';
import { markId, type MarkKind } from '../records/dirty.ts';
import { createCoalescingWriter } from '../store/coalescing-writer.ts';
import { markDirty } from '../observing/stored-gaps.ts';
import { warnOfGap } from '../observing/reports.ts';
import type { StateVersion, WithPorts } from '../store/store.ts';
import { parseEntry, refs, gapIdsOf } from '../store/stored.ts';
import { CLOSE_GAPS_NAME, type ScheduleRecord } from '../records/schedule.ts';
import { repeat } from '../process/repeat.ts';

/** From one write of a gap to the next: half of how far ahead lastSeen is written, so that records that were just sent need not wait. */
const INTERVAL_MS = 5_000;
/** For how many gaps it is remembered what is stored. Forgetting costs a write. */
const REMEMBERED_MAX = 10_000;

/** A record whose message is going to be deleted although the index does not have its change. */
export interface HandedOverRecord {
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

export interface Handover {
  /** Whether gaps are closed, so that a record that is handed over is going to be repaired. Read from memory. */
  readonly isPermitted: boolean;
  /**
   * Resolves when an open gap stands for the record durably, or a later reconcile has seen its change, so that its message may
   * be deleted. A record of a bucket that is not connected is dropped, since it has no index that could be repaired. Throws
   * the store's fault, or the signal's reason; then the message must be kept.
   */
  handOver(record: HandedOverRecord, signal?: AbortSignal): Promise<void>;
}

interface HandoverDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly permission: Pick<HandoverPermission, 'isPermitted'>;
}

/** Records that one write stores. */
interface HandoverSum {
  readonly bucket: string;
  readonly kind: MarkKind;
  readonly key?: string;
  readonly reason: string;
  readonly firstMomentMs: number;
  readonly lastMomentMs: number;
  readonly hasTags: boolean;
  readonly count: number;
}

/** What this worker has stored of a gap. */
interface Memory {
  /** Records whose change was made before this may be handed over without a write. */
  storedLastSeenMs: number;
  /** The same for changes of tags: the gap had `tags` when this lastSeen was stored. */
  storedTagsMs: number;
}

/** Creates the handover of one worker. Its memory is bounded by its callers, since each call waits for its write. */
export function createHandover({ state, clock, telemetry, permission }: HandoverDependencies): Handover {
  const memories = new LRUCache<string, Memory>({
    max: REMEMBERED_MAX,
    memoMethod: () => ({ storedLastSeenMs: 0, storedTagsMs: 0 }),
  });
  const keyGaps = createKeyGaps({ state, clock });
  const write = createCoalescingWriter<HandoverSum>({ clock, merge: mergeSums, write: writeGap, intervalMs: INTERVAL_MS });

  async function writeGap(id: string, { firstMomentMs, lastMomentMs, hasTags, reason, ...sum }: HandoverSum): Promise<void> {
    const memory = memories.memo(id);
    // lastSeen is ahead of the changes; the first of them is not
    const seenAtMs = lastSeenAhead(clock.nowMs(), lastMomentMs);
    const times = { seenAtMs, firstSeenMs: firstMomentMs, ...(hasTags && { tags: true as const }) };
    const mark = await markDirty({ state, clock }, { ...sum, reason: `could not be served: ${reason}`, ...times });
    if (mark === undefined) return forget(memory);
    memory.storedLastSeenMs = Math.max(memory.storedLastSeenMs, seenAtMs);
    if (mark.readTags === true) memory.storedTagsMs = Math.max(memory.storedTagsMs, seenAtMs);
    warnOfGap(telemetry, mark);
  }

  /** The records that come next ask again whether the bucket is connected. */
  function forget(memory: Memory): void {
    memory.storedLastSeenMs = 0;
    memory.storedTagsMs = 0;
  }

  async function handOverTo(id: string, sum: HandoverSum, signal: AbortSignal | undefined): Promise<void> {
    const memory = memories.memo(id);
    const storedMs = sum.hasTags ? memory.storedTagsMs : memory.storedLastSeenMs;
    if (storedMs < neededLastSeenMs(sum.lastMomentMs)) await write(id, sum, signal);
  }

  return {
    get isPermitted() {
      return permission.isPermitted;
    },
    async handOver(record, signal) {
      signal?.throwIfAborted();
      const key = record.key === undefined ? undefined : await keyGaps.keyFor(record.bucket, record.key);
      const sum = sumOf(record, key);
      // a mark that stands for deletions alone must not be taken for one that stands for another change
      await handOverTo(`${markId(sum.bucket, key)} ${sum.kind}`, sum, signal);
    },
  };
}

/** Deletes are kept apart: the deletion limit of a re-index does not hold back what such a gap exists to delete. */
function kindOf({ change }: HandedOverRecord): MarkKind {
  switch (change) {
    case 'delete':
      return 'handed-over-deletes';
    case 'tags':
    case 'other':
      return 'handed-over';
  }
}

function sumOf(record: HandedOverRecord, key: string | undefined): HandoverSum {
  const { bucket, change, reason, ...times } = record;
  const momentMs = momentOf(times);
  return {
    bucket,
    kind: kindOf(record),
    ...(key !== undefined && { key }),
    reason,
    firstMomentMs: momentMs,
    lastMomentMs: momentMs,
    hasTags: change === 'tags',
    count: 1,
  };
}

function mergeSums(earlier: HandoverSum, later: HandoverSum): HandoverSum {
  return {
    ...later,
    firstMomentMs: Math.min(earlier.firstMomentMs, later.firstMomentMs),
    lastMomentMs: Math.max(earlier.lastMomentMs, later.lastMomentMs),
    hasTags: earlier.hasTags || later.hasTags,
    count: earlier.count + later.count,
  };
}

// ── the marks of objects that failed alone: one for each key, as long as a bucket has few of them ──────────────────

/** With more marks of keys, what fails alone is the bucket's: each of them needs a job, which waits for a minute. The bucket's job closes them all. */
const KEY_GAPS_MAX = 100;
/** How long what was read is used. Other workers may add as many within that time, which only adds jobs. */
const AGE_MAX_MS = 60_000;
/** A bucket's marks that one reading considers: ten times what decides. */
const READ_MAX = 1_000;
/** How many buckets are remembered. */
const BUCKETS_MAX = 1_000;

export interface KeyGaps {
  /** The key, if it may have a separate mark; undefined if the bucket has too many. Throws the store's fault. */
  keyFor(bucket: string, key: string): Promise<string | undefined>;
}

interface Known {
  readonly ids: Set<string>;
  readonly readAtMs: number;
}

/** Creates an empty memory of the key gaps of all buckets. */
export function createKeyGaps({ state, clock }: WithPorts<'state' | 'clock'>): KeyGaps {
  const buckets = new LRUCache<string, Known>({ max: BUCKETS_MAX });

  async function knownOf(bucket: string): Promise<Known> {
    const known = buckets.get(bucket);
    if (known !== undefined && clock.monotonicMs() - known.readAtMs < AGE_MAX_MS) return known;
    const prefix = gapIdsOf(bucket);
    const entries = await state.list('gap', { after: prefix, limit: READ_MAX });
    const ids = entries.filter(({ id }) => id.startsWith(prefix) && id !== markId(bucket)).map(({ id }) => id);
    const read = { ids: new Set(ids), readAtMs: clock.monotonicMs() };
    buckets.set(bucket, read);
    return read;
  }

  return {
    async keyFor(bucket, key) {
      const { ids } = await knownOf(bucket);
      const id = markId(bucket, key);
      if (!ids.has(id) && ids.size >= KEY_GAPS_MAX) return undefined;
      ids.add(id);
      return key;
    },
  };
}

// ── whether records may be handed over: only where gaps are closed ──────────────────────────────────────────────────────

/** A worker that was not seen for this long may never come back; a restart or an upgrade takes minutes. */
const ABSENT_MS = 3_600_000;
/** How often the record is read. */
const READ_MS = 60_000;

export interface HandoverPermission {
  /** A re-index worker was seen within the last hour. From memory. */
  readonly isPermitted: boolean;
  /** Reads now and then each minute until the signal is aborted. Resolves after the first reading, which may fail: then nothing is permitted yet. */
  watch(signal: AbortSignal): Promise<void>;
}

/**
 * Creates the permission; nothing is permitted before watch(). A re-index worker stores the record of the schedule that closes
 * gaps several times a minute, so that record shows that one is there; no process has to store anything else.
 */
export function createHandoverPermission({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): HandoverPermission {
  /** When a worker was there, by this process's monotonic clock. */
  let seenAtMs = Number.NEGATIVE_INFINITY;
  let lastVersion: StateVersion | undefined;

  async function read(): Promise<void> {
    const { id, schema } = refs.schedule(CLOSE_GAPS_NAME);
    const entry = await state.get(id);
    if (entry === undefined || entry.version === lastVersion) return;
    // a change since the last reading needs no comparison of clocks
    const ageMs = lastVersion === undefined ? Math.abs(clock.nowMs() - lastSeenMs(parseEntry(entry, schema))) : 0;
    lastVersion = entry.version;
    seenAtMs = clock.monotonicMs() - ageMs;
  }

  return {
    get isPermitted() {
      return clock.monotonicMs() - seenAtMs < ABSENT_MS;
    },
    async watch(signal) {
      repeat({ clock, telemetry }, { name: 'read whether a re-index worker is there', intervalMs: READ_MS, signal }, read);
      await read().catch((error: unknown) => telemetry.requestFailed('read whether a re-index worker is there', error));
    },
  };
}

/** The latest time in the record, by the clock of the worker that stored it. */
function lastSeenMs({ lastStartedAtMs = 0, lastEndedAtMs = 0 }: ScheduleRecord): number {
  return Math.max(lastStartedAtMs, lastEndedAtMs);
}
