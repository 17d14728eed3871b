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
import { inTime } from '../../domain/in-time.ts';

/** One write a second for each record. Even a hundred workers stay far below what a store can take. */
const INTERVAL_MS = 1_000;
/** Above this many records the writer forgets those that are idle, at most once an interval. */
const RECORDS_SWEEP_AT = 1_000;
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

interface RecordWrites<Item> {
  next: Batch<Item> | undefined;
  isRunning: boolean;
  /** The next write is not before this moment of the monotonic clock. */
  nextWriteAtMs: number;
}

/** Creates the writer. Its promise resolves when the item is stored, alone or merged with others; it rejects with that write's error, or with the signal's reason. */
export function createCoalescingWriter<Item>({ clock, merge, write, intervalMs = INTERVAL_MS }: CoalescingDependencies<Item>) {
  const records = new Map<string, RecordWrites<Item>>();
  const writes = new PQueue({ concurrency: WRITES_MAX });
  let sweepAtMs = 0;

  return async function writeCoalesced(id: string, item: Item, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const own = writesOf(id);
    const batch = joined(own.next, item);
    own.next = batch;
    if (!own.isRunning) void run(id, own);
    await inTime(batch.written.promise, signal);
  };

  function writesOf(id: string): RecordWrites<Item> {
    const known = records.get(id);
    if (known !== undefined) return known;
    if (records.size >= RECORDS_SWEEP_AT && clock.monotonicMs() >= sweepAtMs) forgetIdle();
    const own = { next: undefined, isRunning: false, nextWriteAtMs: 0 };
    records.set(id, own);
    return own;
  }

  function forgetIdle(): void {
    // a scan for each of thousands of new records would find none that is idle yet
    sweepAtMs = clock.monotonicMs() + intervalMs;
    for (const [id, own] of records) {
      if (!own.isRunning && own.nextWriteAtMs <= clock.monotonicMs()) records.delete(id);
    }
  }

  function joined(batch: Batch<Item> | undefined, item: Item): Batch<Item> {
    if (batch !== undefined) return { item: merge(batch.item, item), written: batch.written };
    const written = Promise.withResolvers<void>();
    // when the write fails, every caller may have been aborted, and nothing else handles the rejection
    written.promise.catch(() => undefined);
    return { item, written };
  }

  async function run(id: string, own: RecordWrites<Item>): Promise<void> {
    own.isRunning = true;
    while (own.next !== undefined) {
      const waitMs = own.nextWriteAtMs - clock.monotonicMs();
      if (waitMs > 0) await clock.sleep(waitMs);
      await writes.add(() => writeNext(id, own));
    }
    own.isRunning = false;
  }

  async function writeNext(id: string, own: RecordWrites<Item>): Promise<void> {
    const batch = own.next;
    if (batch === undefined) return;
    own.next = undefined;
    own.nextWriteAtMs = clock.monotonicMs() + intervalMs;
    await write(id, batch.item).then(batch.written.resolve, batch.written.reject);
  }
}
