/**
 * Merges the writes that many callers want for one record into at most one write an interval (a second, unless it says otherwise):
 *
 *   idle ──item──► waiting for its turn ──► writing ──► idle
 *                     ▲ items join              │ items that came meanwhile
 *                     └─────────────────────────┘
 *
 * A caller's promise resolves when a write that contains its item is durable, so nothing is acknowledged that is not stored.
 */
import PQueue from 'p-queue';
import type { Clock } from '../ports/clock.ts';
import { inTime } from '../serving/async.ts';

/** One write a second for each record. Even a hundred workers stay far below what a store can take. */
const INTERVAL_MS = 1_000;
/** Above this many records the writer forgets those that are idle, at most once an interval. */
const LANES_SWEEP_AT = 1_000;
/** How many records are written at the same time: one message may name thousands of buckets. */
const WRITES_MAX = 16;

interface CoalescingDependencies<Item> {
  readonly clock: Clock;
  /** Merges two items of one record; the second came later. */
  readonly merge: (earlier: Item, later: Item) => Item;
  readonly write: (id: string, item: Item) => Promise<void>;
  /** From one write of a record to the next. Default: a second. */
  readonly intervalMs?: number;
}

interface Batch<Item> {
  item: Item;
  readonly written: PromiseWithResolvers<void>;
}

interface Lane<Item> {
  next: Batch<Item> | undefined;
  isRunning: boolean;
  /** The next write is not before this moment of the monotonic clock. */
  nextWriteAtMs: number;
}

/** Creates the writer. Its promise resolves when the item is stored, alone or merged with others; it rejects with that write's error, or with the signal's reason. */
export function createCoalescingWriter<Item>({ clock, merge, write, intervalMs = INTERVAL_MS }: CoalescingDependencies<Item>) {
  const lanes = new Map<string, Lane<Item>>();
  const writes = new PQueue({ concurrency: WRITES_MAX });
  let sweepAtMs = 0;

  return async function writeCoalesced(id: string, item: Item, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const lane = laneOf(id);
    const batch = joined(lane.next, item);
    lane.next = batch;
    if (!lane.isRunning) void run(id, lane);
    await (signal === undefined ? batch.written.promise : inTime(batch.written.promise, signal));
  };

  function laneOf(id: string): Lane<Item> {
    const known = lanes.get(id);
    if (known !== undefined) return known;
    if (lanes.size >= LANES_SWEEP_AT && clock.monotonicMs() >= sweepAtMs) forgetIdle();
    const lane = { next: undefined, isRunning: false, nextWriteAtMs: 0 };
    lanes.set(id, lane);
    return lane;
  }

  function forgetIdle(): void {
    // a scan for each of thousands of new records would find none that is idle yet
    sweepAtMs = clock.monotonicMs() + intervalMs;
    for (const [id, lane] of lanes) {
      if (!lane.isRunning && lane.nextWriteAtMs <= clock.monotonicMs()) lanes.delete(id);
    }
  }

  function joined(batch: Batch<Item> | undefined, item: Item): Batch<Item> {
    if (batch !== undefined) return { item: merge(batch.item, item), written: batch.written };
    const written = Promise.withResolvers<void>();
    // when the write fails, every caller may have been aborted, and nothing else handles the rejection
    written.promise.catch(() => undefined);
    return { item, written };
  }

  async function run(id: string, lane: Lane<Item>): Promise<void> {
    lane.isRunning = true;
    while (lane.next !== undefined) {
      const waitMs = lane.nextWriteAtMs - clock.monotonicMs();
      if (waitMs > 0) await clock.sleep(waitMs);
      await writes.add(() => writeNext(id, lane));
    }
    lane.isRunning = false;
  }

  async function writeNext(id: string, lane: Lane<Item>): Promise<void> {
    const batch = lane.next;
    if (batch === undefined) return;
    lane.next = undefined;
    lane.nextWriteAtMs = clock.monotonicMs() + intervalMs;
    await write(id, batch.item).then(batch.written.resolve, batch.written.reject);
  }
}
