/** The messages in hand. The held set is the slow ones (they wait for HEADs, settles or outages); its size is bounded. */
import { isLastReceive } from '../../domain/messages/settlement.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueMessage } from '../ports/queues.ts';
import type { Traces, Tracing } from '../ports/tracing.ts';

/** SQS hides a message for at most 12 hours in all; this is an hour less. */
export const HOLD_MAX_MS = 11 * 3_600_000;

/** Records in hand take about ten times the memory of their body, so 32 Mi characters need a few hundred MB. A usual message has 2,000. */
const BODIES_LENGTH_MAX = 33_554_432;

/** One message on its way through the data path. */
export interface InHand {
  readonly message: QueueMessage;
  readonly traces: Traces;
  /** Aborted when the process stops; a message that waits is given back to its queue then. */
  readonly signal: AbortSignal;
  /** Moves the message to the held set, so that the poller that received it does not wait for it. */
  turnSlow(): void;
  /** Whether this is the last permitted receive: if the message were given back, SQS would move it to the dead-letter queue. */
  readonly isLastReceive: boolean;
  /** What the message weighs of the held set, and what the whole set may weigh. */
  readonly weight: number;
  readonly weightMax: number;
  /** How much longer the message may be held for a fault before it is given back: up to 11 hours after its receive. */
  holdLeftMs(): number;
}

export interface HeldSet {
  /** Runs the work of one message. Resolves when the work has ended or the message turned slow. Does not reject unless `work` does. */
  run(message: QueueMessage, work: (hand: InHand) => Promise<void>): Promise<void>;
  /** There are too many slow messages, so nothing may be received. */
  readonly isFull: boolean;
  /** Whether another batch may be received before the fast messages of this one are settled. */
  readonly hasRoom: boolean;
  /** How many messages are slow now. */
  readonly size: number;
  /** Resolves when no work is running, fast or slow. */
  idle(): Promise<void>;
}

interface HeldSetDependencies {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly tracing: Tracing;
  readonly heldMax: number;
  readonly maxReceiveCount: (queueUrl: string) => number;
  readonly stopping: AbortSignal;
}

/**
 * Creates an empty held set. It is full at `heldMax` messages or 32 Mi characters of bodies, and may exceed both by the
 * messages that the pollers had received when it became full.
 */
export function createHeldSet(dependencies: HeldSetDependencies): HeldSet {
  const { clock, telemetry, tracing, heldMax, maxReceiveCount, stopping } = dependencies;
  const running = new Set<Promise<void>>();
  let slow = 0;
  let slowLength = 0;
  let length = 0;

  function changeSlow(by: 1 | -1, { body }: QueueMessage): void {
    slow += by;
    slowLength += by * body.length;
    telemetry.held(slow);
  }

  function isLast(message: QueueMessage): boolean {
    return isLastReceive({ receiveCount: message.receiveCount, maxReceiveCount: maxReceiveCount(message.queueUrl) });
  }

  return {
    run(message, work) {
      return new Promise((resolve) => {
        let isSlow = false;
        const hand: InHand = {
          message,
          traces: tracing.message(message),
          signal: stopping,
          turnSlow() {
            if (isSlow) return;
            isSlow = true;
            changeSlow(1, message);
            resolve();
          },
          isLastReceive: isLast(message),
          weight: message.body.length,
          weightMax: BODIES_LENGTH_MAX,
          holdLeftMs: () => message.receivedAtMonotonicMs + HOLD_MAX_MS - clock.monotonicMs(),
        };
        length += message.body.length;
        const ended = work(hand).finally(() => {
          running.delete(ended);
          length -= message.body.length;
          if (isSlow) changeSlow(-1, message);
          resolve();
        });
        running.add(ended);
      });
    },
    get isFull() {
      return slow >= heldMax || slowLength >= BODIES_LENGTH_MAX;
    },
    // fast messages count as well, since all of them turn slow at once when the store fails
    get hasRoom() {
      return running.size < heldMax && length < BODIES_LENGTH_MAX;
    },
    get size() {
      return slow;
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}
