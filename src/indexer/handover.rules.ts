/**
 * The times by which a record is handed over to a re-index: its message is deleted although the index does not have its change, because a gap
 * that is open, or that was closed by a later reconcile, repairs it.
 *
 * The argument. `lastSeenMs` of an open gap only grows, and a gap is closed only by a reconcile that began after it was written
 * (src/records/covers.ts) and, by S3's clock and by its worker's, after its `lastSeenMs`. So once a worker has stored an open gap with `lastSeenMs` ≥ L, one of two things is true at every
 * later moment: the gap is open, and a reconcile that begins after L will run; or one that began after L has run. A reconcile
 * sees every change that S3 had made before it began. So a record may be acknowledged if its change was made before L, and it
 * stays true for every other record of the bucket whose change was made before L: one write is enough for all of them, those
 * that are received later and those that arrive after the gap was closed included. That a record may be
 * acknowledged does not depend on the clock of a worker: L is compared with the times of SQS and S3 alone. A wrong clock of a
 * worker costs writes or delays the closing of the gap; so does a wrong clock of S3.
 */
import { FUTURE_MS } from '../ordering/constants.ts';

/** The times of a record: when SQS received its message, and when S3 says that the change was made. */
export interface HandoverTimes {
  readonly sentAtMs: number;
  readonly eventTimeMs: number | undefined;
}

/** How far ahead of the present a gap's lastSeen is written: twice the interval between two writes, so that no record waits for one. */
const AHEAD_MS = 10_000;
/** Event times may be whole seconds, cut off. */
const TIME_STEP_MS = 1_000;

/**
 * The latest moment at which the change can have been made: not after its message was sent, by the clock of SQS, and not
 * after the event's own time, by the clock of S3, whichever is later. An event time far after the sending is not plausible
 * (rule 10), and must not keep the gap open until then.
 */
export function momentOf({ sentAtMs, eventTimeMs = sentAtMs }: HandoverTimes): number {
  return Math.max(sentAtMs, Math.min(eventTimeMs, sentAtMs + FUTURE_MS));
}

/** The lastSeen that must be stored before a record with this moment may be acknowledged. */
export function neededLastSeenMs(momentMs: number): number {
  return momentMs + TIME_STEP_MS;
}

/** The lastSeen to store for records of which the latest has this moment: enough for all of them, and for those of the next seconds. */
export function lastSeenAhead(nowMs: number, momentMs: number): number {
  return Math.max(nowMs, momentMs) + AHEAD_MS;
}
