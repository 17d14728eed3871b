/** Messages in hand: which of them are slow (waiting for HEADs, settles, outages), and how many may be. */
import { isLastReceive } from '../../domain/messages/settlement.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueMessage } from '../ports/queues.ts';
import type { Traces, Tracing } from '../ports/tracing.ts';

/** SQS lets a message be hidden for 12 hours in all; an hour less than that. */
const LAST_HOLD_MAX_MS = 11 * 3_600_000;

/** Records in hand weigh some ten times their body; 32 Mi characters keep them in a few hundred MB, and a usual message has 2,000. */
const BODIES_LENGTH_MAX = 33_554_432;

/** One message on its way through the data path. */
export interface InHand {
  readonly message: QueueMessage;
  readonly traces: Traces;
  /** Aborted when the process stops: whatever waits gives its message back. */
  readonly signal: AbortSignal;
  /** Moves the message to the held set: the poller that received it goes on. */
  turnSlow(): void;
  /** Given back, SQS would move it away. */
  readonly isLastReceive: boolean;
  /** How much longer it may be held for a fault before it is given back. At its last permitted receive much longer: given back, SQS would move it away. */
  holdLeftMs(): number;
}

export interface HeldSet {
  /** Runs the work of one message; resolves when it ended or turned slow, whichever comes first. Never rejects if `work` does not. */
  run(message: QueueMessage, work: (hand: InHand) => Promise<void>): Promise<void>;
  /** Too many slow messages: nothing is to be received. */
  readonly isFull: boolean;
  /** Whether another batch may be received before the fast ones of this are settled. */
  readonly hasRoom: boolean;
  /** Slow messages now. */
  readonly size: number;
  /** Resolves when no work is running, fast or slow. */
  idle(): Promise<void>;
}

interface HeldSetDependencies {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly tracing: Tracing;
  readonly heldMax: number;
  readonly holdMaxMs: number;
  readonly maxReceiveCount: (queueUrl: string) => number;
  readonly stopping: AbortSignal;
}

/** Creates an empty held set, full at `heldMax` messages or 32 Mi characters of bodies. It may pass either by what the pollers had received when it became full. */
export function createHeldSet(dependencies: HeldSetDependencies): HeldSet {
  const { clock, telemetry, tracing, heldMax, holdMaxMs, maxReceiveCount, stopping } = dependencies;
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

  function holdMaxOf(message: QueueMessage): number {
    return isLast(message) ? LAST_HOLD_MAX_MS : holdMaxMs;
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
          holdLeftMs: () => message.receivedAtMonotonicMs + holdMaxOf(message) - clock.monotonicMs(),
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
    // what is fast may turn slow, all at once when the store fails: so both count
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
