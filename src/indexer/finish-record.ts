/**
 * Brings one record to its one outcome. An attempt is made, and made again after a wait for a circuit, an expired answer, a
 * tie, or a fault that is over:
 *
 *   circuits ─► bucket record ─► hint ─► exact: write │ resolve, observe: HEAD request, then write │ gap: store it │ ignored
 *
 * What waits for a circuit holds no answer and no decision: it begins again with a fresh bucket record, and a HEAD that is
 * sent after every hint that it serves was received (ordering rules 9 and 11).
 */
import type { BucketRecord } from '../records/bucket.ts';
import { ANSWER_LIFE_MS } from '../ordering/constants.ts';
import { documentOf, type ObjectState } from '../ordering/document.ts';
import { circuitOf, faultOf, type Fault, type FaultCircuit } from '../base/fault.ts';
import { hintOf, hintOfTie, type ExactHint, type ObserveHint, type ResolveHint } from '../ordering/hint.ts';
import { deferDelayS, type Outcome } from '../events/outcome.ts';
import { dialectFacts, reportsDeletion, type ChangeRecord } from '../events/record.ts';
import type { EventBuckets } from './event-buckets.ts';
import type { LastEvents } from './last-events.ts';
import type { GapReports } from '../observing/reports.ts';
import type { WriteDocument } from '../observing/bulk-writer.ts';
import type { Enricher } from '../observing/enricher.ts';
import type { ObserveAnswer, Observe } from '../observing/observer.ts';
import type { Clock } from '../process/clock.ts';
import { indexCircuits, observationCircuits, type Circuits } from '../observing/circuits.ts';
import type { CircuitId, Permit } from '../observing/waiting-line.ts';
import type { InHand } from './held-set.ts';
import { RETRY_MS, type Waiting } from './waiting.ts';

/** `topicArn`: the topic that sent the record's message. */
export type FinishRecord = (record: ChangeRecord, hand: InHand, topicArn?: string) => Promise<Outcome>;

interface FinishDependencies {
  readonly buckets: EventBuckets;
  readonly waiting: Waiting;
  readonly write: WriteDocument;
  readonly observe: Observe;
  readonly enricher: Pick<Enricher, 'ofEvent'>;
  readonly gaps: GapReports;
  readonly circuits: Circuits;
  readonly lastEvents: Pick<LastEvents, 'seen'>;
  readonly clock: Clock;
}

/** One record on its way, and what its attempts have shown so far. */
interface Run {
  readonly record: ChangeRecord;
  readonly hand: InHand;
  readonly topicArn: string | undefined;
  /** The permits in open circuits that the present attempt has. */
  permits: Permit[];
  /** The tie that an earlier attempt met. */
  tie: ObserveHint | undefined;
  /** Whether no attempt for this record has failed yet, as far as its message shows: such a record is the better trial. */
  isNewKey: boolean;
  /** How many attempts in a row have failed. */
  failures: number;
  /** Whether observations ask by LIST from now on, because HEAD keeps failing for this object. */
  byListing: boolean;
}

/**
 * How one attempt ended: with an outcome, or with the reason to decide again. `ids`: the circuits that the attempt needs. `atItsTurn`: the
 * circuit opened while the HEAD request waited for its turn.
 */
type AttemptEnd =
  | { readonly kind: 'ended'; readonly outcome: Outcome }
  | { readonly kind: 'expired' }
  | { readonly kind: 'tie'; readonly hint: ObserveHint }
  | { readonly kind: 'blocked'; readonly ids: readonly CircuitId[]; readonly atItsTurn?: boolean }
  | { readonly kind: 'fault'; readonly fault: Fault; readonly ids: readonly CircuitId[] };

/** At this receive HEAD has failed twice for the object alone: S3 may answer a LIST of its key. */
const LIST_FROM_RECEIVE = 3;

