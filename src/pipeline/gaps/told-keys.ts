/**
 * Notices trails that tell the keys of a bulk delete one by one: events of single deletes that bear the time (± 2 s) of a
 * DeleteObjects of the same bucket. Then the objects are gone from the index already, and its gap may wait for a day.
 * It knows only what this process saw; that one of many workers noticed is enough.
 */
import type { Clock } from '../ports/clock.ts';
import type { GapReports } from './reports.ts';

/** Times are whole seconds, and one call's events may bear each its own. */
const MATCH_S = 2;
/** Seconds remembered of one bucket: events of one call come within minutes of each other. */
const SECONDS_MAX = 600;
/** Buckets remembered: names may be anything that is connected. */
const BUCKETS_MAX = 1_000;
/** It stands for a day, so it is stored again long before. */
const STORE_INTERVAL_MS = 3_600_000;
/** Where there was no open gap to store it on, or the store failed. */
const RETRY_INTERVAL_MS = 10_000;

export interface ToldKeys {
  /** A bulk delete at this event time. Returns when the bucket's keys were last told one by one, if that was seen. */
  bulk(bucket: string, eventTimeMs: number): number | undefined;
  /** The delete of one key at this event time. What it proves of an open gap is stored in passing; nobody waits for it. */
  single(bucket: string, eventTimeMs: number): void;
}

interface Seen {
  readonly bulk: Set<number>;
  readonly single: Set<number>;
  toldMs: number | undefined;
  /** Monotonic. */
  storeAtMs: number;
}

/** Creates an empty memory. */
export function createToldKeys({ gaps, clock }: { readonly gaps: Pick<GapReports, 'keysTold'>; readonly clock: Clock }): ToldKeys {
  const memory = new Map<string, Seen>();

  function seenOf(bucket: string): Seen {
    const known = memory.get(bucket);
    if (known !== undefined) return known;
    const [oldest] = memory.keys();
    if (oldest !== undefined && memory.size >= BUCKETS_MAX) memory.delete(oldest);
    const seen: Seen = { bulk: new Set(), single: new Set(), toldMs: undefined, storeAtMs: 0 };
    memory.set(bucket, seen);
    return seen;
  }

  async function store(bucket: string, seen: Seen, toldMs: number): Promise<void> {
    seen.storeAtMs = clock.monotonicMs() + RETRY_INTERVAL_MS;
    const isStored = await gaps.keysTold(bucket, toldMs).catch(() => false);
    if (isStored) seen.storeAtMs = clock.monotonicMs() + STORE_INTERVAL_MS;
  }

  return {
    bulk(bucket, eventTimeMs) {
      const seen = seenOf(bucket);
      note(seen.bulk, eventTimeMs);
      if (isNear(seen.single, eventTimeMs)) seen.toldMs = Math.max(seen.toldMs ?? 0, eventTimeMs);
      return seen.toldMs;
    },
    single(bucket, eventTimeMs) {
      const seen = seenOf(bucket);
      note(seen.single, eventTimeMs);
      if (!isNear(seen.bulk, eventTimeMs)) return;
      seen.toldMs = Math.max(seen.toldMs ?? 0, eventTimeMs);
      if (clock.monotonicMs() >= seen.storeAtMs) void store(bucket, seen, seen.toldMs);
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
