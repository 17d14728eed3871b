/**
 * The bulk writer of re-index. All ranges of the process share it, and it gives way to the live path's bulk writer.
 *
 *   waiting ──a request is free──► sent ──► answered
 *      ▲                            │ 429: half as many requests at once, a pause, then the same writes first
 *      └────────────────────────────┘ (until they expire, rule 9)
 *
 * While the live path is busy, it sends one request at a time and pauses after each for as long as the request took.
 */
import { enrichedBytes } from '../../domain/enrichment.ts';
import { faultOf, type Fault } from '../../domain/fault.ts';
import type { BulkLimits, WriteAnswer, WriteRequest } from '../looks/bulk-writer.ts';
import type { Clock } from '../ports/clock.ts';
import type { IndexWriteAnswer, ObjectIndex } from '../ports/object-index.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/**
 * Answers each write once, in the order of the writes. `expired`: the write became too old before it could be sent; a write
 * that the store pushed back until it expired is answered with `index.overloaded`. Rejects with the signal's reason; requests
 * that are in flight at that moment may still be applied.
 */
export type WriteAll = (writes: readonly WriteRequest[], signal?: AbortSignal) => Promise<readonly WriteAnswer[]>;

interface BackgroundWriterDependencies {
  readonly objects: ObjectIndex;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly limits: Pick<BulkLimits, 'actionsMax' | 'bytesMax' | 'concurrency'>;
  /** Whether the live path has work waiting. */
  readonly liveIsBusy: () => boolean;
}

/** One call of `writeAll`, shared by its entries. */
interface Call {
  readonly answers: WriteAnswer[];
  left: number;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (answers: readonly WriteAnswer[]) => void;
}

interface Entry {
  readonly request: WriteRequest;
  readonly sizeBytes: number;
  readonly call: Call;
  /** The position of the write in its call. */
  readonly index: number;
  /** Why the store pushed the write back; undefined while it has not. */
  pushBack: Fault | undefined;
}

/** Estimated size of a document without its key and its enrichment, as in the live path's bulk writer. */
const DOCUMENT_BYTES = 700;
/** Longer than the live path's pauses (100 ms to 5 s), so that live writes are retried first. */
const PAUSE_MIN_MS = 500;
const PAUSE_MAX_MS = 15_000;

const UNANSWERED: IndexWriteAnswer = {
  kind: 'fault',
  code: 'internal.unexpected',
  reason: 'the store answered fewer writes than it was sent',
};

/** Creates the writer. Its callers bound what waits: each range settles a few slices at once. */
export function createBackgroundWriter(dependencies: BackgroundWriterDependencies): WriteAll {
  const { objects, clock, telemetry, limits, liveIsBusy } = dependencies;
  let waiting: Entry[] = [];
  let inFlight = 0;
  /** Requests allowed at once: additive increase, multiplicative decrease. */
  let allowed = limits.concurrency;
  let pushBacks = 0;
  let pausedUntilMs = 0;
  let isPausing = false;

  async function writeAll(writes: readonly WriteRequest[], signal?: AbortSignal): Promise<readonly WriteAnswer[]> {
    signal?.throwIfAborted();
    if (writes.length === 0) return [];
    const { promise, resolve, reject } = Promise.withResolvers<readonly WriteAnswer[]>();
    const call: Call = { answers: [], left: writes.length, signal, resolve };
    writes.forEach((request, index) => {
      const sizeBytes = DOCUMENT_BYTES + 4 * request.document.key.length + enrichedBytes(request.document);
      waiting.push({ request, sizeBytes, call, index, pushBack: undefined });
    });
    const abort = (): void => reject(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    pump();
    try {
      return await promise;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
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

  /** Empty when every waiting write has expired or was aborted by its caller. */
  function takeBatch(): readonly Entry[] {
    const nowMs = clock.monotonicMs();
    const batch: Entry[] = [];
    let bytes = 0;
    let taken = 0;
    for (const entry of waiting) {
      const isSendable = isWanted(entry) && entry.request.expiresAtMs > nowMs;
      if (isSendable && batch.length > 0 && (batch.length >= limits.actionsMax || bytes + entry.sizeBytes > limits.bytesMax)) break;
      taken += 1;
      if (isSendable) {
        batch.push(entry);
        bytes += entry.sizeBytes;
      } else answerUnsent(entry);
    }
    waiting = waiting.slice(taken);
    return batch;
  }

  /** An aborted call is not counted, since nobody waits for its answers. */
  function answerUnsent(entry: Entry): void {
    if (isWanted(entry)) telemetry.bulkAnswered('expired', 1);
    give(entry, entry.pushBack === undefined ? { kind: 'expired' } : { kind: 'fault', fault: entry.pushBack });
  }

  async function send(batch: readonly Entry[]): Promise<void> {
    const startedMs = clock.monotonicMs();
    const sizeBytes = batch.reduce((sum, entry) => sum + entry.sizeBytes, 0);
    const sent = (result: Parameters<Telemetry['bulkSent']>[0]['result']): void =>
      telemetry.bulkSent({ actions: batch.length, sizeBytes, durationMs: clock.monotonicMs() - startedMs, result });
    try {
      const answers = await objects.write(batch.map((entry) => entry.request));
      sent('ok');
      deliver(batch, answers);
    } catch (error) {
      const fault = faultOf(error);
      sent(fault.code);
      const answer = { kind: 'fault', ...fault } as const;
      deliver(
        batch,
        Array.from(batch, () => answer),
      );
    }
    if (liveIsBusy()) pauseFor(clock.monotonicMs() - startedMs);
  }

  function deliver(batch: readonly Entry[], answers: readonly IndexWriteAnswer[]): void {
    const pushedBack: Entry[] = [];
    batch.forEach((entry, index) => {
      const answer = answers[index] ?? UNANSWERED;
      if (answer.kind === 'fault' && answer.code === 'index.overloaded') {
        entry.pushBack = { code: answer.code, reason: answer.reason };
        pushedBack.push(entry);
      } else give(entry, answerOf(answer));
    });
    for (const [kind, alike] of Map.groupBy(answers, (answer) => answer.kind)) telemetry.bulkAnswered(kind, alike.length);
    if (pushedBack.length === 0) speedUp();
    else slowDown(pushedBack);
  }

  function speedUp(): void {
    pushBacks = 0;
    // one more request for each round of successful ones
    allowed = Math.min(limits.concurrency, allowed + 1 / allowed);
  }

  function slowDown(pushedBack: readonly Entry[]): void {
    pushBacks += 1;
    allowed = Math.max(1, allowed / 2);
    pauseFor(Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(pushBacks - 1, 10)) * (0.5 + Math.random() / 2));
    waiting = [...pushedBack, ...waiting];
  }

  function pauseFor(delayMs: number): void {
    pausedUntilMs = Math.max(pausedUntilMs, clock.monotonicMs() + delayMs);
  }

  return writeAll;
}

function isWanted({ call }: Entry): boolean {
  return call.signal?.aborted !== true;
}

function give({ call, index }: Entry, answer: WriteAnswer): void {
  call.answers[index] = answer;
  call.left -= 1;
  if (call.left === 0) call.resolve(call.answers);
}

function answerOf(answer: IndexWriteAnswer): WriteAnswer {
  switch (answer.kind) {
    case 'written':
    case 'superseded':
      return answer;
    // the caller treats a tie like any refusal and compares the key again
    case 'equal':
      return { kind: 'tie' };
    case 'fault':
      return { kind: 'fault', fault: { code: answer.code, reason: answer.reason } };
  }
}