/** The third failure in a row opens the circuit of what failed, so at the sixth it is clear that others succeed between. */
const ATTEMPTS_MAX = 6;

const EXPIRED: Fault = { code: 'index.overloaded', reason: 'the store was so slow that answers expired before they could be written' };

/** Creates the function. It rejects only with the reason of the stop. */
export function createFinishRecord(dependencies: FinishDependencies): FinishRecord {
  const { buckets, circuits, waiting, clock } = dependencies;
  const attemptRecord = createAttemptRecord(dependencies);

  return async function finishRecord(record, hand, topicArn) {
    // the event name alone decides, and such a record may not name a bucket
    if (record.change.kind === 'ignored') return { kind: 'ignored', reason: record.change.reason };
    const isNewKey = hand.message.receiveCount === 1;
    const run: Run = { record, hand, topicArn, permits: [], tie: undefined, isNewKey, failures: 0, byListing: false };
    for (;;) {
      let result: AttemptEnd;
      try {
        result = await attemptRecord(run);
      } finally {
        if (run.permits.length > 0) for (const permit of run.permits.splice(0)) permit.leave();
      }
      if (result.kind === 'ended') return result.outcome;
      const outcome = await prepareNext(run, result);
      if (outcome !== undefined) return outcome;
    }
  };

  /** Resolves to undefined when the record may be decided again, else to the outcome that it ends with. */
  async function prepareNext(run: Run, result: Exclude<AttemptEnd, { kind: 'ended' }>): Promise<Outcome | undefined> {
    const { record, hand } = run;
    hand.signal.throwIfAborted();
    switch (result.kind) {
      case 'tie':
        run.tie = result.hint;
        return undefined;
      case 'expired':
        return hand.holdLeftMs() > 0 ? undefined : { kind: 'deferred', fault: EXPIRED, delayS: 0, bucket: record.bucket };
      case 'blocked':
        // it came with those whose failures opened the circuit: what comes later is the better trial
        if (result.atItsTurn === true) run.isNewKey = false;
        return waitFor(run, result.ids);
      case 'fault':
        return afterFault(run, result);
    }
  }

  /** What the fault means for the record: observe by LIST, wait for a circuit, try again soon, be deferred alone, or be rejected. */
  async function afterFault(run: Run, { fault, ids }: Extract<AttemptEnd, { kind: 'fault' }>): Promise<Outcome | undefined> {
    const { record, hand } = run;
    run.isNewKey = false;
    run.failures += 1;
    const level = circuitOf(fault.code);
    if (level === 'never') return { kind: 'rejected', fault, bucket: record.bucket };
    if (shouldList(run, fault, ids)) {
      run.byListing = true;
      return undefined;
    }
    if (fault.code === 'bucket.missing') buckets.readRegionAgain(record.bucket);
    // a circuit that the fault is not about has no trial in this attempt: waiting for it would end immediately, again and again
    if (circuits.openOf(ids.filter((id) => concerns(id, level))) !== undefined) return waitFor(run, ids);
    // an index that has answered others meanwhile refuses this record alone
    const isStores = level === 'cluster' || level === 'index';
    if (isStores && run.failures < ATTEMPTS_MAX) return tryAgainSoon(run, fault);
    return waiting.alone(record, { fault, delayS: deferDelayS(hand.message.receiveCount) }, hand);
  }

  function shouldList({ byListing, hand }: Run, { code }: Fault, ids: readonly CircuitId[]): boolean {
    const isServers = code === 's3.unavailable' || code === 's3.throttled';
    return isServers && !byListing && hand.message.receiveCount >= LIST_FROM_RECEIVE && circuits.openOf(ids) === undefined;
  }

  async function tryAgainSoon({ record: { bucket }, hand }: Run, fault: Fault): Promise<Outcome | undefined> {
    if (hand.holdLeftMs() <= 0) return { kind: 'deferred', fault, delayS: deferDelayS(hand.message.receiveCount), bucket };
    hand.turnSlow();
    // at different moments: the record whose write fails every request that it is in must not meet the same others each time
    await clock.sleep(RETRY_MS * (0.5 + Math.random()), hand.signal);
    return undefined;
  }

  async function waitFor(run: Run, ids: readonly CircuitId[]): Promise<Outcome | undefined> {
    const next = await waiting.waitOrHandOver(run.record, { ids, isNewKey: run.isNewKey }, run.hand);
    if ('kind' in next) return next;
    run.permits = [next];
    run.failures = 0;
    return undefined;
  }
}

