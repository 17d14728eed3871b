/**
 * Settles messages: the only place that extends their visibility, deletes, hides or gives them back. Requests are batched
 * across pollers. The visibility of every held message is extended until it is settled, and never afterwards: an extension
 * that was not sent yet is dropped, and one that was sent is awaited.
 *
 *   hold ──► held (extended at half its visibility) ──► remove | hide(seconds) | give back (0 s) ──► settled
 */
import { type Fault, FaultError, faultOf } from '../base/fault.ts';
import PQueue from 'p-queue';
import type { BatchFailure, QueueClient, QueueMessage } from '../aws/queues.ts';
import { createLastFailure } from '../observing/readiness.ts';
import type { WithPorts } from '../store/store.ts';

/** SQS accepts ten entries in one request. */
const BATCH_MAX = 10;
/** Too short to matter, yet long enough to fill batches under load. */
const LINGER_MS = 10;
/** How many requests run at the same time: as many as pollers may deliver batches. */
const CONCURRENCY = 16;
/** Attempts at a settlement, with waits of at most 0.2 + 0.4 + 0.8 + 1.6 s. After the last one the message becomes visible again and is settled again, which is harmless. */
const ATTEMPTS_MAX = 5;
const RETRY_MIN_MS = 200;
/** How often the settler looks for messages to extend, and so how soon it retries a failed extension. */
const EXTEND_EVERY_MS = 1_000;

export interface Settler {
  /** Holds a message: its visibility is extended until it is settled. */
  hold(message: QueueMessage): void;
  /** Deletes the message; call it only after its effect is durable. Resolves when SQS has deleted it; with false after the last attempt, and the message comes back. Never rejects. */
  remove(message: QueueMessage): Promise<boolean>;
  /** Hides the message for `delayS` (0: it is visible at once). Resolves as remove() does. */
  hide(message: QueueMessage, delayS: number): Promise<boolean>;
  /** How many messages are held now. */
  readonly inHand: number;
  /** How many messages SQS has deleted since the start. */
  readonly removedTotal: number;
  /** Why the last request to delete, or the last to change a visibility, failed in a queue; undefined if all were answered. */
  fault(): Fault | undefined;
  /** Gives all held messages back to their queues, at the end of a stop. */
  giveBackAll(): Promise<void>;
  /** Ends the extensions. */
  close(): void;
}

interface SettlerDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly queues: QueueClient;
  readonly visibilityS: number;
}

interface Entry {
  readonly queueUrl: string;
  readonly receiptHandle: string;
  /** The visibility timeout to set; undefined: the message is deleted. */
  readonly timeoutS: number | undefined;
  readonly attemptsMax: number;
  /** Whether the entry still has to be sent. */
  readonly isWanted: () => boolean;
  /** Called once, with whether SQS did it. */
  readonly done: (isDone: boolean) => void;
}

type Change = Pick<Entry, 'timeoutS' | 'attemptsMax' | 'isWanted'>;

interface Held {
  readonly message: QueueMessage;
  extendAtMs: number;
  /** The last extension, if there was one. */
  extending: Promise<void> | undefined;
}

/** A settlement must be sent in any case. */
const alwaysWanted = (): boolean => true;

