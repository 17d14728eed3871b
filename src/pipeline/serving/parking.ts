/**
 * Parking: two circuit breakers for each bucket, one for its index and one for the bucket in S3. While a bucket is parked
 * its records wait here and are not tried, so that they do not slow down the requests that all buckets share.
 *
 *             fault                           30 s                    a record succeeds
 *   (working) ──────► parked (reported once) ──────► all are tried ────────────────────► (working, reported once)
 *                            ▲                            │ fault
 *                            └────────────────────────────┘
 */
import type { Fault } from '../../domain/fault.ts';
import { faults } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** How long a bucket's records are parked before they are tried again. */
const PARK_MS = 30_000;

/** The part of a bucket that can fail. */
export type BucketPart = 'index' | 'storage';

/** The message whose record waits. */
interface ParkedMessage {
  /** Aborted when the process stops. */
  readonly signal: AbortSignal;
  readonly isLastReceive: boolean;
  /** How much longer the message may be held. */
  holdLeftMs(): number;
}

export interface Parking {
  /** Why the bucket's records may not be tried now; undefined if they may. */
  parkedBy(bucket: string, part: BucketPart): Fault | undefined;
  /**
   * Parks the bucket if it is not parked yet, and waits until its records may be tried. `no-room`: the message must be
   * deferred instead. Rejects with the reason of the message's signal.
   */
  park(bucket: string, fault: Fault, message: ParkedMessage): Promise<'try-again' | 'no-room'>;
  /** Ends the parking: a record of the bucket that needs this part succeeded. */
  worked(bucket: string, part: BucketPart): void;
}

interface ParkingDependencies {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** How many records may be parked; it is bounded so that one bucket cannot fill the held set. */
  readonly parkedMax: number;
}

/** Creates the parking; nothing is parked. */
export function createParking({ clock, telemetry, parkedMax }: ParkingDependencies): Parking {
  /** At most two entries for each connected bucket. */
  const closed = new Map<string, { readonly fault: Fault; readonly untilMs: number }>();
  let parked = 0;

  /** Parks the bucket, and reports it if it was not parked. Returns when its records may be tried again, by the monotonic clock. */
  function closeUntil(bucket: string, fault: Fault): number {
    const id = idOf(bucket, partOf(fault));
    const nowMs = clock.monotonicMs();
    const current = closed.get(id);
    if (current !== undefined && current.untilMs > nowMs) return current.untilMs;
    if (current === undefined) telemetry.bucketParked(bucket, fault.code, `${fault.reason}. ${faults[fault.code].advice}`);
    const untilMs = nowMs + PARK_MS;
    closed.set(id, { fault, untilMs });
    return untilMs;
  }

  return {
    parkedBy(bucket, part) {
      const current = closed.get(idOf(bucket, part));
      return current !== undefined && current.untilMs > clock.monotonicMs() ? current.fault : undefined;
    },
    async park(bucket, fault, message) {
      const untilMs = closeUntil(bucket, fault);
      // a message that is deferred at its last receive becomes a dead letter, so there is half as much room again for those
      const roomFor = message.isLastReceive ? parkedMax * 1.5 : parkedMax;
      if (parked >= roomFor || message.holdLeftMs() <= 0) return 'no-room';
      parked += 1;
      try {
        await clock.sleep(untilMs - clock.monotonicMs(), message.signal);
        return 'try-again';
      } finally {
        parked -= 1;
      }
    },
    worked(bucket, part) {
      if (closed.delete(idOf(bucket, part))) telemetry.bucketResumed(bucket);
    },
  };
}

function partOf(fault: Fault): BucketPart {
  return fault.code === 'bucket.missing' ? 'storage' : 'index';
}

function idOf(bucket: string, part: BucketPart): string {
  return `${part} ${bucket}`;
}
