/**
 * Merges many callers' writes to one record into at most one write per interval (a second by default):
 *
 *   idle ──item──► waiting for its turn ──► writing ──► idle
 *                     ▲ items join              │ items that came meanwhile
 *                     └─────────────────────────┘
 *
 * A caller's promise resolves once a write with its item is durable, so nothing is acknowledged before it is stored.
 */
import PQueue from 'p-queue';
import type { Clock } from '../process/clock.ts';
import { inTime } from '../base/in-time.ts';

/** One write a second for each record. Even a hundred workers stay far below what a store can take. */
const INTERVAL_MS = 1_000;
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

/** Creates the writer. Its promise resolves when the item is stored, alone or merged with others; it rejects with that write's error, or with the signal's reason. */
export function createCoalescingWriter<Item>({ clock, merge, write, intervalMs = INTERVAL_MS }: CoalescingDependencies<Item>) {
  /** What the next write of each record stores. A record is here until an interval after its last write. */
  const records = new Map<string, Batch<Item> | undefined>();
  const writes = new PQueue({ concurrency: WRITES_MAX });

  return async function writeCoalesced(id: string, item: Item, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const isIdle = !records.has(id);
    const batch = joined(records.get(id), item);
    records.set(id, batch);
    if (isIdle) void run(id);
    await inTime(batch.written.promise, signal);
  };

  function joined(batch: Batch<Item> | undefined, item: Item): Batch<Item> {
    if (batch !== undefined) return { item: merge(batch.item, item), written: batch.written };
    const written = Promise.withResolvers<void>();
    // when the write fails, every caller may have been aborted, and nothing else handles the rejection
    written.promise.catch(() => undefined);
    return { item, written };
  }

  async function run(id: string): Promise<void> {
    while (records.get(id) !== undefined) {
      let nextAtMs = 0;
      await writes.add(async () => {
        // items have joined it until now
        const batch = records.get(id);
        records.set(id, undefined);
        nextAtMs = clock.monotonicMs() + intervalMs;
        if (batch !== undefined) await write(id, batch.item).then(batch.written.resolve, batch.written.reject);
      });
      const waitMs = nextAtMs - clock.monotonicMs();
      if (waitMs > 0) await clock.sleep(waitMs);
    }
    records.delete(id);
  }
}
