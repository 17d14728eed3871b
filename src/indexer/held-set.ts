/**
 * The messages in hand. The held set consists of the slow ones, which wait for HEADs, for settles or for an outage to end; its size
 * is bounded.
 *
 * Limiting the number of messages does not bound memory, because senders choose how long a body is. So a message weighs by its
 * length. That covers its records, because no more of them are in progress than S3 would have put into a body of that length. The
 * few bodies far longer than S3's are read in turn, and ordinary events overtake them.
 */
import { setImmediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import type { Clock } from '../process/clock.ts';
import type { QueueMessage } from '../aws/queues.ts';
import type { LiveLoad } from '../observing/live-load.ts';

/** An hour less than the 12 hours for which SQS hides a message at most. */
export const HOLD_MAX_MS = 11 * 3_600_000;

/**
 * How many messages may be in hand without being slow, as a share of those that may be held: by default 500, which the pollers
 * receive in a tenth of a second, longer than a write takes. More would cost CPU time, because each garbage collection copies them,
 * and would help only if writes took longer.
 */
const FAST_SHARE = 0.5;

/**
 * What a character of a body costs: up to two bytes itself, six more while its dead letter is sent (as JSON, as bytes, in the
 * socket), three in parsed records (measured), and eight in records in progress.
 */
const CHARACTER_BYTES = 20;
/** S3's records have at least 700 characters. In progress, with its hint, document, promises and part of a request, a record takes 2 to 4 KiB (measured). */
const RECORD_CHARACTERS = 500;
/** However short the body is, this many of its records may be in progress. */
const RECORDS_MIN = 10;
/** Parsing a longer body takes so long (a millisecond, or a hundred for a MiB) that the process first lets others run. */
const LONG_BODY_LENGTH = 65_536;
/** SQS's limit for a body. */
const BODY_LENGTH_MAX = 1_048_576;
/** How often waiting receivers check for room. */
const LOOK_AGAIN_MS = 50;

/** One message on its way through the data path. */
export interface InHand {
  readonly message: QueueMessage;
  /** Aborted when the process stops; a message that waits is given back to its queue then. */
  readonly signal: AbortSignal;
  /** How much of the memory for messages in hand the message takes, at most. */
  readonly weightBytes: number;
  /** Moves the message to the held set, so that the poller that received it does not wait for it. */
  turnSlow(): void;
  /** The receive at which a message of its queue is given up. */
  readonly lastReceive: number;
  /** Whether this is that receive, or a later one. */
  readonly isLastReceive: boolean;
  /** How much longer the message may be held for the index store before it is given back. */
  holdLeftMs(): number;
}

export interface HeldSet {
  /** Runs the work of each message. Resolves when every work has ended or its message turned slow. `work` must not reject. */
  run(messages: readonly QueueMessage[], work: (hand: InHand) => Promise<void>): Promise<void>;
  /** Whether there are too many slow messages, so that nothing may be received. */
  readonly isFull: boolean;
  /** Whether another batch may be received before the fast messages of this one are settled. */
  readonly hasRoom: boolean;
  /** Resolves when the messages in hand weigh less than the limit. Rejects with the signal's reason. */
  room(signal: AbortSignal): Promise<void>;
  /** Runs what parses a body and handles its records: at once, or in its turn if the body is long. */
  inTurn<Result>(message: QueueMessage, read: () => Promise<Result>): Promise<Result>;
  /** How many messages are slow now. */
  readonly size: number;
  /** Resolves when no work is running, fast or slow. */
  idle(): Promise<void>;
}

interface HeldSetDependencies {
  readonly clock: Clock;
  readonly load: Pick<LiveLoad, 'held'>;
  readonly heldMax: number;
  readonly weightMaxBytes: number;
  readonly lastReceive: (queueUrl: string) => number;
  readonly stopping: AbortSignal;
}

/**
 * Creates an empty held set. It is full at `heldMax` messages or a weight of `weightMaxBytes`, and exceeds both at most by what
 * the pollers had already received.
 */
export function createHeldSet(dependencies: HeldSetDependencies): HeldSet {
  const { clock, load, heldMax, weightMaxBytes, lastReceive, stopping } = dependencies;
  const running = new Set<InHand>();
  const slow = new Set<InHand>();
  let runningBytes = 0;
  let slowBytes = 0;
  let idleWait: PromiseWithResolvers<void> | undefined;
  const longBodies = new PQueue({ concurrency: Math.max(1, Math.floor(weightMaxBytes / (BODY_LENGTH_MAX * CHARACTER_BYTES))) });

  /** `noLongerFast` is called when the message turns slow. */
  function handOf(message: QueueMessage, noLongerFast: () => void): InHand {
    const weightBytes = message.body.length * CHARACTER_BYTES;
    const last = lastReceive(message.queueUrl);
    const hand: InHand = {
      message,
      signal: stopping,
      weightBytes,
      turnSlow() {
        if (slow.has(hand)) return;
        slow.add(hand);
        slowBytes += weightBytes;
        load.held(slow.size);
        noLongerFast();
      },
      lastReceive: last,
      isLastReceive: message.receiveCount >= last,
      holdLeftMs: () => message.receivedAtMonotonicMs + HOLD_MAX_MS - clock.monotonicMs(),
    };
    return hand;
  }

  function endIdleWait(): void {
    idleWait?.resolve();
    idleWait = undefined;
  }

  /** Calls `noLongerFast` unless the message has turned slow. */
  async function runOne(work: (hand: InHand) => Promise<void>, hand: InHand, noLongerFast: () => void): Promise<void> {
    running.add(hand);
    runningBytes += hand.weightBytes;
    try {
      await work(hand);
    } finally {
      running.delete(hand);
      runningBytes -= hand.weightBytes;
      if (slow.delete(hand)) {
        slowBytes -= hand.weightBytes;
        load.held(slow.size);
      } else noLongerFast();
      if (running.size === 0) endIdleWait();
    }
  }

  const isHeavy = (): boolean => runningBytes >= weightMaxBytes;

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
      return slow.size >= heldMax || slowBytes >= weightMaxBytes;
    },
    // fast messages count too, because all of them turn slow at once when the store fails
    get hasRoom() {
      return running.size - slow.size < FAST_SHARE * heldMax && running.size < heldMax && !isHeavy();
    },
    async room(signal) {
      while (isHeavy()) await clock.sleep(LOOK_AGAIN_MS, signal);
    },
    inTurn({ body }, read) {
      if (body.length <= LONG_BODY_LENGTH) return read();
      return longBodies.add(async () => {
        await setImmediate();
        return read();
      });
    },
    get size() {
      return slow.size;
    },
    async idle() {
      while (running.size > 0) await (idleWait ??= Promise.withResolvers()).promise;
    },
  };
}

/** How many records of a body may be in progress at once. */
export function recordsAtOnce(body: string): number {
  return Math.max(RECORDS_MIN, Math.floor(body.length / RECORD_CHARACTERS));
}
