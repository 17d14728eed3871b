/**
 * Recognises trails that also send an event for each key of a bulk delete: events of single deletes with the same time
 * (± 2 s) as a DeleteObjects call on the same bucket. Such objects are already removed from the index, so the gap of the
 * bulk delete may wait for a day. The memory covers this process only; it is enough that one of many workers recognises it.
 */
import type { Clock } from '../ports/clock.ts';
import type { GapReports } from './reports.ts';

/** Event times are whole seconds, and the events of one call may have different ones. */
const MATCH_S = 2;
/** How many seconds are remembered for one bucket: the events of one call arrive within minutes of each other. */
const SECONDS_MAX = 600;
/** How many buckets are remembered. */
const BUCKETS_MAX = 1_000;
/** What is stored holds for a day, so it is stored again long before that. */
const STORE_INTERVAL_MS = 3_600_000;
/** The next attempt after there was no open gap to store it on, or the store failed. */
const RETRY_INTERVAL_MS = 10_000;

export interface ReportedKeys {
  /** Notes a bulk delete with this event time. Returns the latest event time of a bulk delete whose keys were also reported one by one, if one was seen. */
  bulk(bucket: string, eventTimeMs: number): number | undefined;
  /** Notes the delete of one key with this event time. What this proves about an open gap is stored in the background. */
  single(bucket: string, eventTimeMs: number): void;
}

interface Seen {
  readonly bulk: Set<number>;
  readonly single: Set<number>;
  reportedMs: number | undefined;
  /** When it may be stored next, by the monotonic clock. */
  storeAtMs: number;
}

/** Creates an empty memory. */
export function createReportedKeys(dependencies: { readonly gaps: Pick<GapReports, 'keysReported'>; readonly clock: Clock }): ReportedKeys {
  const { gaps, clock } = dependencies;
  const memory = new Map<string, Seen>();

  function seenOf(bucket: string): Seen {
    const known = memory.get(bucket);
    if (known !== undefined) return known;
    const [oldest] = memory.keys();
    if (oldest !== undefined && memory.size >= BUCKETS_MAX) memory.delete(oldest);
    const seen: Seen = { bulk: new Set(), single: new Set(), reportedMs: undefined, storeAtMs: 0 };
    memory.set(bucket, seen);
    return seen;
  }

  async function store(bucket: string, seen: Seen, reportedMs: number): Promise<void> {
    seen.storeAtMs = clock.monotonicMs() + RETRY_INTERVAL_MS;
    const isStored = await gaps.keysReported(bucket, reportedMs).catch(() => false);
    if (isStored) seen.storeAtMs = clock.monotonicMs() + STORE_INTERVAL_MS;
  }

  return {
    bulk(bucket, eventTimeMs) {
      const seen = seenOf(bucket);
      note(seen.bulk, eventTimeMs);
      if (isNear(seen.single, eventTimeMs)) seen.reportedMs = Math.max(seen.reportedMs ?? 0, eventTimeMs);
      return seen.reportedMs;
    },
    single(bucket, eventTimeMs) {
      const seen = seenOf(bucket);
      note(seen.single, eventTimeMs);
      if (!isNear(seen.bulk, eventTimeMs)) return;
      seen.reportedMs = Math.max(seen.reportedMs ?? 0, eventTimeMs);
      if (clock.monotonicMs() >= seen.storeAtMs) void store(bucket, seen, seen.reportedMs);
    },
  };
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1_000);
}

function note(seconds: Set<number>, ms: number): void {
  seconds.add(secondOf(ms));
  const [oldest] = seconds;
  if (oldest !== undefined && seconds.size > SECONDS_MAX) seconds.delete(oldest);
}

function isNear(seconds: ReadonlySet<number>, ms: number): boolean {
  for (let distance = -MATCH_S; distance <= MATCH_S; distance += 1) if (seconds.has(secondOf(ms) + distance)) return true;
  return false;
}