/** Whether a fault of this level is about the circuit, or about what is behind it. While the cluster's is open, everything waits. */
function concerns(id: CircuitId, level: FaultCircuit): boolean {
  if (id === 'cluster' || level === 'cluster') return id === 'cluster';
  return id.startsWith('index ') === (level === 'index');
}

/** The bucket record by which a change record is decided, and its run. */
interface Context {
  readonly bucket: BucketRecord;
  readonly run: Run;
}

/** Creates the function that makes one attempt. It rejects only with the reason of the stop. */
function createAttemptRecord(dependencies: FinishDependencies): (run: Run) => Promise<AttemptEnd> {
  const { buckets, write, observe, enricher, gaps, circuits, lastEvents, clock } = dependencies;

  return async function attemptRecord(run) {
    const { record, hand } = run;
    // usually no circuit is open, and then the ids need not be made
    if (!circuits.isQuiet && !takePermits(run, indexCircuits(record.bucket), circuits))
      return { kind: 'blocked', ids: indexCircuits(record.bucket) };
    // read after the attempt took its permit, so that its failure counts for its own trial and for no earlier one
    const sentAtMs = clock.monotonicMs();
    try {
      // usually its record is cached, at most 10 s old, and the event changes nothing about it
      const known = buckets.peek(record);
      if (known !== undefined) return await decide(run, known);
      const found = await slowly(hand, buckets.lookup(record, hand.message));
      if (found !== undefined) return await decide(run, found);
      buckets.countUnconnected(record.bucket, hand.message.sentAtMs);
      return { kind: 'ended', outcome: { kind: 'unconnected' } };
    } catch (error) {
      hand.signal.throwIfAborted();
      const fault = faultOf(error);
      noteStoreFault(circuits, record.bucket, { fault, sentAtMs });
      return { kind: 'fault', fault, ids: indexCircuits(record.bucket) };
    }
  };

  function mayObserve(run: Run, bucket: BucketRecord): boolean {
    return circuits.isQuiet || takePermits(run, observationCircuits(bucket), circuits);
  }

  /** The attempt at a record of a bucket that is connected. */
  async function decide(run: Run, bucket: BucketRecord): Promise<AttemptEnd> {
    const { record, hand, tie } = run;
    const { sentAtMs } = hand.message;
    lastEvents.seen(record, hand.message, run.topicArn);
    const hint = tie ?? hintOf(record, bucket, { sentAtMs, nowMs: clock.nowMs() });
    switch (hint.kind) {
      case 'exact':
        return writeExact(hint, { bucket, run });
      case 'resolve':
      case 'observe':
        hand.turnSlow();
        if (!mayObserve(run, bucket)) return { kind: 'blocked', ids: observationCircuits(bucket) };
        return observeAndWrite(hint, { bucket, run });
      case 'gap':
        await slowly(hand, gaps.report({ bucket: record.bucket, kind: 'bulk-delete', reason: record.eventName, seenAtMs: hint.seenAtMs }));
        return { kind: 'ended', outcome: { kind: 'gap' } };
      case 'ignored':
        return { kind: 'ended', outcome: hint };
    }
  }

  async function writeExact(hint: ExactHint, at: Context): Promise<AttemptEnd> {
    const { bucket, run } = at;
    const { record } = run;
    // the life begins with the decision, so enrichment is part of it
    const expiresAtMs = clock.monotonicMs() + ANSWER_LIFE_MS;
    const state = bucket.enrich === 'none' ? hint.state : await enriched(hint.state, { ...at, expiresAtMs });
    const document = documentOf({
      bucket: record.bucket,
      key: record.key,
      state,
      clock: hint.clock,
      settled: true,
      source: dialectFacts[record.dialect].documentSource,
      cause: record,
      stateAtMs: record.eventTimeMs ?? clock.nowMs(),
      nowMs: clock.nowMs(),
    });
    const answer = await write({ document, equalClock: 'refuse', expiresAtMs });
    switch (answer.kind) {
      case 'written':
      case 'superseded':
        return { kind: 'ended', outcome: answer };
      case 'tie':
        return { kind: 'tie', hint: hintOfTie(hint.clock) };
      case 'expired':
        return answer;
      case 'fault':
        return { ...answer, ids: indexCircuits(record.bucket) };
    }
  }

  /** Enriches the state of a live object. The message waits in the held set, because S3 is involved. */
  async function enriched(
    state: ObjectState,
    { bucket, run, expiresAtMs }: Context & { readonly expiresAtMs: number },
  ): Promise<ObjectState> {
    if (!state.present) return state;
    const { record, hand } = run;
    return slowly(hand, enricher.ofEvent({ bucket, key: record.key, state, expiresAtMs }));
  }

  async function observeAndWrite(hint: ResolveHint | ObserveHint, { bucket, run }: Context): Promise<AttemptEnd> {
    const { record, byListing } = run;
    const facts = {
      bucket,
      key: record.key,
      hint,
      cause: record,
      source: dialectFacts[record.dialect].documentSource,
      reportsDeletion: reportsDeletion(record.change),
    };
    // asked again when the turn of the HEAD request has come, because a circuit may open while it waits
    const mayBegin = (): boolean => mayObserve(run, bucket);
    const answer = await observe({ ...facts, byListing, mayBegin });
    switch (answer.kind) {
      case 'written':
      case 'superseded':
        return { kind: 'ended', outcome: outcomeOfObservation(answer) };
      case 'tie':
        return { kind: 'tie', hint: hintOfTie(answer.clock, hint.kind === 'observe' ? hint : undefined) };
      case 'expired':
        return answer;
      case 'blocked':
        return { ...answer, ids: observationCircuits(bucket), atItsTurn: true };
      case 'fault':
        return { ...answer, ids: observationCircuits(bucket) };
    }
  }
}

