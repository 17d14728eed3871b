/**
 * The weight of messages in hand: what they cost in memory. A body is as long as its sender likes, and it becomes as many
 * records as fit into it, so a number of messages bounds nothing. A message is received, waits for its turn, is opened (its
 * records are read), and ends:
 *
 *   received ──► opened ──► ended
 *      │ what is open weighs too much
 *      └──► waiting ──► opened, in the order of arrival
 *
 * What a message weighs in records is known only once it is open, so one message at a time may exceed the limit.
 */
import { setImmediate } from 'node:timers/promises';

/** A body in memory takes up to two bytes a character, and six more while its dead letter is sent (as JSON, as bytes, in the socket). */
const CHARACTER_BYTES = 8;
/** A record with its hint, its document, its promises and its part of requests. Measured: 2 to 4 KiB. */
const RECORD_BYTES = 4_096;
/** Reading a larger body takes so long (a millisecond, and a hundred if it has a MiB) that the process answers others before it. */
const LONG_BODY_LENGTH = 65_536;

/** The weight of one message. */
export interface MessageWeight {
  /**
   * Undefined if the message may be opened now, else a promise that resolves when it may; no other message has its turn until
   * `opened` or `ended` is called. Rejects with the signal's reason.
   */
  turn(signal: AbortSignal): Promise<void> | undefined;
  /** The message was opened and has this many records. */
  opened(records: number): void;
  /** The message is no longer in hand. */
  ended(): void;
  /** In bytes, as far as it is known. */
  readonly bytes: number;
}

export interface Weights {
  /** Counts a message that was received. */
  received(body: string): MessageWeight;
  /** Whether the messages in hand weigh less than the limit. */
  readonly hasRoom: boolean;
  /** Resolves when they do. Rejects with the signal's reason. */
  room(signal: AbortSignal): Promise<void>;
}

/** What a message with this body and this many records costs, in bytes. */
export function weightOf(body: string, records: number): number {
  return body.length * CHARACTER_BYTES + records * RECORD_BYTES;
}

/** Creates the weights of no messages. What is open exceeds `weightMaxBytes` by at most one message. */
export function createWeights(weightMaxBytes: number): Weights {
  const turns = createWaiters();
  const rooms = createWaiters();
  let inHand = 0;
  let open = 0;
  /** The message whose turn it is: what it weighs is not known yet. */
  let opening: MessageWeight | undefined;

  /** A message that is alone may always be opened, however large it is. */
  const fits = (bytes: number): boolean => opening === undefined && (open === 0 || open + bytes <= weightMaxBytes);
  const hasRoom = (): boolean => inHand < weightMaxBytes;

  function received(body: string): MessageWeight {
    const bodyBytes = weightOf(body, 0);
    let bytes = bodyBytes;
    let isOpen = false;
    inHand += bytes;

    function enter(): void {
      isOpen = true;
      open += bytes;
      opening = weight;
    }

    function leaveTurn(): void {
      if (opening === weight) opening = undefined;
      turns.look();
    }

    async function inTurn(signal: AbortSignal): Promise<void> {
      await turns.wait(() => fits(bodyBytes), enter, signal);
      if (body.length > LONG_BODY_LENGTH) await setImmediate();
    }

    const weight: MessageWeight = {
      turn(signal) {
        if (body.length > LONG_BODY_LENGTH || !turns.areNone || !fits(bodyBytes)) return inTurn(signal);
        enter();
        return undefined;
      },
      opened(records) {
        const more = weightOf('', records);
        bytes += more;
        inHand += more;
        open += more;
        leaveTurn();
      },
      ended() {
        inHand -= bytes;
        if (isOpen) open -= bytes;
        leaveTurn();
        rooms.look();
      },
      get bytes() {
        return bytes;
      },
    };
    return weight;
  }

  return {
    received,
    get hasRoom() {
      return hasRoom();
    },
    room: (signal) => rooms.wait(hasRoom, () => undefined, signal),
  };
}

interface Waiters {
  /** Resolves when `may` holds and all who waited before have gone on; `enter` is called before anyone else is let in. */
  wait(may: () => boolean, enter: () => void, signal: AbortSignal): Promise<void>;
  /** Lets in whoever may go on now. */
  look(): void;
  readonly areNone: boolean;
}

/** Creates a line in which nobody waits. */
function createWaiters(): Waiters {
  const line = new Set<{ readonly may: () => boolean; readonly letIn: () => void }>();

  function look(): void {
    for (const waiter of line) {
      if (!waiter.may()) return;
      line.delete(waiter);
      waiter.letIn();
    }
  }

  return {
    look,
    wait(may, enter, signal) {
      return new Promise((resolve, reject) => {
        const leave = (): void => {
          line.delete(waiter);
          reject(signal.reason);
          look();
        };
        const waiter = {
          may,
          letIn(): void {
            signal.removeEventListener('abort', leave);
            enter();
            resolve();
          },
        };
        if (signal.aborted) return reject(signal.reason);
        signal.addEventListener('abort', leave, { once: true });
        line.add(waiter);
        look();
      });
    },
    get areNone() {
      return line.size === 0;
    },
  };
}