/** Creates the settler. How much it holds is bounded by its callers (the held set and the pollers' batches). */
export function createSettler({ queues, clock, telemetry, visibilityS }: SettlerDependencies): Settler {
  const requests = new PQueue({ concurrency: CONCURRENCY });
  const inHand = new Map<string, Held>();
  /** The entries that wait for their request, by operation and queue. */
  const waiting = new Map<string, Entry[]>();
  const lastFailure = createLastFailure(clock);
  const closed = new AbortController();
  const extendAfterMs = (visibilityS * 1_000) / 2;
  let removedTotal = 0;
  let isExtending = false;

  async function settle(message: QueueMessage, timeoutS?: number): Promise<boolean> {
    const held = inHand.get(message.receiptHandle);
    inHand.delete(message.receiptHandle);
    // otherwise SQS may apply the extension after the settlement
    if (held?.extending !== undefined) await held.extending;
    const isDone = await enqueue(message, { timeoutS, attemptsMax: ATTEMPTS_MAX, isWanted: alwaysWanted });
    // a message that SQS did not delete comes back, so its work is not done
    if (timeoutS === undefined && isDone) removedTotal += 1;
    return isDone;
  }

  function enqueue({ queueUrl, receiptHandle }: QueueMessage, change: Change): Promise<boolean> {
    return new Promise((done) => {
      const name = `${change.timeoutS === undefined ? 'delete' : 'change'} ${queueUrl}`;
      const entries = waiting.get(name) ?? [];
      entries.push({ queueUrl, receiptHandle, ...change, done });
      if (entries.length === 1) {
        waiting.set(name, entries);
        void clock.sleep(LINGER_MS).then(() => flush(name));
      }
      if (entries.length >= BATCH_MAX) flush(name);
    });
  }

  function flush(name: string): void {
    const entries = waiting.get(name);
    if (entries === undefined) return;
    waiting.delete(name);
    void requests.add(() => sendAll(name, entries));
  }

  /** Tries until every entry is done or has used up its attempts; a message that was not settled becomes visible again. */
  async function sendAll(name: string, batch: readonly Entry[]): Promise<void> {
    let left = batch;
    for (let attempt = 1; left.length > 0; attempt += 1) {
      if (attempt > 1) await clock.sleep(RETRY_MIN_MS * 2 ** (attempt - 2) * (0.5 + Math.random() / 2));
      const failed = await send(name, left);
      left = failed.filter(({ attemptsMax }) => attempt < attemptsMax);
      for (const { attemptsMax, done } of failed) if (attempt >= attemptsMax) done(false);
    }
  }

  /** Sends one request. Returns the entries for which another attempt may help, and ends the others. */
  async function send(name: string, batch: readonly Entry[]): Promise<readonly Entry[]> {
    const wanted = batch.filter(({ isWanted }) => isWanted());
    const failures = await failuresOf(name, wanted);
    const failed: Entry[] = [];
    for (const entry of batch) {
      const failure = failures.get(entry.receiptHandle);
      if (failure === undefined) entry.done(true);
      else if (failure.senderFault) endRefused(entry, failure);
      else failed.push(entry);
    }
    return failed;
  }

  /** Sends the entries, and returns those that SQS refused, by receipt handle. */
  async function failuresOf(
    name: string,
    batch: readonly Entry[],
  ): Promise<ReadonlyMap<string, Pick<BatchFailure, 'code' | 'senderFault'>>> {
    try {
      const failures = await request(batch);
      if (batch.length > 0) lastFailure.succeeded(name);
      return new Map(failures.map((failure) => [failure.receiptHandle, failure]));
    } catch (error) {
      const fault = faultOf(error);
      lastFailure.failed(name, fault);
      telemetry.requestFailed('settle messages', error);
      return new Map(batch.map(({ receiptHandle }) => [receiptHandle, { code: fault.code, senderFault: false }]));
    }
  }

  /** All entries are of one queue and one operation. */
  async function request(batch: readonly Entry[]): Promise<readonly BatchFailure[]> {
    const [first] = batch;
    if (first === undefined) return [];
    const { queueUrl, timeoutS: timeout } = first;
    const handles = batch.map(({ receiptHandle }) => receiptHandle);
    if (timeout === undefined) return queues.deleteBatch(queueUrl, handles);
    return queues.changeVisibilityBatch(
      queueUrl,
      batch.map(({ receiptHandle, timeoutS = timeout }) => ({ receiptHandle, timeoutS })),
    );
  }

  /** The receipt handle has expired or is unknown: the message is already visible again, and there is nothing to extend. */
  function endRefused({ receiptHandle, done }: Entry, { code }: Pick<BatchFailure, 'code'>): void {
    telemetry.requestFailed('settle messages', new FaultError('queue.unreachable', `SQS refused an entry of a batch: ${code}`));
    inHand.delete(receiptHandle);
    done(false);
  }

  /** Runs as long as messages are held. */
  async function keepExtending(): Promise<void> {
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
    // due at the next look, until an extension succeeds or the message is settled
    if (!isDone) held.extendAtMs = clock.monotonicMs();
  }

  return {
    hold(message) {
      const extendAtMs = message.receivedAtMonotonicMs + extendAfterMs;
      inHand.set(message.receiptHandle, { message, extendAtMs, extending: undefined });
      if (!isExtending) void keepExtending();
    },
    remove: (message) => settle(message),
    hide: settle,
    get inHand() {
      return inHand.size;
    },
    get removedTotal() {
      return removedTotal;
    },
    fault: () => lastFailure.current(),
    async giveBackAll() {
      await Promise.all([...inHand.values()].map(({ message }) => settle(message, 0)));
    },
    close() {
      closed.abort(new Error('the settler is closed'));
    },
  };
}
