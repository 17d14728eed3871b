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
import { createLastFailure } from '../observing/last-failure.ts';
import type { WithPorts } from '../store/store.ts';

/** SQS accepts ten entries in one request. */
const BATCH_MAX = 10;
/** How soon a request that failed is sent again where nothing else shows that SQS answers: as often as the queues are read. */
const ASK_AGAIN_MS = 15_000;
/** The receipt handle of no message. SQS refuses it, but only in a request that is permitted. */
const NO_RECEIPT = 'none';
/** Too short to matter, yet under load it fills the batches. */
const LINGER_MS = 10;
/** How many requests run at the same time. It equals the number of batches that pollers may deliver. */
const CONCURRENCY = 16;
/** The most attempts (with waits of 0.2 + 0.4 + 0.8 + 1.6 s). After the last one the message becomes visible again and is settled again, which is harmless. */
const ATTEMPTS_MAX = 5;
const RETRY_MIN_MS = 200;
/** How often the settler looks for messages to extend, and so how soon it retries a failed extension. */
const EXTEND_EVERY_MS = 1_000;
export interface Settler {
  /** Holds a message: its visibility is extended until it is settled. */
  hold(message: QueueMessage): void;
  /** Deletes the message; call it only after its effect is durable. Resolves when SQS has deleted it, or with false after the last attempt: then the message comes again. Never rejects. */
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
  /** Called once. */
  readonly done: (end: EntryEnd) => void;
}

/** `refused`: SQS does not know the message by this receipt handle, and never will. `failed`: so did the last permitted attempt. */
type EntryEnd = 'done' | 'refused' | 'failed';

type Change = Pick<Entry, 'timeoutS' | 'attemptsMax' | 'isWanted'>;
type Waiting = Map<string, Entry[]>;

interface Held {
  readonly message: QueueMessage;
  extendAtMs: number;
  /** The last extension, if there was one. */
  extending: Promise<void> | undefined;
}

/** A settlement has to be sent whatever happens meanwhile. */
const always = (): boolean => true;
const REMOVAL: Change = { timeoutS: undefined, attemptsMax: ATTEMPTS_MAX, isWanted: always };

function hiding(timeoutS: number): Change {
  return { timeoutS, attemptsMax: ATTEMPTS_MAX, isWanted: always };
}

