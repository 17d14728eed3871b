/** The state store and the work queue of large re-indexes, in virtual time: what they answer, and when, is what OpenSearch and SQS do. */
import type { StateEntry, StateStore } from '../../../src/pipeline/ports/state.ts';
import type { QueueClient, QueueMessage, QueueReceiver } from '../../../src/pipeline/ports/queues.ts';
import type { StateKind } from '../../../src/domain/state-kind.ts';
import type { VirtualClock } from './virtual-clock.ts';

const STATE = { getMs: 2, swapMs: 3, listMs: 3, listedEntryMs: 0.02, refreshMs: 200 };
const SQS = { requestMs: 15, pollMs: 20_000 };

export interface StateCounted {
  gets: number;
  /** Swaps that were stored, by the kind of their record. */
  readonly puts: Partial<Record<StateKind, number>>;
  removes: number;
  conflicts: number;
  lists: number;
  /** Entries that lists answered. */
  listedEntries: number;
}

interface Stored extends StateEntry {
  /** Its JSON: nothing is shared between the store and its callers. */
  readonly text: string;
}

/** Swaps count at once and return after the next refresh, which lists show it from; conflicts return at once. */
export function createLargeState(clock: VirtualClock): StateStore & { readonly counted: StateCounted } {
  const counted: StateCounted = { gets: 0, puts: {}, removes: 0, conflicts: 0, lists: 0, listedEntries: 0 };
  const entries = new Map<string, Stored>();
  const shown = new Map<string, Stored>();
  let changes: { readonly id: string; readonly entry: Stored | undefined; readonly shownAtMs: number }[] = [];
  let versions = 0;

  /** Resolves after the refresh that shows the change. */
  function change(id: string, entry: Stored | undefined): Promise<void> {
    if (entry === undefined) entries.delete(id);
    else entries.set(id, entry);
    const shownAtMs = (Math.floor(clock.monotonicMs() / STATE.refreshMs) + 1) * STATE.refreshMs;
    changes.push({ id, entry, shownAtMs });
    return clock.sleep(shownAtMs - clock.monotonicMs());
  }

  function refresh(): void {
    const nowMs = clock.monotonicMs();
    for (const { id, entry, shownAtMs } of changes) {
      if (shownAtMs > nowMs) continue;
      if (entry === undefined) shown.delete(id);
      else shown.set(id, entry);
    }
    changes = changes.filter(({ shownAtMs }) => shownAtMs > nowMs);
  }

  return {
    counted,
    async get(id, signal) {
      counted.gets += 1;
      await clock.sleep(STATE.getMs, signal);
      const entry = entries.get(id);
      return entry && copyOf(entry);
    },
    async put({ id, kind, record, ...how }, expected) {
      await clock.sleep(STATE.swapMs);
      if ((entries.get(id)?.version ?? null) !== expected) {
        counted.conflicts += 1;
        return 'conflict';
      }
      counted.puts[kind] = (counted.puts[kind] ?? 0) + 1;
      versions += 1;
      const stored = { id, kind, record, version: String(versions), text: JSON.stringify(record) };
      const isShown = change(id, stored);
      // a write that need not be listed yet does not wait for the refresh
      if (!('listed' in how && how.listed === 'soon')) await isShown;
      return copyOf(stored);
    },
    async remove(id, expected, _signal, listed) {
      await clock.sleep(STATE.swapMs);
      const entry = entries.get(id);
      if (entry !== undefined && entry.version !== expected) {
        counted.conflicts += 1;
        return 'conflict';
      }
      counted.removes += 1;
      const isShown = change(id, undefined);
      if (listed !== 'soon') await isShown;
      return 'removed';
    },
    async list(kind, { after = '', limit }, signal) {
      refresh();
      const found = [...shown.values()]
        .filter((entry) => entry.kind === kind && entry.id > after)
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, limit);
      counted.lists += 1;
      counted.listedEntries += found.length;
      await clock.sleep(STATE.listMs + found.length * STATE.listedEntryMs, signal);
      return found.map(copyOf);
    },
    async count(kind) {
      refresh();
      return [...shown.values()].filter((entry) => entry.kind === kind).length;
    },
  };
}

function copyOf({ id, kind, version, text }: Stored): StateEntry {
  return { id, kind, version, record: JSON.parse(text) as unknown };
}

// ── the work queue ────────────────────────────────────────────────────────────────────────────────────────────────

export interface QueueCounted {
  sent: number;
  /** Messages that were received. */
  received: number;
  /** Requests to receive, those without an answer included. */
  polls: number;
  settled: number;
  extended: number;
  looks: number;
  /** The most messages that were in the queue, those in flight included. */
  atOnce: number;
}

interface Message {
  readonly id: string;
  readonly body: string;
  readonly sentAtMs: number;
  visibleAtMs: number;
  isInFlight: boolean;
  firstReceivedAtMs: number | undefined;
  receiveCount: number;
  receiptHandle: string;
}

