/**
 * Settling messages: the one place that keeps visibility, deletes, defers and gives back. Requests are batched across
 * pollers; every message in hand is extended until it is settled, and never after: an extension that has not left yet is
 * dropped, one that is on its way is waited for.
 *
 *   hold ──► in hand (extended at half its visibility) ──► remove | hide(seconds) | give back (0 s) ──► out of hand
 */
import PQueue from 'p-queue';
import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { BatchFailure, QueueClient, QueueMessage } from '../ports/queues.ts';

/** SQS takes ten entries a request. */
const BATCH_MAX = 10;
/** Unnoticed by anybody, yet it fills batches under load. */
const LINGER_MS = 10;
/** Settlement requests at once: as many as pollers may deliver batches at a time. */
const CONCURRENCY = 16;
/** After these the message comes back by itself and is settled again, which is harmless: 0.2 + 0.4 + 0.8 + 1.6 s of trying. */
const ATTEMPTS_MAX = 5;
const RETRY_MIN_MS = 200;
/** How often it is looked for what must be extended; also when an extension that failed is tried again. */
const EXTEND_EVERY_MS = 1_000;

export interface Settler {
  /** Takes a message in hand: its visibility is extended until it is settled. */
  hold(message: QueueMessage): void;
  /** Deletes it: only after its effect is durable. Resolves when SQS has done so, or when it was tried often enough. */
  remove(message: QueueMessage): Promise<void>;
  /** Hides it for so long (0: visible at once). Resolves as remove() does. */
  hide(message: QueueMessage, delayS: number): Promise<void>;
  readonly inHand: number;
  /** Messages deleted since the start. */
  readonly removedTotal: number;
  /** Gives everything in hand back at once; for the end of a stop. */
  giveBackAll(): Promise<void>;
  /** No more extensions. */
  close(): void;
}

interface SettlerDependencies {
  readonly queues: QueueClient;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly visibilityS: number;
}

interface Entry {
  readonly queueUrl: string;
  readonly receiptHandle: string;
  /** Undefined: delete. */
  readonly timeoutS?: number;
  readonly attemptsMax: number;
  /** Whether it is still worth sending. */
  readonly isWanted: () => boolean;
  /** Called once, with whether there is nothing left to try. */
  readonly done: (isDone: boolean) => void;
}

type Wish = Pick<Entry, 'timeoutS' | 'attemptsMax' | 'isWanted'>;

interface Held {
  readonly message: QueueMessage;
  extendAtMs: number;
  /** The extension on its way, if there was one. */
  extending: Promise<void> | undefined;
}

