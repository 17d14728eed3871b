/**
 * Re-index's bulk writer. All of the process's parts share it, and it yields to the live path's bulk writer.
 *
 *   waiting ──a request is free──► sent ──► answered
 *      ▲                            │ 429: half as many requests at once, a pause, then the same writes first
 *      └────────────────────────────┘ (until they expire, rule 9)
 *
 * While the live path is busy, it sends one request at a time and pauses after each for as long as the request took.
 */
import PQueue from 'p-queue';
import {
  backoffMs,
  sendBulk,
  fittingCount,
  sizeOf,
  withoutExpired,
  type BulkLimits,
  type IndexReports,
  type QueuedWrite,
  type WriteRequest,
} from '../observing/bulk-writer.ts';
import type { ObjectIndex, WriteAnswer, WithPorts } from '../store/store.ts';
import { inTime } from '../base/in-time.ts';

/**
 * Answers each write once, in the order of the writes. `expired`: the write became too old before it could be sent; if the store
 * pushed it back until then, the answer is `index.overloaded`. Rejects with the signal's reason; requests in flight at that moment
 * may still be applied.
 */
export type WriteAll = (writes: readonly WriteRequest[], signal?: AbortSignal) => Promise<readonly WriteAnswer[]>;

interface BackgroundWriterDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly objects: ObjectIndex;
  readonly circuits: IndexReports;
  readonly limits: Pick<BulkLimits, 'actionsMax' | 'bytesMax' | 'concurrency'>;
  /** Whether the live path has work waiting. */
  readonly liveIsBusy: () => boolean;
}

/** Longer than the live path's pauses (100 ms to 5 s), so that live writes are retried first. */
const PAUSE = { minMs: 500, maxMs: 15_000 };

/** Creates the writer. Its callers bound its queue, because each part settles a few slices at a time. `isFull`: writes are waiting for others to be answered. */
export function createBackgroundWriter(dependencies: BackgroundWriterDependencies): {
  readonly writeAll: WriteAll;
  readonly isFull: () => boolean;
} {
  const { clock, limits, liveIsBusy } = dependencies;
  const requests = new PQueue({ concurrency: limits.concurrency });
  /** The number of requests that may run at the same time: additive increase, multiplicative decrease. */
  let allowed = limits.concurrency;
  let pushBacks = 0;
  let pausedUntilMs = 0;

  async function writeAll(writes: readonly WriteRequest[], signal?: AbortSignal): Promise<readonly WriteAnswer[]> {
    signal?.throwIfAborted();
    if (writes.length === 0) return [];
    limitRequests();
    const { promise, resolve } = Promise.withResolvers<readonly WriteAnswer[]>();
    const answers: WriteAnswer[] = [];
    let left = writes.length;
    const queue = writes.map((request, at): QueuedWrite => {
      const answer = (given: WriteAnswer): void => {
        answers[at] = given;
        left -= 1;
        if (left === 0) resolve(answers);
      };
      return { request, sizeBytes: sizeOf(request.document), answer, pushBack: undefined };
    });
    for (const batch of batchesOf(queue)) void deliver(batch, signal);
    return inTime(promise, signal);
  }

  function batchesOf(queue: readonly QueuedWrite[]): readonly (readonly QueuedWrite[])[] {
    const batches: (readonly QueuedWrite[])[] = [];
    for (let left = queue; left.length > 0; left = left.slice(batches.at(-1)?.length))
      batches.push(left.slice(0, fittingCount(left, limits)));
    return batches;
  }

  /** Sends the batch, and what the store pushed back of it again before all others. */
  async function deliver(batch: readonly QueuedWrite[], signal: AbortSignal | undefined): Promise<void> {
    for (let left = batch, priority = 0; left.length > 0; priority = 1) left = await requests.add(() => send(left, signal), { priority });
  }

  /** Resolves with what the store pushed back. */
  async function send(batch: readonly QueuedWrite[], signal: AbortSignal | undefined): Promise<readonly QueuedWrite[]> {
    const live = signal?.aborted === true ? [] : withoutExpired(dependencies, batch);
    if (live.length === 0) return [];
    const startedMs = clock.monotonicMs();
    const { pushedBack, equal } = await sendBulk(dependencies, live);
    // the caller treats a tie like any refusal and compares the key again
    for (const { answer } of equal) answer({ kind: 'equal' });
    if (pushedBack.length === 0) speedUp();
    else slowDown();
    if (liveIsBusy()) pauseFor(clock.monotonicMs() - startedMs);
    limitRequests();
    return pushedBack;
  }

  function limitRequests(): void {
    requests.concurrency = liveIsBusy() ? 1 : Math.max(1, Math.floor(allowed));
  }

  function speedUp(): void {
    pushBacks = 0;
    // one more request for each round of successful ones
    allowed = Math.min(limits.concurrency, allowed + 1 / allowed);
  }

  function slowDown(): void {
    pushBacks += 1;
    allowed = Math.max(1, allowed / 2);
    pauseFor(backoffMs(pushBacks, PAUSE));
  }

  function pauseFor(delayMs: number): void {
    pausedUntilMs = Math.max(pausedUntilMs, clock.monotonicMs() + delayMs);
    if (!requests.isPaused) void pause();
  }

  async function pause(): Promise<void> {
    requests.pause();
    for (let leftMs = pausedUntilMs - clock.monotonicMs(); leftMs > 0; leftMs = pausedUntilMs - clock.monotonicMs())
      await clock.sleep(leftMs);
    requests.start();
  }

  return { writeAll, isFull: () => requests.size > 0 };
}
