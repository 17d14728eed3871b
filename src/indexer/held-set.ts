/** The messages in hand. The held set is the slow ones (they wait for HEADs, settles or outages); its size is bounded. */
import type { Clock } from '../process/clock.ts';
import type { QueueMessage } from '../aws/queues.ts';
import type { LiveLoad } from '../observing/live-load.ts';
import type { MessageWeight, Weights } from './weights.ts';

/** SQS hides a message for at most 12 hours in all; this is an hour less. */
export const HOLD_MAX_MS = 11 * 3_600_000;

/**
 * The part of what may be held that may be in hand without being slow: by default 500 messages, which the pollers receive in a
 * tenth of a second, longer than a write takes. Every collection of garbage copies what is in hand, so that more of them cost CPU
 * time. Only where writes take longer are they faster.
 */
const FAST_SHARE = 0.5;

/** One message on its way through the data path. */
export interface InHand {
  readonly message: QueueMessage;
  /** Aborted when the process stops; a message that waits is given back to its queue then. */
  readonly signal: AbortSignal;
  readonly weight: MessageWeight;
  /** Moves the message to the held set, so that the poller that received it does not wait for it. */
  turnSlow(): void;
  /** The receive at which a message of its queue is given up. */
  readonly lastReceive: number;
  /** Whether this is that receive, or a later one. */
  readonly isLastReceive: boolean;
  /** What the message weighs of the held set, and what the whole set may weigh. */
  readonly weightMaxBytes: number;
  /** How much longer the message may be held for a fault before it is given back, if it may be for so long after its receive: at most 11 hours. */
  holdLeftMs(forMs?: number): number;
}

export interface HeldSet {
  /** Runs the work of each message. Resolves when every work has ended or its message turned slow. `work` must not reject. */
  run(messages: readonly QueueMessage[], work: (hand: InHand) => Promise<void>): Promise<void>;
  /** There are too many slow messages, so nothing may be received. */
  readonly isFull: boolean;
  /** Whether another batch may be received before the fast messages of this one are settled. */
  readonly hasRoom: boolean;
  /** Resolves when the messages in hand weigh less than the limit. Rejects with the signal's reason. */
  room(signal: AbortSignal): Promise<void>;
  /** How many messages are slow now. */
  readonly size: number;
  /** Resolves when no work is running, fast or slow. */
  idle(): Promise<void>;
}

interface HeldSetDependencies {
  readonly clock: Clock;
  readonly load: Pick<LiveLoad, 'held'>;
  readonly heldMax: number;
  readonly weights: Weights;
  readonly weightMaxBytes: number;
  readonly lastReceive: (queueUrl: string) => number;
  readonly stopping: AbortSignal;
}

/**
 * Creates an empty held set. It is full at `heldMax` messages or a weight of `weightMaxBytes`, and may exceed both by the
 * messages that the pollers had received when it became full.
 */
export function createHeldSet(dependencies: HeldSetDependencies): HeldSet {
  const { clock, load, heldMax, weights, weightMaxBytes, lastReceive, stopping } = dependencies;
  const running = new Set<InHand>();
  let noneRuns: PromiseWithResolvers<void> | undefined;
  const slow = new Set<MessageWeight>();

  function isHeavy(): boolean {
    // nearly always, and then there is nothing to add up
    if (weights.hasRoom) return false;
    return slow.values().reduce((sum, { bytes }) => sum + bytes, 0) >= weightMaxBytes;
  }

  /** `noLongerFast` is called when the message turns slow. */
  function handOf(message: QueueMessage, noLongerFast: () => void): InHand {
    const weight = weights.received(message.body);
    const last = lastReceive(message.queueUrl);
    return {
      message,
      signal: stopping,
      weight,
      turnSlow() {
        if (slow.has(weight)) return;
        slow.add(weight);
        load.held(slow.size);
        noLongerFast();
      },
      lastReceive: last,
      isLastReceive: message.receiveCount >= last,
      weightMaxBytes,
      holdLeftMs: (forMs = HOLD_MAX_MS) => message.receivedAtMonotonicMs + forMs - clock.monotonicMs(),
    };
  }

  function endIdleWait(): void {
    noneRuns?.resolve();
    noneRuns = undefined;
  }

  /** Calls `noLongerFast` unless the message has turned slow. */
  async function runOne(work: (hand: InHand) => Promise<void>, hand: InHand, noLongerFast: () => void): Promise<void> {
    running.add(hand);
    try {
      await work(hand);
    } finally {
      running.delete(hand);
      weights.ended(hand.weight);
      if (slow.delete(hand.weight)) load.held(slow.size);
      else noLongerFast();
      if (running.size === 0) endIdleWait();
    }
  }

  return {
    run(messages, work) {
      return new Promise((resolve) => {
        let fast = messages.length;
        const noLongerFast = (): void => {
          fast -= 1;
          if (fast === 0) resolve();
        };
        for (const message of messages) void runOne(work, handOf(message, noLongerFast), noLongerFast);
        if (messages.length === 0) resolve();
      });
    },
    get isFull() {
      return slow.size >= heldMax || isHeavy();
    },
    // fast messages count as well, since all of them turn slow at once when the store fails
    get hasRoom() {
      return running.size - slow.size < FAST_SHARE * heldMax && running.size < heldMax && weights.hasRoom;
    },
    room: (signal) => weights.room(signal),
    get size() {
      return slow.size;
    },
    async idle() {
      while (running.size > 0) await (noneRuns ??= Promise.withResolvers()).promise;
    },
  };
}
