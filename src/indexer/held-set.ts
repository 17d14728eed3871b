/**
 * The messages in hand. The held set is the slow ones (they wait for HEADs, settles or outages); its size is bounded.
 *
 * A number of messages bounds no memory, since a body is as long as its sender likes. So each weighs by its length: that bounds its
 * records, because only as many of them are in work at once as S3 would have put into a body of that length. The few bodies that are
 * far longer than S3's are read in turn, and usual events pass them.
 */
import { setImmediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import type { Clock } from '../process/clock.ts';
import type { QueueMessage } from '../aws/queues.ts';
import type { LiveLoad } from '../observing/live-load.ts';

/** SQS hides a message for at most 12 hours in all; this is an hour less. */
export const HOLD_MAX_MS = 11 * 3_600_000;

/**
 * The part of what may be held that may be in hand without being slow: by default 500 messages, which the pollers receive in a
 * tenth of a second, longer than a write takes. Every collection of garbage copies what is in hand, so that more of them cost CPU
 * time. Only where writes take longer are they faster.
 */
const FAST_SHARE = 0.5;

/**
 * What a character of a body costs: up to two bytes itself, six more while its dead letter is sent (as JSON, as bytes, in the
 * socket), three in records that were read (measured), and eight in records in work.
 */
const CHARACTER_BYTES = 20;
/** A record of S3 has 700 characters and more. In work, with its hint, document, promises and part of a request, it takes 2 to 4 KiB (measured). */
const RECORD_CHARACTERS = 500;
/** Of a short body: so few records are always in work at once. */
const RECORDS_MIN = 10;
/** Reading a longer body takes so long (a millisecond, and a hundred if it has a MiB) that the process answers others before it. */
const LONG_BODY_LENGTH = 65_536;
/** SQS's limit for a body. */
const BODY_LENGTH_MAX = 1_048_576;
/** How soon it is looked again whether there is room. */
const LOOK_AGAIN_MS = 50;

/** One message on its way through the data path. */
export interface InHand {
  readonly message: QueueMessage;
  /** Aborted when the process stops; a message that waits is given back to its queue then. */
  readonly signal: AbortSignal;
  /** What the message takes of the memory for messages in hand, at most. */
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
  /** There are too many slow messages, so nothing may be received. */
  readonly isFull: boolean;
  /** Whether another batch may be received before the fast messages of this one are settled. */
  readonly hasRoom: boolean;
  /** Resolves when the messages in hand weigh less than the limit. Rejects with the signal's reason. */
  room(signal: AbortSignal): Promise<void>;
  /** Does what reads a body and handles its records: at once, or in its turn if the body is long. */
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
 * Creates an empty held set. It is full at `heldMax` messages or a weight of `weightMaxBytes`, and may exceed both by the
 * messages that the pollers had received when it became full.
 */
export function createHeldSet(dependencies: HeldSetDependencies): HeldSet {
  const { clock, load, heldMax, weightMaxBytes, lastReceive, stopping } = dependencies;
  const running = new Set<InHand>();
  const slow = new Set<InHand>();
  let runningBytes = 0;
  let slowBytes = 0;
  let noneRuns: PromiseWithResolvers<void> | undefined;
  const long = new PQueue({ concurrency: Math.max(1, Math.floor(weightMaxBytes / (BODY_LENGTH_MAX * CHARACTER_BYTES))) });

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
    noneRuns?.resolve();
    noneRuns = undefined;
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
    // fast messages count as well, since all of them turn slow at once when the store fails
    get hasRoom() {
      return running.size - slow.size < FAST_SHARE * heldMax && running.size < heldMax && !isHeavy();
    },
    async room(signal) {
      while (isHeavy()) await clock.sleep(LOOK_AGAIN_MS, signal);
    },
    inTurn({ body }, read) {
      if (body.length <= LONG_BODY_LENGTH) return read();
      return long.add(async () => {
        await setImmediate();
        return read();
      });
    },
    get size() {
      return slow.size;
    },
    async idle() {
      while (running.size > 0) await (noneRuns ??= Promise.withResolvers()).promise;
    },
  };
}

/** Does the work of each record, of as many at once as the length of their body allows. Rejects as soon as one of them does. */
export async function atOnce<Each>(
  records: readonly Each[],
  body: string,
  work: (record: Each, index: number) => Promise<void>,
): Promise<void> {
  const left = records.entries();
  const workOff = async (): Promise<void> => {
    for (const [index, record] of left) await work(record, index);
  };
  const workers = Math.max(RECORDS_MIN, Math.floor(body.length / RECORD_CHARACTERS));
  await Promise.all(Array.from({ length: Math.min(workers, records.length) }, workOff));
}
