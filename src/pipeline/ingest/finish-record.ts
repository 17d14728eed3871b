/**
 * Brings one record to its one outcome. An attempt is made, and made again after a wait for a circuit, an expired answer, a
 * tie, or a fault that is over.
 *
 * What waits for a circuit holds no answer and no decision: it begins again with a fresh bucket record, and a HEAD that is
 * sent after every hint that it serves was received (ordering rules 9 and 11).
 */
import type { Fault } from '../../domain/fault.ts';
import type { ObserveHint } from '../../domain/ordering/hint.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import { deferDelayS } from '../../domain/messages/settlement.ts';
import type { ChangeRecord } from '../../domain/events/record.ts';
import type { CircuitId, Place } from '../serving/waiting-line.ts';
import { createAttemptRecord, type Attempt, type AttemptDependencies, type AttemptStart } from './attempt-record.ts';
import type { InHand } from './held-set.ts';
import { createAfterFault } from './after-fault.ts';
import type { Waiting } from './waiting.ts';

export type FinishRecord = (record: ChangeRecord, hand: InHand) => Promise<Outcome>;

interface FinishDependencies extends AttemptDependencies {
  readonly waiting: Waiting;
}

/** One record on its way, and what its attempts have shown so far. */
interface Run extends AttemptStart {
  readonly record: ChangeRecord;
  /** The places in open circuits that the present attempt has. */
  places: Place[];
  tie: ObserveHint | undefined;
  /** Whether no attempt for this record has failed yet, as far as its message shows: such a record is the better trial. */
  isNewKey: boolean;
  /** How many attempts in a row have failed. */
  failures: number;
  /** Whether looks ask by LIST from now on. */
  byListing: boolean;
}

/** At this receive HEAD has failed twice for the object alone: S3 may answer a LIST of its key. */
const LIST_FROM_RECEIVE = 3;

const EXPIRED: Fault = { code: 'index.overloaded', reason: 'the store was so slow that answers expired before they could be written' };

/** Creates the function. It rejects only with the reason of the stop. */
export function createFinishRecord(dependencies: FinishDependencies): FinishRecord {
  const { buckets, circuits, waiting } = dependencies;
  const attemptRecord = createAttemptRecord(dependencies, takePlaces);
  const afterFault = createAfterFault(dependencies);

  return async function finishRecord(record, hand) {
    // the event name alone decides, and such a record may not name a bucket
    if (record.change.kind === 'ignored') return { kind: 'ignored', reason: record.change.reason };
    const isNewKey = hand.message.receiveCount === 1;
    const run: Run = { record, hand, places: [], tie: undefined, isNewKey, failures: 0, byListing: false };
    for (;;) {
      let result: Attempt;
      try {
        result = await attemptRecord(record, run);
      } finally {
        if (run.places.length > 0) for (const place of run.places.splice(0)) place.leave();
      }
      if (result.kind === 'ended') return result.outcome;
      const outcome = await prepareNext(run, result);
      if (outcome !== undefined) return outcome;
    }
  };

  /** Resolves to undefined when the record may be decided again, else to the outcome that it ends with. */
  async function prepareNext(run: Run, result: Exclude<Attempt, { kind: 'ended' }>): Promise<Outcome | undefined> {
    const { record, hand } = run;
    hand.signal.throwIfAborted();
    switch (result.kind) {
      case 'tie':
        run.tie = result.hint;
        return undefined;
      case 'expired':
        return hand.holdLeftMs() > 0 ? undefined : { kind: 'deferred', fault: EXPIRED, delayS: 0, bucket: record.bucket };
      case 'unconnectable':
        return ofUnconnectable(record, result.fault, hand);
      case 'blocked':
        // it came with those whose failures opened the circuit: what comes later is the better trial
        if (result.atItsTurn === true) run.isNewKey = false;
        return waitFor(run, result.ids);
      case 'fault':
        run.isNewKey = false;
        run.failures += 1;
        if (shouldList(run, result)) {
          run.byListing = true;
          return undefined;
        }
        return afterFault({ ...result, record, failures: run.failures }, hand, () => waitFor(run, result.ids));
    }
  }

  /** A name that cannot be connected for as long as its message may be received is a name that is not connected. */
  function ofUnconnectable({ bucket }: ChangeRecord, fault: Fault, hand: InHand): Outcome {
    if (!waiting.isLastChance(hand)) return { kind: 'deferred', fault, delayS: deferDelayS(hand.message.receiveCount), bucket };
    buckets.countUnconnected(bucket, hand.message.sentAtMs);
    return { kind: 'unconnected' };
  }

  function shouldList({ byListing, hand }: Run, { fault, ids }: Extract<Attempt, { kind: 'fault' }>): boolean {
    const isServers = fault.code === 's3.unavailable' || fault.code === 's3.throttled';
    return isServers && !byListing && hand.message.receiveCount >= LIST_FROM_RECEIVE && circuits.openOf(ids) === undefined;
  }

  async function waitFor(run: Run, ids: readonly CircuitId[]): Promise<Outcome | undefined> {
    const next = await waiting.waitOrFold({ record: run.record, attempt: { ids, isNewKey: run.isNewKey } }, run.hand);
    if ('kind' in next) return next;
    run.places = [next];
    run.failures = 0;
    return undefined;
  }

  /** Takes the places that the attempt needs in circuits that are open. Returns whether it may continue. */
  function takePlaces(run: Run, ids: readonly CircuitId[]): boolean {
    const held = new Set(run.places.flatMap((place) => place.ids));
    const place = circuits.take({ ids: ids.filter((id) => !held.has(id)), isNewKey: run.isNewKey });
    if (place === undefined) return false;
    run.places.push(place);
    return true;
  }
}
