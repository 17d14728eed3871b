/**
 * Handover: a record that could not be served for long is left to its bucket's gap, and its message is deleted.
 *
 *   handed over ──► is its change before a lastSeen that this worker has stored? ──yes──► stored
 *                              │ no
 *                              ▼
 *            joins the next write of the gap (one every 5 s), which writes lastSeen ahead ──► stored
 *
 * Thousands of records a second cost one write every five seconds for each of a mark's two kinds, and few records wait for it.
 *
 * Why this is safe. An open gap's `lastSeenMs` only grows. Only a reconcile that began after the gap was written
 * (src/records/job.ts) and, by S3's clock and by its worker's, after `lastSeenMs` closes it. So once a worker has stored an open
 * gap with `lastSeenMs` ≥ L, at every later moment either the gap is open and a reconcile that begins after L will run, or one
 * that began after L has run. A reconcile sees every change that S3 had made before it began. So every record of the bucket whose
 * change was made before L may be acknowledged: one write is enough for all of them, even for those received later, or after the
 * gap was closed. This depends on no worker's clock, because L is compared only with the times of SQS and S3. A wrong clock of a
 * worker or of S3 costs writes, or delays the closing of the gap.
 */
import { LRUCache } from 'lru-cache';
import { FUTURE_MS } from '../ordering/constants.ts';
import type { LostChange } from '../events/outcome.ts';
import { TIME_STEP_MS } from '../records/bucket.ts';
import { markId, type GapReport } from '../records/dirty.ts';
import { createCoalescingWriter } from '../store/coalescing-writer.ts';
import { markDirty, mergeReports, warnOfGap } from '../observing/gaps.ts';
import type { StateVersion, WithPorts } from '../store/store.ts';
import { parseEntry, refs, gapIdsOf } from '../store/stored.ts';
import { CLOSE_GAPS_NAME } from '../records/schedule.ts';
import { repeat } from '../process/async.ts';

/** Between two writes of a gap: half of how far ahead lastSeen is written, so that records that were just sent need not wait. */
const INTERVAL_MS = 5_000;
/** How far ahead of the present a gap's lastSeen is written. */
const AHEAD_MS = 2 * INTERVAL_MS;
/** For how many gaps a worker remembers what it has stored. Forgetting costs a write. */
const REMEMBERED_MAX = 10_000;

/** From this many marks of keys on, the bucket's own mark stands for more: each needs a job, which waits for a minute, and the bucket's job closes them all. */
const KEY_MARKS_MAX = 100;
/** How long the marks that were read are relied on. If other workers add more in the meantime, that only adds jobs. */
const KEY_MARKS_AGE_MAX_MS = 60_000;
/** How many of a bucket's marks one read considers: ten times as many as decide. */
const KEY_MARKS_READ_MAX = 1_000;
/** For how many buckets they are remembered. */
const BUCKETS_MAX = 1_000;

/** A record whose message will be deleted although the index lacks its change. */
export interface HandedOverRecord {
  readonly bucket: string;
  /** What the record reports: a delete, a change of tags of a bucket whose enrichment is `tags`, or anything else. */
  readonly change: LostChange;
  /** SQS's SentTimestamp of its message. */
  readonly sentAtMs: number;
  readonly eventTimeMs: number | undefined;
  /** The code of the fault that kept it from being served; shown as the gap's reason. */
  readonly reason: string;
  /** Only for an object whose message becomes a dead letter: the gap is that of this key. */
  readonly key?: string;
}

export interface Handover {
  /** Whether some process closes gaps, so that records handed over will be repaired. Read from memory. */
  readonly isPermitted: boolean;
  /**
   * Resolves when an open gap stands for the record durably, or a later reconcile has seen its change; its message may then be
   * deleted. A record of an unconnected bucket is dropped, because there is no index to repair. Throws the store's fault, or the
   * signal's reason; the message must then be kept.
   */
  handOver(record: HandedOverRecord, signal?: AbortSignal): Promise<void>;
}

interface HandoverDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly permission: Pick<HandoverPermission, 'isPermitted'>;
}

/** What this worker has stored of a gap. */
interface StoredMark {
  /** Records whose change was made before this may be handed over without a write. */
  storedLastSeenMs: number;
  /** The same for changes of tags: the gap had `tags` when this lastSeen was stored. */
  storedTagsMs: number;
}

/** The ids of the marks of a bucket's keys. */
interface KeyMarks {
  readonly ids: Set<string>;
  readonly readAtMs: number;
}

