/**
 * Writes of one record that many ask for, at most one a second:
 *
 *   idle ──item──► (waits for its second) ──► writing ──► idle
 *                     ▲ items join                │ items gather for the next write
 *                     └───────────────────────────┘
 *
 * Every caller is answered when a write that holds its item is durable, so nothing is ever buffered unacknowledged.
 */
import PQueue from 'p-queue';
import type { Clock } from '../ports/clock.ts';

/** One write a second of each record: at a hundred workers still far below what a store takes. */
const INTERVAL_MS = 1_000;
/** When so many records were written by this process, those idle for their second are forgotten; looked for once a second. */
const LANES_SWEEP_AT = 1_000;
/** Records written at once: one message may name thousands of buckets. */
const WRITES_MAX = 16;

interface CoalescingDependencies<Item> {
  readonly clock: Clock;
  /** Sums up two items of one record; the second came later. */
  readonly merge: (earlier: Item, later: Item) => Item;
  readonly write: (id: string, item: Item) => Promise<void>;
}

interface Batch<Item> {
  item: Item;
  readonly written: PromiseWithResolvers<void>;
}

interface Lane<Item> {
  next: Batch<Item> | undefined;
  isRunning: boolean;
  /** Monotonic. */
  nextWriteAtMs: number;
}

/** Creates the writer: resolves when the item is stored, alone or merged with others; rejects with that write's error, or with the signal's reason. */
export function createCoalescingWriter<Item>({ clock, merge, write }: CoalescingDependencies<Item>) {
  const lanes = new Map<string, Lane<Item>>();
  const writes = new PQueue({ concurrency: WRITES_MAX });
  let sweepAtMs = 0;

  return async function writeCoalesced(id: string, item: Item, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const lane = laneOf(id);
    const batch = joined(lane.next, item);
    lane.next = batch;
    if (!lane.isRunning) void run(id, lane);
    await untilAborted(batch.written.promise, signal);
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
    // not at each of thousands of new records, none of which is idle yet
    sweepAtMs = clock.monotonicMs() + INTERVAL_MS;
    for (const [id, lane] of lanes) {
      if (!lane.isRunning && lane.nextWriteAtMs <= clock.monotonicMs()) lanes.delete(id);
    }
  }

  function joined(batch: Batch<Item> | undefined, item: Item): Batch<Item> {
    if (batch !== undefined) return { item: merge(batch.item, item), written: batch.written };
    const written = Promise.withResolvers<void>();
    // every caller may have been aborted by the time it fails
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
    lane.nextWriteAtMs = clock.monotonicMs() + INTERVAL_MS;
    await write(id, batch.item).then(batch.written.resolve, batch.written.reject);
  }
}

async function untilAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return promise;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
