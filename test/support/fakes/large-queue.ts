/**
 * SQS in memory for millions of messages: long polls, visibility time-outs, a redrive policy and the limit of messages in
 * flight. What a request costs does not depend on how many messages there are.
 */
import type { Clock } from '../../../src/process/clock.ts';
import { createRandom } from '../random/seeded.ts';
import type { BatchFailure, QueueClient, QueueMessage } from '../../../src/aws/queues.ts';

/** SQS delivers nothing while so many messages of a queue are in flight. */
const SQS_IN_FLIGHT_MAX = 120_000;
/** Visibility ends on this grid. */
const SLOT_MS = 100;

export interface LargeMessage {
  readonly messageId: string;
  readonly body: string;
  /** What the test calls messages of this kind. */
  readonly tag: string;
  readonly sentAtMs: number;
  receiveCount: number;
  firstReceivedAtMs: number | undefined;
  /** Of the latest receive; undefined before it, and once the message was deleted or moved. */
  handle: string | undefined;
  /** When it becomes visible again; 0: it is visible. */
  hiddenUntilMs: number;
}

interface ReceiveOptions {
  readonly visibilityS: number;
  readonly max: number;
}

export interface LargeQueue extends Pick<QueueClient, 'deleteBatch' | 'changeVisibilityBatch' | 'attributes'> {
  add(body: string, tag: string): void;
  /** A long poll. Rejects with the signal's reason. */
  poll(options: ReceiveOptions, waitMs: number, signal: AbortSignal): Promise<readonly QueueMessage[]>;
  /** Ends the visibility time-outs that are over, and answers polls. Called by the owner of the clock, as often as it likes. */
  tick(): void;
  readonly inFlight: number;
  /** All messages, those in flight included. */
  readonly all: ReadonlySet<LargeMessage>;
  /** What the redrive policy moved away. */
  readonly moved: readonly LargeMessage[];
}

interface LargeQueueOptions {
  readonly clock: Clock;
  readonly queueUrl: string;
  readonly maxReceiveCount: number;
  readonly retentionMs: number;
  readonly deadLetterQueueUrl: string;
  /** How old the numbers of its attributes are: those of SQS are approximate, and may be a minute old. */
  readonly attributesAgeMs: number;
  /** Called with each message that is deleted. */
  readonly deleted: (message: LargeMessage) => void;
}

interface Poll extends ReceiveOptions {
  readonly untilMs: number;
  readonly answer: (messages: readonly QueueMessage[]) => void;
}

