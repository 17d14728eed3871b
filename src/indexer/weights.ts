/**
 * The weight of messages in hand: what they cost in memory. A body is as long as its sender likes, and it becomes as many
 * records as fit into it, so a number of messages bounds nothing. What it weighs in records is known only once it is read, so
 * bodies are read one after another while there is room, and one that is alone is always read, however large it is. Short
 * bodies have a lane and a part of the room to themselves: usual events do not wait for a body of a MiB with thousands of records.
 */
import { addAbortListener } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import PQueue from 'p-queue';
import { unwrap, type Unwrapped } from '../events/envelope.ts';

/** A body in memory takes up to two bytes a character, and six more while its dead letter is sent (as JSON, as bytes, in the socket). */
const CHARACTER_BYTES = 8;
/** A record with its hint, its document, its promises and its part of requests. Measured: 2 to 4 KiB. */
const RECORD_BYTES = 4_096;
/** What the short bodies have for themselves of the limit. */
const SHORT_SHARE = 0.25;
/** Reading a larger body takes so long (a millisecond, and a hundred if it has a MiB) that the process answers others before it. */
const LONG_BODY_LENGTH = 65_536;

/** The weight of one message: plain data, because each message has one. Only the functions of {@link Weights} change it. */
export interface MessageWeight {
  /** What the message weighs, as far as it is known. */
  bytes: number;
  readonly lane: Lane;
  isRead: boolean;
}

interface Lane {
  readonly isLong: boolean;
  /** Those that wait for their turn, in the order of arrival. */
  readonly line: PQueue;
  /** The weight of what was read. */
  readBytes: number;
}

export interface Weights {
  /** Counts a message that was received. */
  received(body: string): MessageWeight;
  /** Reads the body when its turn has come, which is usually now. Rejects with the signal's reason. */
  read(body: string, weight: MessageWeight, signal: AbortSignal): Unwrapped | Promise<Unwrapped>;
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

/** Creates the weights of no messages. What was read exceeds `weightMaxBytes` by at most a quarter and one message of each lane. `isAws`: as for `unwrap`. */
export function createWeights(weightMaxBytes: number, isAws = true): Weights {
  const short = createLane(false);
  const long = createLane(true);
  let inHandBytes = 0;
  let change: PromiseWithResolvers<void> | undefined;

  function wake(): void {
    change?.resolve();
    change = undefined;
  }

  /** Few wait here: a poller for room, and the first of each line. */
  async function until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    using _listener = addAbortListener(signal, wake);
    while (!holds()) {
      signal.throwIfAborted();
      await (change ??= Promise.withResolvers()).promise;
    }
    signal.throwIfAborted();
  }

  function fits({ bytes, lane }: MessageWeight): boolean {
    if (lane.readBytes === 0 || short.readBytes + long.readBytes + bytes <= weightMaxBytes) return true;
    return !lane.isLong && short.readBytes + bytes <= SHORT_SHARE * weightMaxBytes;
  }

  function readNow(body: string, weight: MessageWeight): Unwrapped {
    const unwrapped = unwrap(body, isAws);
    const recordBytes = weightOf('', recordsOf(unwrapped));
    weight.isRead = true;
    weight.bytes += recordBytes;
    weight.lane.readBytes += weight.bytes;
    inHandBytes += recordBytes;
    return unwrapped;
  }

  async function readInTurn(body: string, weight: MessageWeight, signal: AbortSignal): Promise<Unwrapped> {
    if (weight.lane.isLong) await setImmediate();
    await until(() => fits(weight), signal);
    return readNow(body, weight);
  }

  const hasRoom = (): boolean => inHandBytes < weightMaxBytes;
  return {
    received(body) {
      const bytes = weightOf(body, 0);
      inHandBytes += bytes;
      return { bytes, lane: body.length > LONG_BODY_LENGTH ? long : short, isRead: false };
    },
    read(body, weight, signal) {
      const { isLong, line } = weight.lane;
      if (isLong || line.pending > 0 || !fits(weight)) return line.add(() => readInTurn(body, weight, signal));
      return readNow(body, weight);
    },
    ended({ bytes, lane, isRead }) {
      inHandBytes -= bytes;
      if (isRead) lane.readBytes -= bytes;
      wake();
    },
    get hasRoom() {
      return hasRoom();
    },
    room: (signal) => until(hasRoom, signal),
  };
}

function createLane(isLong: boolean): Lane {
  return { isLong, line: new PQueue({ concurrency: 1 }), readBytes: 0 };
}

/** How many records could be read: those that were rejected alike are one. */
function recordsOf(unwrapped: Unwrapped): number {
  return unwrapped.kind === 'records' ? unwrapped.records.reduce((sum, { ok }) => sum + (ok ? 1 : 0), 0) : 0;
}
