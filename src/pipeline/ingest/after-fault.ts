/** What the fault of one attempt means for its record: wait for a circuit, try again soon, be deferred alone, or be rejected. */
import { circuitOf, type Fault } from '../../domain/fault.ts';
import type { ChangeRecord } from '../../domain/events/record.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import { deferDelayS } from '../../domain/messages/settlement.ts';
import type { BucketAccess } from '../buckets/access.ts';
import type { Clock } from '../ports/clock.ts';
import type { Circuits } from '../serving/circuits.ts';
import type { CircuitId } from '../serving/open-circuits.ts';
import type { InHand } from './held-set.ts';
import type { Waiting } from './waiting.ts';

/** A failure that has not opened its circuit yet may be chance: the record tries again soon, and the third failure opens the circuit. */
export const RETRY_MS = 500;

/** A failed attempt, and the circuits that it needed. */
interface FailedAttempt {
  readonly record: ChangeRecord;
  readonly fault: Fault;
  readonly ids: readonly CircuitId[];
}

interface FaultsDependencies {
  readonly circuits: Circuits;
  readonly waiting: Pick<Waiting, 'alone'>;
  readonly buckets: Pick<BucketAccess, 'readRegionAgain'>;
  readonly clock: Clock;
}

/** Resolves to undefined when the record may be decided again, else to its outcome. `waitFor` waits for the circuits of the attempt. */
type AfterFault = (failed: FailedAttempt, hand: InHand, waitFor: () => Promise<Outcome | undefined>) => Promise<Outcome | undefined>;

/** Creates the decision. */
export function createAfterFault({ circuits, waiting, buckets, clock }: FaultsDependencies): AfterFault {
  async function tryAgainSoon({ record: { bucket }, fault }: FailedAttempt, hand: InHand): Promise<Outcome | undefined> {
    if (hand.holdLeftMs() <= 0) return { kind: 'deferred', fault, delayS: deferDelayS(hand.message.receiveCount), bucket };
    hand.turnSlow();
    // at different moments: the record whose write fails every request that it is in must not meet the same others each time
    await clock.sleep(RETRY_MS * (0.5 + Math.random()), hand.signal);
    return undefined;
  }

  return async function afterFault(failed, hand, waitFor) {
    const { record, fault, ids } = failed;
    if (fault.code === 'bucket.missing') buckets.readRegionAgain(record.bucket);
    const level = circuitOf(fault.code);
    if (level === 'never') return { kind: 'rejected', fault, bucket: record.bucket };
    if (circuits.openOf(ids) !== undefined) return waitFor();
    switch (level) {
      case 'cluster':
      case 'index':
        return tryAgainSoon(failed, hand);
      case 'endpoint':
      case 'bucket':
      case 'queue':
      case 'object':
        return waiting.alone(
          { record, attempt: { ids, isNewKey: false } },
          { fault, delayS: deferDelayS(hand.message.receiveCount) },
          hand,
        );
    }
  };
}