/** Creates an empty queue. */
export function createLargeQueue({ clock, queueUrl, deleted, ...settings }: LargeQueueOptions): LargeQueue {
  const visible = createFifo<LargeMessage>();
  /** What may become visible in each slot: a later change of a message's visibility leaves it in its old slot too. */
  const slots = new Map<number, LargeMessage[]>();
  const byHandle = new Map<string, LargeMessage>();
  const all = new Set<LargeMessage>();
  const polls = new Set<Poll>();
  const moved: LargeMessage[] = [];
  const depths = createDepths(clock, settings.attributesAgeMs);
  let nextSlot = slotOf(clock.nowMs());
  let inFlight = 0;
  const random = createRandom(1);
  let handles = 0;
  let ids = 0;

  function hide(message: LargeMessage, forS: number): void {
    if (message.hiddenUntilMs === 0) inFlight += 1;
    message.hiddenUntilMs = clock.nowMs() + forS * 1_000;
    const slot = slotOf(message.hiddenUntilMs);
    const ofSlot = slots.get(slot);
    if (ofSlot === undefined) slots.set(slot, [message]);
    else ofSlot.push(message);
  }

  function show(message: LargeMessage): void {
    inFlight -= 1;
    message.hiddenUntilMs = 0;
    visible.push(message);
  }

  /** The message is no longer in the queue. */
  function drop(message: LargeMessage): void {
    all.delete(message);
    if (message.handle !== undefined) byHandle.delete(message.handle);
    message.handle = undefined;
    if (message.hiddenUntilMs !== 0) inFlight -= 1;
  }

  function showDue(): void {
    for (const last = Math.floor(clock.nowMs() / SLOT_MS); nextSlot <= last; nextSlot += 1) {
      for (const message of slots.get(nextSlot) ?? [])
        if (all.has(message) && message.hiddenUntilMs !== 0 && slotOf(message.hiddenUntilMs) === nextSlot) show(message);
      slots.delete(nextSlot);
    }
  }

  function receive({ visibilityS, max }: ReceiveOptions): readonly QueueMessage[] {
    const received: QueueMessage[] = [];
    while (received.length < max && inFlight < SQS_IN_FLIGHT_MAX) {
      const message = visible.take();
      if (message === undefined) break;
      // one that was deleted while it was visible
      if (!all.has(message)) continue;
      if (message.receiveCount >= settings.maxReceiveCount) {
        drop(message);
        moved.push(message);
      } else received.push(take(message, visibilityS));
    }
    return received;
  }

  function take(message: LargeMessage, visibilityS: number): QueueMessage {
    if (message.handle !== undefined) byHandle.delete(message.handle);
    handles += 1;
    const receiptHandle = String(handles);
    message.handle = receiptHandle;
    byHandle.set(receiptHandle, message);
    message.receiveCount += 1;
    message.firstReceivedAtMs ??= clock.nowMs();
    hide(message, visibilityS);
    const { messageId, body, sentAtMs, firstReceivedAtMs, receiveCount } = message;
    const receivedAtMonotonicMs = clock.monotonicMs();
    return { queueUrl, messageId, receiptHandle, body, attributes: {}, sentAtMs, firstReceivedAtMs, receiveCount, receivedAtMonotonicMs };
  }

  /** The polls, so that each message goes to any worker. */
  function inAnyOrder(): readonly Poll[] {
    const list = [...polls];
    const at = random.integer(0, Math.max(0, list.length - 1));
    return [...list.slice(at), ...list.slice(0, at)];
  }

  function tick(): void {
    showDue();
    depths.note({ visible: all.size - inFlight, inFlight });
    for (const poll of inAnyOrder()) {
      const messages = visible.isEmpty ? [] : receive(poll);
      if (messages.length > 0 || poll.untilMs <= clock.monotonicMs()) poll.answer(messages);
    }
  }

  function eachOf<Entry extends { readonly receiptHandle: string }>(
    entries: readonly Entry[],
    change: (message: LargeMessage, entry: Entry) => void,
  ): readonly BatchFailure[] {
    return entries.flatMap((entry) => {
      const message = byHandle.get(entry.receiptHandle);
      if (message === undefined) return [{ receiptHandle: entry.receiptHandle, code: 'ReceiptHandleIsInvalid', senderFault: true }];
      change(message, entry);
      return [];
    });
  }

  return {
    add(body, tag) {
      ids += 1;
      const message = {
        messageId: `m${ids}`,
        body,
        tag,
        sentAtMs: clock.nowMs(),
        receiveCount: 0,
        firstReceivedAtMs: undefined,
        handle: undefined,
        hiddenUntilMs: 0,
      };
      all.add(message);
      visible.push(message);
    },
    async poll(options, waitMs, signal) {
      signal.throwIfAborted();
      const messages = receive(options);
      if (messages.length > 0) return messages;
      const { promise, resolve, reject } = Promise.withResolvers<readonly QueueMessage[]>();
      const abort = (): void => {
        polls.delete(poll);
        reject(signal.reason);
      };
      const answer = (received: readonly QueueMessage[]): void => {
        polls.delete(poll);
        signal.removeEventListener('abort', abort);
        resolve(received);
      };
      const poll = { ...options, untilMs: clock.monotonicMs() + waitMs, answer };
      polls.add(poll);
      signal.addEventListener('abort', abort, { once: true });
      return promise;
    },
    tick,
    deleteBatch: async (_queueUrl, receiptHandles) =>
      eachOf(
        receiptHandles.map((receiptHandle) => ({ receiptHandle })),
        (message) => {
          drop(message);
          deleted(message);
        },
      ),
    changeVisibilityBatch: async (_queueUrl, entries) =>
      eachOf(entries, (message, { timeoutS }) => {
        // a message that is visible again already cannot be hidden
        if (message.hiddenUntilMs === 0) return;
        if (timeoutS > 0) hide(message, timeoutS);
        else show(message);
      }),
    attributes: async () => ({
      ...(depths.reported() ?? { visible: all.size - inFlight, inFlight }),
      delayed: 0,
      visibilityTimeoutS: 30,
      maxReceiveCount: settings.maxReceiveCount,
      retentionMs: settings.retentionMs,
      deadLetterQueueUrl: settings.deadLetterQueueUrl,
    }),
    get inFlight() {
      return inFlight;
    },
    all,
    moved,
  };
}

interface Depth {
  readonly visible: number;
  readonly inFlight: number;
}

/** Remembers the depths of the queue for as long as what it reports is old. */
function createDepths(clock: Clock, ageMs: number) {
  let noted: { readonly atMs: number; readonly depth: Depth }[] = [];
  return {
    note(depth: Depth): void {
      if (ageMs === 0) return;
      const untilMs = clock.monotonicMs() - ageMs;
      const latest = noted.findLast(({ atMs }) => atMs <= untilMs);
      noted = [...noted.filter((each) => each === latest || each.atMs > untilMs), { atMs: clock.monotonicMs(), depth }];
    },
    /** Undefined: the present one. */
    reported: (): Depth | undefined => (ageMs === 0 ? undefined : noted[0]?.depth),
  };
}

function slotOf(atMs: number): number {
  return Math.ceil(atMs / SLOT_MS);
}

/** A queue of items; both ends cost the same, however many there are. */
function createFifo<Item>() {
  let items: Item[] = [];
  let head = 0;
  return {
    get isEmpty() {
      return head === items.length;
    },
    push(item: Item): void {
      items.push(item);
    },
    take(): Item | undefined {
      const item = items[head];
      if (item === undefined) return undefined;
      head += 1;
      if (head > 1_024 && head * 2 > items.length) {
        items = items.slice(head);
        head = 0;
      }
      return item;
    },
  };
}