/** Creates the handover of one worker. Its memory is bounded by its callers, since each call waits for its write. */
export function createHandover({ state, clock, telemetry, permission }: HandoverDependencies): Handover {
  const memories = new LRUCache<string, StoredMark>({
    max: REMEMBERED_MAX,
    memoMethod: () => ({ storedLastSeenMs: 0, storedTagsMs: 0 }),
  });
  const keyMarks = new LRUCache<string, KeyMarks>({ max: BUCKETS_MAX });
  const write = createCoalescingWriter<GapReport>({ clock, merge: mergeReports, write: writeGap, intervalMs: INTERVAL_MS });

  async function writeGap(id: string, report: GapReport): Promise<void> {
    const memory = memories.memo(id);
    const { firstSeenMs = report.seenAtMs } = report;
    // lastSeen is ahead of the changes; the first of them is not
    const seenAtMs = Math.max(clock.nowMs(), report.seenAtMs) + AHEAD_MS;
    const mark = await markDirty({ state, clock }, { ...report, firstSeenMs, seenAtMs });
    // the next records ask again whether the bucket is connected
    if (mark === undefined) return void memories.delete(id);
    memory.storedLastSeenMs = Math.max(memory.storedLastSeenMs, seenAtMs);
    if (mark.readTags === true) memory.storedTagsMs = Math.max(memory.storedTagsMs, seenAtMs);
    warnOfGap(telemetry, mark);
  }

  async function keyMarksOf(bucket: string): Promise<Set<string>> {
    const known = keyMarks.get(bucket);
    if (known !== undefined && clock.monotonicMs() - known.readAtMs < KEY_MARKS_AGE_MAX_MS) return known.ids;
    const prefix = gapIdsOf(bucket);
    const entries = await state.list('gap', { after: prefix, limit: KEY_MARKS_READ_MAX });
    const ids = new Set(entries.map(({ id }) => id).filter((id) => id.startsWith(prefix) && id !== markId(bucket)));
    keyMarks.set(bucket, { ids, readAtMs: clock.monotonicMs() });
    return ids;
  }

  /** Whether the key may have a separate mark. */
  async function mayHaveMark(bucket: string, key: string): Promise<boolean> {
    const ids = await keyMarksOf(bucket);
    const id = markId(bucket, key);
    if (!ids.has(id) && ids.size >= KEY_MARKS_MAX) return false;
    ids.add(id);
    return true;
  }

  return {
    get isPermitted() {
      return permission.isPermitted;
    },
    async handOver(record, signal) {
      signal?.throwIfAborted();
      const key = record.key !== undefined && (await mayHaveMark(record.bucket, record.key)) ? record.key : undefined;
      const report = reportOf(record, key);
      // a mark that stands for deletions alone must not be taken for one that stands for another change
      const id = `${markId(report.bucket, key)} ${report.kind}`;
      const { storedTagsMs, storedLastSeenMs } = memories.memo(id);
      if ((report.tags === true ? storedTagsMs : storedLastSeenMs) < report.seenAtMs + TIME_STEP_MS) await write(id, report, signal);
    },
  };
}

/**
 * The latest moment at which the change can have been made: when its message was sent, by SQS's clock, or the event's own time,
 * by S3's clock, whichever is later. An event time far after the sending is not plausible (rule 10), and must not keep the gap open
 * until then.
 */
function momentOf({ sentAtMs, eventTimeMs = sentAtMs }: Pick<HandedOverRecord, 'sentAtMs' | 'eventTimeMs'>): number {
  return Math.max(sentAtMs, Math.min(eventTimeMs, sentAtMs + FUTURE_MS));
}

function reportOf({ bucket, change, reason, ...times }: HandedOverRecord, key: string | undefined): GapReport {
  return {
    bucket,
    // a separate kind, because a re-index has no deletion limit for a gap that has only deletions
    kind: change === 'delete' ? 'handed-over-deletes' : 'handed-over',
    ...(key !== undefined && { key }),
    reason: `could not be served: ${reason}`,
    seenAtMs: momentOf(times),
    ...(change === 'tags' && { tags: true }),
  };
}

// ── whether records may be handed over: only where gaps are closed ──────────────────────────────────────────────────────

/** A worker that has not been seen for this long may never come back; restarts and upgrades take minutes. */
const WORKER_ABSENT_MS = 3_600_000;
/** How often the record is read. */
const PERMISSION_READ_MS = 60_000;

export interface HandoverPermission {
  /** Whether a re-index worker was seen within the last hour. Read from memory. */
  readonly isPermitted: boolean;
  /** Reads at once, then each minute until the signal is aborted. Resolves after the first read; if that fails, nothing is permitted yet. */
  watch(signal: AbortSignal): Promise<void>;
}

/**
 * Creates the permission; nothing is permitted before watch(). A re-index worker stores the schedule record of closing gaps several
 * times a minute, which shows that it is there.
 */
export function createHandoverPermission({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): HandoverPermission {
  /** When a worker was there, by this process's monotonic clock. */
  let seenAtMs = Number.NEGATIVE_INFINITY;
  let lastVersion: StateVersion | undefined;

  async function read(): Promise<void> {
    const { id, schema } = refs.schedule(CLOSE_GAPS_NAME);
    const entry = await state.get(id);
    if (entry === undefined || entry.version === lastVersion) return;
    // if the record changed since the last read, no clocks need be compared
    const ageMs = lastVersion === undefined ? Math.abs(clock.nowMs() - (parseEntry(entry, schema).lastStartedAtMs ?? 0)) : 0;
    lastVersion = entry.version;
    seenAtMs = clock.monotonicMs() - ageMs;
  }

  return {
    get isPermitted() {
      return clock.monotonicMs() - seenAtMs < WORKER_ABSENT_MS;
    },
    async watch(signal) {
      repeat({ clock, telemetry }, { name: 'read whether a re-index worker is there', intervalMs: PERMISSION_READ_MS, signal }, read);
      await read().catch((error: unknown) => telemetry.requestFailed('read whether a re-index worker is there', error));
    },
  };
}
