/** What a fault means for a record in hand: wait for better times here, or end with an outcome. */
import type { Fault } from '../domain/fault.ts';
import { faults, scopeOf } from '../domain/fault.ts';
import type { Outcome } from '../domain/outcome.ts';
import type { FaultGate, Probe } from './fault-gate.ts';
import type { InHand } from './in-hand.ts';
import type { Clock, Telemetry } from './ports.ts';

/** How long the records of a bucket are parked before one is tried again. */
const PARK_MS = 30_000;

export interface FaultContext {
  readonly bucket: string;
  readonly region?: string;
}

/** Resolves to undefined when the record may be tried again, else to the outcome that it ends with. Rejects with the stop's reason. */
export type WaitOut = (fault: Fault, at: FaultContext, hand: InHand) => Promise<Outcome | undefined>;

interface WaitOutDependencies {
  readonly gate: FaultGate;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly probes: { readonly index: Probe; readonly storage: (at: FaultContext) => Probe };
  /** At most so many records are parked; more are deferred, so that one bucket cannot fill the held set. */
  readonly parkedMax: number;
}

/** Creates the decision; its state is the set of parked buckets. */
export function createWaitOut({ gate, clock, telemetry, probes, parkedMax }: WaitOutDependencies): WaitOut {
  const parkedBuckets = new Map<string, number>();
  let parked = 0;

  async function waitForGate(fault: Fault, at: FaultContext, hand: InHand): Promise<Outcome | undefined> {
    if (fault.code.startsWith('s3.')) gate.trip('s3', fault, probes.storage(at));
    else gate.trip('index', fault, probes.index);
    const limit = new AbortController();
    const signal = AbortSignal.any([hand.signal, limit.signal]);
    try {
      const isOver = await Promise.race([gate.passed(signal).then(() => true), clock.sleep(hand.holdLeftMs(), signal).then(() => false)]);
      return isOver ? undefined : { kind: 'deferred', fault, bucket: at.bucket };
    } finally {
      limit.abort(new Error('waited enough'));
    }
  }

  async function park(fault: Fault, at: FaultContext, hand: InHand): Promise<Outcome | undefined> {
    if (parked >= parkedMax || hand.holdLeftMs() <= 0) return { kind: 'deferred', fault, bucket: at.bucket };
    if (!parkedBuckets.has(at.bucket)) telemetry.bucketParked(at.bucket, fault.code, `${fault.reason}. ${faults[fault.code].advice}`);
    parkedBuckets.set(at.bucket, (parkedBuckets.get(at.bucket) ?? 0) + 1);
    parked += 1;
    try {
      await clock.sleep(PARK_MS, hand.signal);
      return undefined;
    } finally {
      parked -= 1;
      const left = (parkedBuckets.get(at.bucket) ?? 1) - 1;
      if (left > 0) parkedBuckets.set(at.bucket, left);
      else parkedBuckets.delete(at.bucket);
    }
  }

  return async function waitOut(fault, at, hand) {
    hand.signal.throwIfAborted();
    switch (scopeOf(fault.code)) {
      case 'shared':
        hand.turnSlow();
        return waitForGate(fault, at, hand);
      case 'bucket':
        hand.turnSlow();
        return park(fault, at, hand);
      case 'own':
        return { kind: 'deferred', fault, bucket: at.bucket };
      case 'never':
        return { kind: 'rejected', fault, bucket: at.bucket };
    }
  };
}
