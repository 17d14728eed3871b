/** The messages in hand. The held set is the slow ones (they wait for HEADs, settles or outages); its size is bounded. */
import { isLastReceive } from '../../domain/messages/settlement.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueMessage } from '../ports/queues.ts';
import type { Traces, Tracing } from '../ports/tracing.ts';
import { createWeights, type MessageWeight } from './weights.ts';

/** SQS hides a message for at most 12 hours in all; this is an hour less. */
export const HOLD_MAX_MS = 11 * 3_600_000;

/** One message on its way through the data path. */
export interface InHand {
  readonly message: QueueMessage;
  readonly traces: Traces;
  /** Aborted when the process stops; a message that waits is given back to its queue then. */
  readonly signal: AbortSignal;
  /** The turn to read the body: it is read only when there is memory for its records. */
  readonly weight: Pick<MessageWeight, 'turn' | 'opened' | 'bytes'>;
  /** Moves the message to the held set, so that the poller that received it does not wait for it. */
  turnSlow(): void;
  /** Whether this is the last permitted receive: if the message were given back, SQS would move it to the dead-letter queue. */
  readonly isLastReceive: boolean;
  /** What the message weighs of the held set, and what the whole set may weigh. */
  readonly weightMaxBytes: number;
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
  /** Resolves when the messages in hand weigh less than the limit. Rejects with the signal's reason. */
  room(signal: AbortSignal): Promise<void>;
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
  readonly weightMaxBytes: number;
  readonly maxReceiveCount: (queueUrl: string) => number;
  readonly stopping: AbortSignal;
}

/**
 * Creates an empty held set. It is full at `heldMax` messages or a weight of `weightMaxBytes`, and may exceed both by the
 * messages that the pollers had received when it became full.
 */
export function createHeldSet(dependencies: HeldSetDependencies): HeldSet {
  const { clock, telemetry, tracing, heldMax, weightMaxBytes, maxReceiveCount, stopping } = dependencies;
  const running = new Set<Promise<void>>();
  const weights = createWeights(weightMaxBytes);
  const slow = new Set<MessageWeight>();

  function isHeavy(): boolean {
    // nearly always, and then there is nothing to add up
    if (weights.hasRoom) return false;
    return slow.values().reduce((sum, { bytes }) => sum + bytes, 0) >= weightMaxBytes;
  }

  function isLast(message: QueueMessage): boolean {
    return isLastReceive({ receiveCount: message.receiveCount, maxReceiveCount: maxReceiveCount(message.queueUrl) });
  }

  return {
    run(message, work) {
      return new Promise((resolve) => {
        const weight = weights.received(message.body);
        const hand: InHand = {
          message,
          traces: tracing.message(message),
          signal: stopping,
          weight,
          turnSlow() {
            if (slow.has(weight)) return;
            slow.add(weight);
            telemetry.held(slow.size);
            resolve();
          },
          isLastReceive: isLast(message),
          weightMaxBytes,
          holdLeftMs: () => message.receivedAtMonotonicMs + HOLD_MAX_MS - clock.monotonicMs(),
        };
        const ended = work(hand).finally(() => {
          running.delete(ended);
          weight.ended();
          if (slow.delete(weight)) telemetry.held(slow.size);
          resolve();
        });
        running.add(ended);
      });
    },
    get isFull() {
      return slow.size >= heldMax || isHeavy();
    },
    // fast messages count as well, since all of them turn slow at once when the store fails
    get hasRoom() {
      return running.size < heldMax && weights.hasRoom;
    },
    room: (signal) => weights.room(signal),
    get size() {
      return slow.size;
    },
    async idle() {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}