/** The faults of reads and of gaps. Those of writes and observations are reported where they are sent. */
function noteStoreFault(
  circuits: Circuits,
  bucket: string,
  { fault, sentAtMs }: { readonly fault: Fault; readonly sentAtMs: number },
): void {
  const level = circuitOf(fault.code);
  if (level === 'cluster') circuits.clusterFailed(fault);
  if (level === 'index') circuits.indexFailed(bucket, fault, { sentAtMs, isWhole: true });
}

/** Takes the permits that the attempt needs in circuits that are open. Returns whether it may continue. */
function takePermits({ permits, isNewKey }: Run, ids: readonly CircuitId[], circuits: Pick<Circuits, 'take'>): boolean {
  const held = new Set(permits.flatMap((permit) => permit.ids));
  const permit = circuits.take({ ids: ids.filter((id) => !held.has(id)), isNewKey });
  if (permit === undefined) return false;
  permits.push(permit);
  return true;
}

/** Waits for the store or S3 with the message in the held set. */
function slowly<Result>(hand: InHand, work: Promise<Result>): Promise<Result> {
  hand.turnSlow();
  return work;
}

function outcomeOfObservation(answer: Extract<ObserveAnswer, { readonly verdict: unknown }>): Outcome {
  return answer.verdict.final ? { kind: answer.kind } : { kind: 'provisional', dueInS: answer.verdict.dueInS };
}
