/**
 * Settling messages: the one place that keeps visibility, deletes, defers and gives back. Requests are batched across
 * pollers; every message in hand is extended until it is settled.
 *
 *   hold ──► in hand (extended at half its visibility) ──► remove | hide(seconds) | give back (0 s) ──► out of hand
 */
import PQueue from 'p-queue';
import { faultOf } from '../domain/fault.ts';
import type { BatchFailure, Clock, QueueClient, QueueMessage, Telemetry } from './ports.ts';

/** SQS takes ten entries a request. */
const BATCH_MAX = 10;
/** Unnoticed by anybody, yet it fills batches under load. */
const LINGER_MS = 10;
/** Settlement requests at once: as many as pollers may deliver batches at a time. */
const CONCURRENCY = 16;
/** After these the message comes back by itself and is settled again, which is harmless: 0.2 + 0.4 + 0.8 + 1.6 s of trying. */
const ATTEMPTS_MAX = 5;
const RETRY_MIN_MS = 200;
const EXTEND_EVERY_MS = 1_000;

export interface Settler {
  /** Takes a message in hand: its visibility is extended until it is settled. */
  hold(message: QueueMessage): void;
  /** Deletes it: only after its effect is durable. */
  remove(message: QueueMessage): Promise<void>;
  /** Hides it for so long (0: visible at once). */
  hide(message: QueueMessage, delayS: number): Promise<void>;
  readonly inHand: number;
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
  readonly done: () => void;
}

interface Held {
  readonly message: QueueMessage;
  extendAtMs: number;
}

/** Creates the settler. What it holds is bounded by its callers (the held set and the pollers' batches). */
export function createSettler({ queues, clock, telemetry, visibilityS }: SettlerDependencies): Settler {
  const requests = new PQueue({ concurrency: CONCURRENCY });
  const inHand = new Map<string, Held>();
  const waiting = new Map<string, Entry[]>();
  const extendAfterMs = (visibilityS * 1_000) / 2;
  const extendTimer = setInterval(extendDue, EXTEND_EVERY_MS);
  extendTimer.unref();

  function settle(message: QueueMessage, timeoutS?: number): Promise<void> {
    inHand.delete(message.receiptHandle);
    return enqueue(message, timeoutS);
  }

  function enqueue({ queueUrl, receiptHandle }: QueueMessage, timeoutS?: number): Promise<void> {
    return new Promise((resolve) => {
      const lane = `${timeoutS === undefined ? 'delete' : 'visibility'} ${queueUrl}`;
      const entries = waiting.get(lane) ?? [];
      entries.push({ queueUrl, receiptHandle, done: resolve, ...(timeoutS !== undefined && { timeoutS }) });
      waiting.set(lane, entries);
      if (entries.length >= BATCH_MAX) flush(lane);
      else if (entries.length === 1) setTimeout(() => flush(lane), LINGER_MS);
    });
  }

  function flush(lane: string): void {
    const entries = waiting.get(lane) ?? [];
    waiting.delete(lane);
    for (let start = 0; start < entries.length; start += BATCH_MAX) {
      const batch = entries.slice(start, start + BATCH_MAX);
      void requests.add(() => sendAll(batch));
    }
  }

  /** Tries until every entry is done or cannot be helped; then the message returns by itself. */
  async function sendAll(batch: readonly Entry[]): Promise<void> {
    let left = batch;
    for (let attempt = 1; left.length > 0; attempt += 1) {
      const failed = await send(left);
      for (const entry of left) if (!failed.includes(entry)) entry.done();
      left = failed;
      if (left.length === 0) return;
      if (attempt === ATTEMPTS_MAX) break;
      await clock.sleep(RETRY_MIN_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2));
    }
    for (const entry of left) entry.done();
  }

  async function send(batch: readonly Entry[]): Promise<readonly Entry[]> {
    const queueUrl = batch[0]?.queueUrl ?? '';
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

  function extendDue(): void {
    const nowMs = clock.monotonicMs();
    for (const held of inHand.values()) {
      if (held.extendAtMs > nowMs) continue;
      held.extendAtMs = nowMs + extendAfterMs;
      void enqueue(held.message, visibilityS);
    }
  }

  return {
    hold(message) {
      inHand.set(message.receiptHandle, { message, extendAtMs: message.receivedAtMonotonicMs + extendAfterMs });
    },
    remove: (message) => settle(message),
    hide: (message, delayS) => settle(message, delayS),
    get inHand() {
      return inHand.size;
    },
    async giveBackAll() {
      await Promise.all([...inHand.values()].map(({ message }) => settle(message, 0)));
    },
    close() {
      clearInterval(extendTimer);
    },
  };
}