export interface LargeQueue {
  readonly client: QueueClient;
  /** One worker's poller, one message at a time. */
  receiverOf(): QueueReceiver;
  readonly counted: QueueCounted;
}

/** One queue: a message that becomes visible goes to the poller that has waited longest. */
export function createLargeQueue(
  clock: VirtualClock,
  { queueUrl, visibilityS }: { readonly queueUrl: string; readonly visibilityS: number },
): LargeQueue {
  const counted: QueueCounted = { sent: 0, received: 0, polls: 0, settled: 0, extended: 0, looks: 0, atOnce: 0 };
  const messages = new Set<Message>();
  const byHandle = new Map<string, Message>();
  const waiting = new Set<(message: Message) => void>();

  /** Called when the message becomes visible, if nothing has hidden it meanwhile. */
  function appear(message: Message): void {
    if (!messages.has(message) || message.visibleAtMs > clock.monotonicMs()) return;
    message.isInFlight = false;
    const [poller] = waiting;
    if (poller === undefined) return;
    waiting.delete(poller);
    poller(message);
  }

  function hide(message: Message, delayMs: number): void {
    message.visibleAtMs = clock.monotonicMs() + delayMs;
    clock.at(message.visibleAtMs, () => appear(message));
  }

  function take(message: Message): QueueMessage {
    counted.received += 1;
    message.receiveCount += 1;
    message.receiptHandle = `${message.id}/${message.receiveCount}`;
    byHandle.set(message.receiptHandle, message);
    message.firstReceivedAtMs ??= clock.nowMs();
    message.isInFlight = true;
    hide(message, visibilityS * 1_000);
    const { id: messageId, receiptHandle, body, sentAtMs, firstReceivedAtMs, receiveCount } = message;
    return {
      queueUrl,
      messageId,
      receiptHandle,
      body,
      attributes: {},
      sentAtMs,
      firstReceivedAtMs,
      receiveCount,
      receivedAtMonotonicMs: clock.monotonicMs(),
    };
  }

  /** A long poll. */
  async function receive(signal: AbortSignal): Promise<readonly QueueMessage[]> {
    counted.polls += 1;
    await clock.sleep(SQS.requestMs, signal);
    for (const message of messages) if (message.visibleAtMs <= clock.monotonicMs()) return [take(message)];
    const ended = new AbortController();
    const { promise, resolve } = Promise.withResolvers<readonly QueueMessage[]>();
    const poller = (message: Message): void => {
      ended.abort();
      resolve([take(message)]);
    };
    waiting.add(poller);
    clock.sleep(SQS.pollMs, ended.signal).then(
      () => {
        waiting.delete(poller);
        resolve([]);
      },
      () => undefined,
    );
    return promise;
  }

  function changed(receiptHandle: string, change: (message: Message) => void): void {
    const message = byHandle.get(receiptHandle);
    if (message === undefined || message.receiptHandle !== receiptHandle) return;
    change(message);
  }

  const client: QueueClient = {
    async send(_url, { body, delayS = 0 }) {
      await clock.sleep(SQS.requestMs);
      counted.sent += 1;
      const sent = { id: `message-${counted.sent}`, body, sentAtMs: clock.nowMs(), visibleAtMs: 0 };
      const message: Message = { ...sent, isInFlight: false, firstReceivedAtMs: undefined, receiveCount: 0, receiptHandle: '' };
      messages.add(message);
      counted.atOnce = Math.max(counted.atOnce, messages.size);
      hide(message, delayS * 1_000);
      return message.id;
    },
    receive: async () => [],
    async deleteBatch(_url, receiptHandles) {
      await clock.sleep(SQS.requestMs);
      for (const receiptHandle of receiptHandles) {
        changed(receiptHandle, (message) => messages.delete(message));
        byHandle.delete(receiptHandle);
        counted.settled += 1;
      }
      return [];
    },
    async changeVisibilityBatch(_url, entries) {
      await clock.sleep(SQS.requestMs);
      for (const { receiptHandle, timeoutS } of entries) {
        counted.extended += 1;
        changed(receiptHandle, (message) => hide(message, timeoutS * 1_000));
      }
      return [];
    },
    async attributes() {
      counted.looks += 1;
      await clock.sleep(SQS.requestMs);
      const hidden = [...messages].filter(({ visibleAtMs }) => visibleAtMs > clock.monotonicMs());
      const inFlight = hidden.filter(({ isInFlight }) => isInFlight).length;
      return { visible: messages.size - hidden.length, inFlight, delayed: hidden.length - inFlight, visibilityTimeoutS: visibilityS };
    },
  };

  function receiverOf(): QueueReceiver {
    const stopping = new AbortController();
    return {
      start({ admit, handle, polled }) {
        const poll = async (): Promise<void> => {
          for (;;) {
            await admit(stopping.signal);
            const received = await receive(stopping.signal);
            polled?.(queueUrl);
            if (received.length > 0) await handle(received);
          }
        };
        void poll().catch(() => undefined);
      },
      async stop() {
        stopping.abort(new Error('receiving was stopped'));
      },
    };
  }

  return { client, receiverOf, counted };
}