/** Creates the settler. What it holds is bounded by its callers (the held set and the pollers' batches). */
export function createSettler({ queues, clock, telemetry, visibilityS }: SettlerDependencies): Settler {
  const requests = new PQueue({ concurrency: CONCURRENCY });
  const inHand = new Map<string, Held>();
  const waiting = new Map<string, Entry[]>();
  const closed = new AbortController();
  let removedTotal = 0;
  const extendAfterMs = (visibilityS * 1_000) / 2;
  let isExtending = false;

  async function settle(message: QueueMessage, timeoutS?: number): Promise<void> {
    const held = inHand.get(message.receiptHandle);
    inHand.delete(message.receiptHandle);
    // SQS may otherwise take the extension for the later word
    if (held?.extending !== undefined) await held.extending;
    await enqueue(message, { attemptsMax: ATTEMPTS_MAX, isWanted: () => true, ...(timeoutS !== undefined && { timeoutS }) });
  }

  /** Resolves with whether there is nothing left to try. */
  function enqueue({ queueUrl, receiptHandle }: QueueMessage, wish: Wish): Promise<boolean> {
    return new Promise((resolve) => {
      const lane = `${wish.timeoutS === undefined ? 'delete' : 'visibility'} ${queueUrl}`;
      const entries = waiting.get(lane) ?? [];
      entries.push({ queueUrl, receiptHandle, ...wish, done: resolve });
      waiting.set(lane, entries);
      if (entries.length >= BATCH_MAX) flush(lane);
      else if (entries.length === 1) void clock.sleep(LINGER_MS).then(() => flush(lane));
    });
  }

  function flush(lane: string): void {
    const entries = waiting.get(lane) ?? [];
    waiting.delete(lane);
    if (entries.length > 0) void requests.add(() => sendAll(entries));
  }

  /** Tries until every entry is done or cannot be helped; then the message returns by itself. */
  async function sendAll(batch: readonly Entry[]): Promise<void> {
    let left = batch;
    for (let attempt = 1; left.length > 0; attempt += 1) {
      left = await attemptOnce(left, attempt);
      if (left.length > 0) await clock.sleep(RETRY_MIN_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2));
    }
  }

  /** Answers what is done or given up; resolves with what is to be tried again. */
  async function attemptOnce(batch: readonly Entry[], attempt: number): Promise<readonly Entry[]> {
    const failed = await send(batch.filter((entry) => entry.isWanted()));
    const again = failed.filter((entry) => attempt < entry.attemptsMax);
    for (const entry of batch) if (!again.includes(entry)) entry.done(!failed.includes(entry));
    return again;
  }

  /** Resolves with the entries that failed and may be tried again. */
  async function send(batch: readonly Entry[]): Promise<readonly Entry[]> {
    const queueUrl = batch[0]?.queueUrl;
    if (queueUrl === undefined) return [];
    try {
      const failures = await request(queueUrl, batch);
      return batch.filter((entry) => failures.some((failure) => failure.receiptHandle === entry.receiptHandle && canRetry(failure)));
    } catch (error) {
      const { code, reason } = faultOf(error);
      telemetry.requestFailed('settle messages', code, reason);
      return batch;
    }
  }

  function request(queueUrl: string, batch: readonly Entry[]): Promise<readonly BatchFailure[]> {
    const changes = batch.flatMap(({ receiptHandle, timeoutS }) => (timeoutS === undefined ? [] : [{ receiptHandle, timeoutS }]));
    if (changes.length > 0) return queues.changeVisibilityBatch(queueUrl, changes);
    return queues.deleteBatch(
      queueUrl,
      batch.map((entry) => entry.receiptHandle),
    );
  }

  function canRetry(failure: BatchFailure): boolean {
    // an expired or foreign handle: the message is visible again already
    if (!failure.senderFault) return true;
    telemetry.requestFailed('settle messages', 'queue.unreachable', `SQS refused one entry: ${failure.code}`);
    return false;
  }

  /** Runs while something is in hand. */
  async function keepExtending(): Promise<void> {
    if (isExtending) return;
    isExtending = true;
    while (inHand.size > 0 && !closed.signal.aborted) {
      await clock.sleep(EXTEND_EVERY_MS, closed.signal).catch(() => undefined);
      for (const held of inHand.values()) if (held.extendAtMs <= clock.monotonicMs()) held.extending = extend(held);
    }
    isExtending = false;
  }

  async function extend(held: Held): Promise<void> {
    const { message } = held;
    held.extendAtMs = clock.monotonicMs() + extendAfterMs;
    const isWanted = (): boolean => inHand.get(message.receiptHandle) === held;
    const isDone = await enqueue(message, { timeoutS: visibilityS, attemptsMax: 1, isWanted });
    // at the next look, and so again until it is done or settled
    if (!isDone) held.extendAtMs = clock.monotonicMs();
  }

  return {
    hold(message) {
      const extendAtMs = message.receivedAtMonotonicMs + extendAfterMs;
      inHand.set(message.receiptHandle, { message, extendAtMs, extending: undefined });
      void keepExtending();
    },
    async remove(message) {
      await settle(message);
      removedTotal += 1;
    },
    get removedTotal() {
      return removedTotal;
    },
    hide: (message, delayS) => settle(message, delayS),
    get inHand() {
      return inHand.size;
    },
    async giveBackAll() {
      await Promise.all([...inHand.values()].map(({ message }) => settle(message, 0)));
    },
    close() {
      closed.abort(new Error('the settler is closed'));
    },
  };
}
