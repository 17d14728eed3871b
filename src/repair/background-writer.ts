/**
 * Re-index's bulk writer. All of the process's parts share it, and it yields to the live path's bulk writer.
 *
 *   waiting ──a request is free──► sent ──► answered
 *      ▲                            │ 429: half as many requests at once, a pause, then the same writes first
 *      └────────────────────────────┘ (until they expire, rule 9)
 *
 * While the live path is busy, it sends one request at a time and pauses after each for as long as the request took.
 */
import {
  answerExpired,
  backoffMs,
  sendBulk,
  fittingCount,
  sizeOf,
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

interface Entry extends QueuedWrite {
  /** False once the caller has aborted its call. */
  readonly isWanted: () => boolean;
}

/** Longer than the live path's pauses (100 ms to 5 s), so that live writes are retried first. */
const PAUSE = { minMs: 500, maxMs: 15_000 };

/** Creates the writer. Its callers bound its queue, because each part settles a few slices at a time. `isFull`: writes are waiting for others to be answered. */
export function createBackgroundWriter(dependencies: BackgroundWriterDependencies): {
  readonly writeAll: WriteAll;
  readonly isFull: () => boolean;
} {
  const { clock, telemetry, limits, liveIsBusy } = dependencies;
  let waiting: Entry[] = [];
  let inFlight = 0;
  /** The number of requests that may run at the same time: additive increase, multiplicative decrease. */
  let allowed = limits.concurrency;
  let pushBacks = 0;
  let pausedUntilMs = 0;
  let isPausing = false;

  async function writeAll(writes: readonly WriteRequest[], signal?: AbortSignal): Promise<readonly WriteAnswer[]> {
    signal?.throwIfAborted();
    if (writes.length === 0) return [];
    const { promise, resolve } = Promise.withResolvers<readonly WriteAnswer[]>();
    const answers: WriteAnswer[] = [];
    let left = writes.length;
    const isWanted = (): boolean => signal?.aborted !== true;
    writes.forEach((request, index) => {
      const answer = (given: WriteAnswer): void => {
        answers[index] = given;
        left -= 1;
        if (left === 0) resolve(answers);
      };
      waiting.push({ request, sizeBytes: sizeOf(request.document), answer, isWanted, pushBack: undefined });
    });
    pump();
    return inTime(promise, signal);
  }

  function pump(): void {
    while (waiting.length > 0 && inFlight < requestsAllowed()) {
      const pauseMs = pausedUntilMs - clock.monotonicMs();
      if (pauseMs > 0) return pumpAfter(pauseMs);
      const batch = takeBatch();
      if (batch.length === 0) continue;
      inFlight += 1;
      void send(batch).finally(() => {
        inFlight -= 1;
        pump();
      });
    }
  }

  function requestsAllowed(): number {
    return liveIsBusy() ? 1 : Math.max(1, Math.floor(allowed));
  }

  function pumpAfter(delayMs: number): void {
    if (isPausing) return;
    isPausing = true;
    void clock.sleep(delayMs).then(() => {
      isPausing = false;
      pump();
    });
  }

  /**
   * Takes writes from the front of the queue; none if all have expired or were aborted by their callers. It does not look behind the
   * batch: dozens of batches may be waiting, and would each be looked at dozens of times.
   */
  function takeBatch(): readonly Entry[] {
    const nowMs = clock.monotonicMs();
    const sendable: Entry[] = [];
    let looked = 0;
    for (const entry of waiting) {
      if (sendable.length === limits.actionsMax) break;
      looked += 1;
      if (entry.isWanted() && entry.request.expiresAtMs > nowMs) sendable.push(entry);
      else answerUnsent(entry);
    }
    const batch = sendable.slice(0, fittingCount(sendable, limits));
    waiting = [...sendable.slice(batch.length), ...waiting.slice(looked)];
    return batch;
  }

  /** Aborted calls do not count, because nothing waits for their answers. */
  function answerUnsent(entry: Entry): void {
    if (entry.isWanted()) telemetry.count('tally_bulk_actions_total', 1, { answer: 'expired' });
    answerExpired(entry);
  }

  async function send(batch: readonly Entry[]): Promise<void> {
    const startedMs = clock.monotonicMs();
    const { pushedBack, equal } = await sendBulk(dependencies, batch);
    // the caller treats a tie like any refusal and compares the key again
    for (const { answer } of equal) answer({ kind: 'equal' });
    if (pushedBack.length === 0) speedUp();
    else slowDown(pushedBack);
    if (liveIsBusy()) pauseFor(clock.monotonicMs() - startedMs);
  }

  function speedUp(): void {
    pushBacks = 0;
    // one more request for each round of successful ones
    allowed = Math.min(limits.concurrency, allowed + 1 / allowed);
  }

  function slowDown(pushedBack: readonly Entry[]): void {
    pushBacks += 1;
    allowed = Math.max(1, allowed / 2);
    pauseFor(backoffMs(pushBacks, PAUSE));
    waiting = [...pushedBack, ...waiting];
  }

  function pauseFor(delayMs: number): void {
    pausedUntilMs = Math.max(pausedUntilMs, clock.monotonicMs() + delayMs);
  }

  return { writeAll, isFull: () => waiting.length > 0 };
}
