/** What a fault means for a record in hand: wait for better times here, or end with an outcome. */
import type { Fault } from '../../domain/fault.ts';
import { scopeOf } from '../../domain/fault.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import type { FaultGate, Probe } from '../serving/fault-gate.ts';
import type { InHand } from './in-hand.ts';
import type { Parking } from './parking.ts';
import type { Clock } from '../ports/clock.ts';

export interface FaultContext {
  readonly bucket: string;
  readonly region?: string;
}

/**
 * Resolves to undefined when the record may be tried again, else to the outcome that it ends with. `at` is absent where
 * the work is no bucket's. Rejects with the stop's reason.
 */
export type WaitOut = (fault: Fault, hand: InHand, at?: FaultContext) => Promise<Outcome | undefined>;

interface WaitOutDependencies {
  readonly gate: FaultGate;
  readonly clock: Clock;
  readonly probes: { readonly index: Probe; readonly storage: (at: FaultContext) => Probe };
  readonly parking: Parking;
}

/** Creates the decision. */
export function createWaitOut({ gate, clock, probes, parking }: WaitOutDependencies): WaitOut {
  async function isOverInTime(fault: Fault, hand: InHand, at: FaultContext | undefined): Promise<boolean> {
    hand.turnSlow();
    if (at !== undefined && fault.code.startsWith('s3.')) gate.trip('s3', fault, probes.storage(at));
    else gate.trip('index', fault, probes.index);
    const limit = new AbortController();
    const signal = AbortSignal.any([hand.signal, limit.signal]);
    try {
      return await Promise.race([gate.passed(signal).then(() => true), clock.sleep(hand.holdLeftMs(), signal).then(() => false)]);
    } finally {
      limit.abort(new Error('waited enough'));
    }
  }

  async function isParkedInTime(fault: Fault, hand: InHand, at: FaultContext | undefined): Promise<boolean> {
    if (at === undefined) return false;
    hand.turnSlow();
    return (await parking.park(at.bucket, fault, hand)) === 'try-again';
  }

  return async function waitOut(fault, hand, at) {
    hand.signal.throwIfAborted();
    const of = at === undefined ? {} : { bucket: at.bucket };
    switch (scopeOf(fault.code)) {
      case 'shared':
        return (await isOverInTime(fault, hand, at)) ? undefined : { kind: 'deferred', fault, ...of };
      case 'bucket':
        return (await isParkedInTime(fault, hand, at)) ? undefined : { kind: 'deferred', fault, ...of };
      case 'own':
        return { kind: 'deferred', fault, ...of };
      case 'never':
        return { kind: 'rejected', fault, ...of };
    }
  };
}
