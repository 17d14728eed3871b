/**
 * The bulk writer of re-index: whole batches, shared by all ranges of the process, behind the live path's.
 *
 *   waiting ──a request is free──► sent ──► answered
 *      ▲                            │ 429: half as many requests at once, a pause, the same writes first
 *      └────────────────────────────┘ (until they expire, rule 9)
 *
 * While the live path is busy one request at a time is sent, and as long a pause follows as it took.
 */
import type { Fault } from '../../domain/fault.ts';
import { faultOf } from '../../domain/fault.ts';
import type { BulkLimits, WriteAnswer, WriteRequest } from '../looks/bulk-writer.ts';
import type { Clock } from '../ports/clock.ts';
import type { IndexWriteAnswer, ObjectIndex } from '../ports/object-index.ts';
import type { Telemetry } from '../ports/telemetry.ts';

export interface BackgroundWriter {
  /**
   * Answers each write, in order, once. `expired`: too old before it could be sent; what was pushed back until it expired
   * is `index.overloaded`. Rejects with the signal's reason; what is on its way by then may still land.
   */
  writeAll(writes: readonly WriteRequest[], signal?: AbortSignal): Promise<readonly WriteAnswer[]>;
}

interface BackgroundWriterDependencies {
  readonly objects: ObjectIndex;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly limits: Pick<BulkLimits, 'actionsMax' | 'bytesMax' | 'concurrency'>;
  /** Whether the live path has work waiting. */
  readonly liveIsBusy: () => boolean;
}

/** One `writeAll`, for all of its entries. */
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
  /** Its place among the call's writes. */
  readonly index: number;
  /** Why it was sent and not taken, when it was. */
  pushBack: Fault | undefined;
}

/** What a document weighs beyond its key: an estimate, as the live writer's. */
const DOCUMENT_BYTES = 700;
/** Longer than the live path's (100 ms to 5 s): of two that are pushed back, this one is to be the later. */
const PAUSE_MIN_MS = 500;
const PAUSE_MAX_MS = 15_000;

const UNANSWERED: IndexWriteAnswer = {
  kind: 'fault',
  code: 'internal.unexpected',
  reason: 'the store answered fewer writes than it was sent',
};

/** Creates the writer. What waits is bounded by its callers: each range has a few slices in hand. */
export function createBackgroundWriter(dependencies: BackgroundWriterDependencies): BackgroundWriter {
  const { objects, clock, telemetry, limits, liveIsBusy } = dependencies;
  let waiting: Entry[] = [];
  let inFlight = 0;
  /** Requests at once, now: additive increase, multiplicative decrease. */
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
      const sizeBytes = DOCUMENT_BYTES + 4 * request.document.key.length;
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

  /** Empty when nothing that waited is still to be sent. */
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

  /** Of a caller that has gone nobody waits for the answer. */
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
    // one more once each of those at once has been answered
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

  return { writeAll };
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
    case 'stale':
      return answer;
    // nothing of re-index is refused for an equal clock: the caller looks again
    case 'equal':
      return { kind: 'tie' };
    case 'fault':
      return { kind: 'fault', fault: { code: answer.code, reason: answer.reason } };
  }
}
