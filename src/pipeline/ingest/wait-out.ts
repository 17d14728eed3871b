/** Decides what a fault means for a record in hand: wait until the fault is over, or end with an outcome. */
import type { Fault } from '../../domain/fault.ts';
import { scopeOf } from '../../domain/fault.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import type { FaultGate, Probe } from '../serving/fault-gate.ts';
import type { InHand } from './held-set.ts';
import { endedWithin } from '../serving/async.ts';
import type { Parking } from '../serving/parking.ts';
import type { Clock } from '../ports/clock.ts';

export interface FaultContext {
  readonly bucket: string;
  readonly region?: string;
}

/**
 * Resolves to undefined when the record may be tried again, else to the outcome that it ends with. `at` is absent if the
 * work concerns no bucket. Rejects with the reason of the stop.
 */
export type WaitOut = (fault: Fault, hand: InHand, at?: FaultContext) => Promise<Outcome | undefined>;

interface WaitOutDependencies {
  readonly gate: FaultGate;
  readonly clock: Clock;
  readonly probes: { readonly index: Probe; readonly storage: (at: FaultContext) => Probe };
  readonly parking: Parking;
}

/** Creates the function. */
export function createWaitOut({ gate, clock, probes, parking }: WaitOutDependencies): WaitOut {
  async function isOverInTime(fault: Fault, hand: InHand, at: FaultContext | undefined): Promise<boolean> {
    hand.turnSlow();
    if (at !== undefined && fault.code.startsWith('s3.')) gate.trip('s3', fault, probes.storage(at));
    else gate.trip('index', fault, probes.index);
    const limit = new AbortController();
    try {
      return await endedWithin(clock, hand.holdLeftMs(), gate.passed(AbortSignal.any([hand.signal, limit.signal])));
    } finally {
      limit.abort(new Error('the message was held for as long as it may be'));
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
