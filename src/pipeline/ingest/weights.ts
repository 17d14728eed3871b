/**
 * The weight of messages in hand: what they cost in memory. A body is as long as its sender likes, and it becomes as many
 * records as fit into it, so a number of messages bounds nothing. A message is received, waits for its turn, is opened (its
 * records are read), and ends:
 *
 *   received ──► opened ──► ended
 *      │ what is open weighs too much
 *      └──► waiting ──► opened, in the order of arrival
 *
 * What a message weighs in records is known only once it is open, so one message at a time may exceed the limit. A message
 * that is alone is always opened, however large it is.
 */
import { setImmediate } from 'node:timers/promises';

/** A body in memory takes up to two bytes a character, and six more while its dead letter is sent (as JSON, as bytes, in the socket). */
const CHARACTER_BYTES = 8;
/** A record with its hint, its document, its promises and its part of requests. Measured: 2 to 4 KiB. */
const RECORD_BYTES = 4_096;
/** What the short bodies have for themselves. */
const SHORT_SHARE = 0.25;
/** Reading a larger body takes so long (a millisecond, and a hundred if it has a MiB) that the process answers others before it. */
const LONG_BODY_LENGTH = 65_536;

/** The weight of one message: plain data, because each message has one. Only the functions of {@link Weights} change it. */
export interface MessageWeight {
  /** What the message weighs, as far as it is known. */
  bytes: number;
  readonly openMessages: OpenMessages;
  isOpen: boolean;
}

export interface Weights {
  /** Counts a message that was received. */
  received(body: string): MessageWeight;
  /**
   * Undefined if the message may be opened now, else a promise that resolves when it may; no other message has its turn until
   * `opened` or `ended` is called. Rejects with the signal's reason.
   */
  turn(weight: MessageWeight, signal: AbortSignal): Promise<void> | undefined;
  /** The message was opened and has this many records. */
  opened(weight: MessageWeight, records: number): void;
  /** The message is no longer in hand. */
  ended(weight: MessageWeight): void;
  /** Whether the messages in hand weigh less than the limit. */
  readonly hasRoom: boolean;
  /** Resolves when they do. Rejects with the signal's reason. */
  room(signal: AbortSignal): Promise<void>;
}

/** What a message with this body and this many records costs, in bytes. */
export function weightOf(body: string, records: number): number {
  return body.length * CHARACTER_BYTES + records * RECORD_BYTES;
}

/**
 * Creates the weights of no messages. What is open exceeds `weightMaxBytes` by at most a quarter and two messages: short
 * bodies have a quarter for themselves, so that usual events do not wait for a body of a MiB with thousands of records.
 */
export function createWeights(weightMaxBytes: number): Weights {
  const rooms = createWaiters();
  let inHand = 0;
  const long = createOpenMessages((bytes) => long.open + short.open + bytes <= weightMaxBytes);
  const short = createOpenMessages(
    (bytes) => short.open + bytes <= SHORT_SHARE * weightMaxBytes || long.open + short.open + bytes <= weightMaxBytes,
  );
  const waitersOfAll = [short.turns, long.turns, rooms];
  const hasRoom = (): boolean => inHand < weightMaxBytes;

  function enter(weight: MessageWeight): void {
    weight.isOpen = true;
    weight.openMessages.enter(weight);
  }

  async function inTurn(weight: MessageWeight, signal: AbortSignal): Promise<void> {
    const { openMessages } = weight;
    await openMessages.turns.wait(
      () => openMessages.mayOpen(weight.bytes),
      () => enter(weight),
      signal,
    );
    if (openMessages === long) await setImmediate();
  }

  return {
    received(body) {
      const weight = { bytes: weightOf(body, 0), openMessages: body.length > LONG_BODY_LENGTH ? long : short, isOpen: false };
      inHand += weight.bytes;
      return weight;
    },
    turn(weight, signal) {
      const { openMessages, bytes } = weight;
      if (openMessages === long || !openMessages.turns.areNone || !openMessages.mayOpen(bytes)) return inTurn(weight, signal);
      enter(weight);
      return undefined;
    },
    opened(weight, records) {
      const more = weightOf('', records);
      weight.bytes += more;
      inHand += more;
      weight.openMessages.grow(more);
      weight.openMessages.leaveTurn(weight);
    },
    ended(weight) {
      inHand -= weight.bytes;
      if (weight.isOpen) weight.openMessages.grow(-weight.bytes);
      weight.openMessages.leaveTurn(weight);
      for (const waiters of waitersOfAll) waiters.look();
    },
    get hasRoom() {
      return hasRoom();
    },
    room: (signal) => rooms.wait(hasRoom, () => undefined, signal),
  };
}

/** The open messages of one kind, and those that wait for their turn. */
interface OpenMessages {
  readonly turns: Waiters;
  /** The weight of what is open, in bytes. */
  readonly open: number;
  mayOpen(bytes: number): boolean;
  /** It is the message's turn: what it weighs in records is not known yet, so no other message may enter. */
  enter(weight: MessageWeight): void;
  leaveTurn(weight: MessageWeight): void;
  grow(bytes: number): void;
}

/** Creates it without messages. */
function createOpenMessages(fits: (bytes: number) => boolean): OpenMessages {
  const turns = createWaiters();
  let open = 0;
  let entering: MessageWeight | undefined;
  return {
    turns,
    get open() {
      return open;
    },
    mayOpen: (bytes) => entering === undefined && (open === 0 || fits(bytes)),
    enter(weight) {
      entering = weight;
      open += weight.bytes;
    },
    leaveTurn(weight) {
      if (entering !== weight) return;
      entering = undefined;
      turns.look();
    },
    grow(bytes) {
      open += bytes;
    },
  };
}

interface Waiters {
  /** Resolves when `may` holds and all earlier waiters have entered; `enter` is called before the next one is let in. */
  wait(may: () => boolean, enter: () => void, signal: AbortSignal): Promise<void>;
  /** Lets in the waiters whose condition holds now. */
  look(): void;
  readonly areNone: boolean;
}

/** Creates an empty line. */
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