/** Creates the settler. How much it holds is bounded by its callers (the held set and the pollers' batches). */
export function createSettler({ queues, clock, telemetry, visibilityS }: SettlerDependencies): Settler {
  const requests = new PQueue({ concurrency: CONCURRENCY });
  const inHand = new Map<string, Held>();
  /** The entries that wait for their request, by queue. */
  const deletes: Waiting = new Map();
  const visibilityChanges: Waiting = new Map();
  const closed = new AbortController();
  const asked = createRequests({ queues, clock }, closed.signal);
  let removedTotal = 0;
  const extendAfterMs = (visibilityS * 1_000) / 2;
  let isExtending = false;

  async function settle(message: QueueMessage, change: Change): Promise<boolean> {
    const held = inHand.get(message.receiptHandle);
    inHand.delete(message.receiptHandle);
    // otherwise SQS may apply the extension after the settlement
    if (held?.extending !== undefined) await held.extending;
    const end = await enqueue(message, change);
    // a message that SQS did not delete comes again, and is work that is left
    if (change.timeoutS === undefined && end === 'done') removedTotal += 1;
    return end === 'done';
  }

  function enqueue({ queueUrl, receiptHandle }: QueueMessage, { timeoutS, attemptsMax, isWanted }: Change): Promise<EntryEnd> {
    return new Promise((resolve) => {
      const waiting = timeoutS === undefined ? deletes : visibilityChanges;
      const entries = waiting.get(queueUrl) ?? [];
      entries.push({ queueUrl, receiptHandle, timeoutS, attemptsMax, isWanted, done: resolve });
      if (entries.length === 1) {
        waiting.set(queueUrl, entries);
        void clock.sleep(LINGER_MS).then(() => flush(waiting, queueUrl));
      }
      if (entries.length >= BATCH_MAX) flush(waiting, queueUrl);
    });
  }

  function flush(waiting: Waiting, queueUrl: string): void {
    const entries = waiting.get(queueUrl);
    if (entries === undefined) return;
    waiting.delete(queueUrl);
    void requests.add(() => sendAll(entries));
  }

  /** Tries until every entry is done or has used its attempts; a message that was not settled becomes visible again. */
  async function sendAll(batch: readonly Entry[]): Promise<void> {
    let left = batch;
    for (let attempt = 1; left.length > 0; attempt += 1) {
      left = await attemptOnce(left, attempt);
      if (left.length > 0) await clock.sleep(RETRY_MIN_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2));
    }
  }

  /** Sends the entries once and reports those that are done or have used their attempts. Returns those to be tried again. */
  async function attemptOnce(batch: readonly Entry[], attempt: number): Promise<readonly Entry[]> {
    const endOf = await send(batch.filter((entry) => entry.isWanted()));
    const again: Entry[] = [];
    for (const entry of batch) {
      const end = endOf(entry);
      if (end === 'failed' && attempt < entry.attemptsMax) again.push(entry);
      else entry.done(end);
    }
    return again;
  }

  /** Sends one request. Returns how it ended for each entry. */
  async function send(batch: readonly Entry[]): Promise<(entry: Entry) => EntryEnd> {
    const [first] = batch;
    if (first === undefined) return () => 'done';
    try {
      const failures = await asked.send(first, batch);
      const ends = new Map(failures.map((failure) => [failure.receiptHandle, endOfFailure(failure)]));
      return ({ receiptHandle }) => ends.get(receiptHandle) ?? 'done';
    } catch (error) {
      telemetry.requestFailed('settle messages', error);
      // the others were settled meanwhile, and not sent
      return (entry) => (batch.includes(entry) ? 'failed' : 'done');
    }
  }

  function endOfFailure({ senderFault, code }: BatchFailure): EntryEnd {
    // the receipt handle has expired or is foreign, so the message is visible again already
    if (!senderFault) return 'failed';
    telemetry.requestFailed('settle messages', new FaultError('queue.unreachable', `SQS refused an entry of a batch: ${code}`));
    return 'refused';
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
    const end = await enqueue(message, { timeoutS: visibilityS, attemptsMax: 1, isWanted });
    // due at the next look, until an extension succeeds or the message is settled
    if (end === 'failed') held.extendAtMs = clock.monotonicMs();
  }

  return {
    hold(message) {
      const extendAtMs = message.receivedAtMonotonicMs + extendAfterMs;
      inHand.set(message.receiptHandle, { message, extendAtMs, extending: undefined });
      if (!isExtending) void keepExtending();
    },
    remove: (message) => settle(message, REMOVAL),
    get removedTotal() {
      return removedTotal;
    },
    hide: (message, delayS) => settle(message, hiding(delayS)),
    get inHand() {
      return inHand.size;
    },
    fault: asked.fault,
    async giveBackAll() {
      await Promise.all([...inHand.values()].map(({ message }) => settle(message, hiding(0))));
    },
    close() {
      closed.abort(new Error('the settler is closed'));
    },
  };
}

/** Sends the requests of a settler, and knows why they fail: by operation and queue. */
function createRequests({ queues, clock }: Pick<SettlerDependencies, 'queues' | 'clock'>, closed: AbortSignal) {
  const last = createLastFailure(clock);
  const askedAgain = new Set<string>();

  function request({ queueUrl, timeoutS: change }: Entry, batch: readonly Pick<Entry, 'receiptHandle' | 'timeoutS'>[]) {
    if (change === undefined) {
      return queues.deleteBatch(
        queueUrl,
        batch.map(({ receiptHandle }) => receiptHandle),
      );
    }
    return queues.changeVisibilityBatch(
      queueUrl,
      batch.map(({ receiptHandle, timeoutS = change }) => ({ receiptHandle, timeoutS })),
    );
  }

  /** Asks until SQS answers, since there may be no other message to settle. A message that came meanwhile shows it too. */
  async function askAgain(name: string, entry: Entry): Promise<void> {
    if (askedAgain.has(name)) return;
    askedAgain.add(name);
    const stillFails = async (): Promise<boolean> => {
      await clock.sleep(ASK_AGAIN_MS, closed).catch(() => undefined);
      return last.current(name) !== undefined && !closed.aborted;
    };
    while (await stillFails()) {
      await request(entry, [{ ...entry, receiptHandle: NO_RECEIPT }]).then(
        () => last.succeeded(name),
        (error: unknown) => last.failed(name, faultOf(error)),
      );
    }
    askedAgain.delete(name);
  }

  return {
    /** All entries are of the queue and the operation of the first. */
    async send(first: Entry, batch: readonly Entry[]): Promise<readonly BatchFailure[]> {
      const name = `${first.timeoutS === undefined ? 'delete' : 'change'} ${first.queueUrl}`;
      try {
        const failures = await request(first, batch);
        last.succeeded(name);
        return failures;
      } catch (error) {
        last.failed(name, faultOf(error));
        void askAgain(name, first);
        throw error;
      }
    },
    fault: () => last.current(),
  };
}
