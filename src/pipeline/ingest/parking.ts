/**
 * Parking: a breaker for each bucket, one for its index and one for the bucket itself. While it is parked its records
 * wait here without being tried, so that nothing of it slows down the requests that all buckets share.
 *
 *            fault                        30 s                     a record succeeds
 *   (going) ───────► parked (said once) ───────► tried by all ─────────────────────────► (going, said once)
 *                          ▲                          │ fault
 *                          └──────────────────────────┘
 */
import type { Fault } from '../../domain/fault.ts';
import { faults } from '../../domain/fault.ts';
import type { InHand } from './in-hand.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** How long a bucket's records are parked before they are tried again. */
const PARK_MS = 30_000;

/** What can be out of order of one bucket. */
export type BucketPart = 'index' | 'storage';

export interface Parking {
  /** Why the bucket's records are not to be tried now; undefined when they may be. */
  parkedBy(bucket: string, part: BucketPart): Fault | undefined;
  /** Parks the bucket, if it is not, and waits until its records may be tried. `no-room`: it must be deferred instead. Rejects with the stop's reason. */
  park(bucket: string, fault: Fault, hand: InHand): Promise<'try-again' | 'no-room'>;
  /** A record of the bucket succeeded that needed this part. */
  worked(bucket: string, part: BucketPart): void;
}

interface ParkingDependencies {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** At most so many records are parked, so that one bucket cannot fill the held set. */
  readonly parkedMax: number;
}

/** Creates the parking; nothing is parked. */
export function createParking({ clock, telemetry, parkedMax }: ParkingDependencies): Parking {
  /** At most two entries a bucket whose records were looked up, so bounded by the connected buckets. */
  const closed = new Map<string, { readonly fault: Fault; readonly untilMs: number }>();
  let parked = 0;

  /** When the bucket is to be tried again; told where it was not parked yet. */
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
    async park(bucket, fault, hand) {
      const untilMs = closeUntil(bucket, fault);
      // at its last receive a deferred record would be a dead letter: for those half as many places more
      const roomFor = hand.isLastReceive ? parkedMax * 1.5 : parkedMax;
      if (parked >= roomFor || hand.holdLeftMs() <= 0) return 'no-room';
      parked += 1;
      try {
        await clock.sleep(untilMs - clock.monotonicMs(), hand.signal);
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
