/** What the fault of one attempt means for its record: wait for a circuit, try again soon, be deferred alone, or be rejected. */
import { circuitOf, type Fault } from '../../domain/fault.ts';
import type { FaultCircuit } from '../../domain/fault-entry.ts';
import type { ChangeRecord } from '../../domain/events/record.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import { deferDelayS } from '../../domain/messages/settlement.ts';
import type { BucketAccess } from '../buckets/access.ts';
import type { Clock } from '../ports/clock.ts';
import type { Circuits } from '../serving/circuits.ts';
import type { CircuitId } from '../serving/waiting-line.ts';
import type { InHand } from './held-set.ts';
import type { Waiting } from './waiting.ts';

/** A failure that has not opened its circuit yet may be chance: the record tries again soon, and the third failure opens the circuit. */
export const RETRY_MS = 500;

/** The third failure in a row opens the circuit of what failed, so at the sixth it is clear that others succeed between. */
const ATTEMPTS_MAX = 6;

/** A failed attempt, and the circuits that it needed. */
interface FailedAttempt {
  readonly record: ChangeRecord;
  readonly fault: Fault;
  readonly ids: readonly CircuitId[];
  /** How many attempts of this record in a row have failed, this one included. */
  readonly failures: number;
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
    const { record, fault, ids, failures } = failed;
    if (fault.code === 'bucket.missing') buckets.readRegionAgain(record.bucket);
    const level = circuitOf(fault.code);
    if (level === 'never') return { kind: 'rejected', fault, bucket: record.bucket };
    // a circuit that the fault is not about has no trial in this attempt: waiting for it would end immediately, again and again
    if (circuits.openOf(ids.filter((id) => concerns(id, level))) !== undefined) return waitFor();
    // an index that has answered others meanwhile refuses this record alone
    const isStores = level === 'cluster' || level === 'index';
    if (isStores && failures < ATTEMPTS_MAX) return tryAgainSoon(failed, hand);
    const delayS = deferDelayS(hand.message.receiveCount);
    return waiting.alone({ record, attempt: { ids, isNewKey: false } }, { fault, delayS }, hand);
  };
}

/** Whether a fault of this level is about the circuit, or about what is behind it. While the cluster's is open, everything waits. */
function concerns(id: CircuitId, level: FaultCircuit): boolean {
  if (id === 'cluster' || level === 'cluster') return id === 'cluster';
  return id.startsWith('index ') === (level === 'index');
}
