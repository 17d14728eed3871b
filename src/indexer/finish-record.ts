/**
 * Brings one record to its outcome. It is attempted, and attempted again after a wait for a circuit, an expired answer, a tie, or
 * a passing fault:
 *
 *   circuits ─► bucket record ─► hint ─► exact: write │ resolve, observe: HEAD request, then write │ gap: store it │ ignored
 *
 * What waits for a circuit holds no answer and no decision: it begins again with a fresh bucket record, and a HEAD that is
 * sent after every hint that it serves was received (ordering rules 9 and 11).
 */
import type { BucketRecord } from '../records/bucket.ts';
import { ANSWER_LIFE_MS } from '../ordering/constants.ts';
import { documentOf } from '../ordering/document.ts';
import { circuitOf, faultOf, type Fault } from '../base/fault.ts';
import { hintOf, hintOfTie, type ExactHint, type ObserveHint, type ResolveHint } from '../ordering/hint.ts';
import { deferDelayS, type Outcome } from '../events/outcome.ts';
import { dialectFacts, reportsDeletion, type ChangeRecord } from '../events/record.ts';
import type { EventBuckets } from './event-buckets.ts';
import type { LastEvents } from './arrivals.ts';
import type { GapReports } from '../observing/gaps.ts';
import type { WriteDocument } from '../observing/bulk-writer.ts';
import type { Observing } from '../observing/observer.ts';
import type { Clock } from '../process/clock.ts';
import { indexCircuits, observationCircuits, type CircuitId, type Circuits, type Turns } from '../observing/circuits.ts';
import type { InHand } from './held-set.ts';
import { RETRY_MS, type Waiting } from './waiting.ts';

/** The parts that finish records. */
export interface FinishParts {
  readonly buckets: EventBuckets;
  readonly waiting: Waiting;
  readonly write: WriteDocument;
  readonly observing: Observing;
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
  /** The open circuits at which the present attempt is the one permitted. */
  readonly turns: Turns;
  /** The tie that an earlier attempt met. */
  tie: ObserveHint | undefined;
  /** How many attempts in a row have failed. */
  failures: number;
  /** Whether observations ask by LIST from now on, because HEAD keeps failing for this object. */
  byListing: boolean;
}

/** What to do after an attempt without an outcome. Resolves to the outcome, or to undefined if the record is to be decided again. */
type FollowUp = () => Promise<Outcome | undefined>;

/** By this receive HEAD has failed twice for this object alone; S3 may still answer a LIST of its key. */
const LIST_FROM_RECEIVE = 3;

/** The third failure in a row opens a circuit. If a sixth is reached, other requests succeed in between. */
const ATTEMPTS_MAX = 6;

const ANSWERS_EXPIRED: Fault = {
  code: 'index.overloaded',
  reason: 'the store was so slow that answers expired before Tally could write them',
};

const decideAgain: FollowUp = () => Promise.resolve(undefined);

/** Returns the record's outcome. `topicArn`: the topic that sent its message. Rejects only with the reason of the stop. */
export async function finishRecord(parts: FinishParts, record: ChangeRecord, hand: InHand, topicArn: string | undefined): Promise<Outcome> {
  // the event name alone decides, and such a record may not name a bucket
  if (record.change.kind === 'ignored') return { kind: 'ignored', reason: record.change.reason };
  const run: Run = { record, hand, topicArn, turns: new Map(), tie: undefined, failures: 0, byListing: false };
  for (;;) {
    run.turns.clear();
    const end = await attempt(parts, run);
    if (typeof end !== 'function') {
      // a record that was ignored, became a gap or has no connected bucket sent nothing: others may have its turns
      parts.circuits.notTried(run.turns);
      return end;
    }
    hand.signal.throwIfAborted();
    const outcome = await end();
    if (outcome !== undefined) return outcome;
  }
}

async function attempt(parts: FinishParts, run: Run): Promise<Outcome | FollowUp> {
  const { buckets, circuits, clock } = parts;
  const { record, hand } = run;
  if (!mayTry(parts, run, () => indexCircuits(record.bucket))) return () => waitFor(parts, run, indexCircuits(record.bucket));
  const sentAtMs = clock.monotonicMs();
  try {
    // usually its record is cached, at most 10 s old, and the event changes nothing about it
    const known = buckets.peek(record);
    if (known !== undefined) return await decide(parts, run, known);
    const found = await turningSlow(hand, buckets.lookup(record, hand.message));
    if (found !== undefined) return await decide(parts, run, found);
    buckets.countUnconnected(record.bucket, hand.message.sentAtMs);
    return { kind: 'unconnected' };
  } catch (error) {
    hand.signal.throwIfAborted();
    // the fault of a read or of a gap; writes and observations report theirs where they are sent
    const fault = faultOf(error);
    const level = circuitOf(fault.code);
    if (level === 'cluster') circuits.clusterFailed(fault);
    if (level === 'index') circuits.indexFailed(record.bucket, fault, { sentAtMs, isWhole: true });
    return () => afterFault(parts, run, fault, indexCircuits(record.bucket));
  }
}

/** Attempts a record of a connected bucket. */
async function decide(parts: FinishParts, run: Run, bucket: BucketRecord): Promise<Outcome | FollowUp> {
  const { lastEvents, gaps, clock } = parts;
  const { record, hand, tie } = run;
  const { sentAtMs } = hand.message;
  lastEvents.seen(record, hand.message, run.topicArn);
  const hint = tie ?? hintOf(record, bucket, { sentAtMs, nowMs: clock.nowMs() });
  switch (hint.kind) {
    case 'exact':
      return writeExact(parts, run, bucket, hint);
    case 'resolve':
    case 'observe':
      hand.turnSlow();
      return observe(parts, run, bucket, hint);
    case 'gap':
      await turningSlow(
        hand,
        gaps.report({ bucket: record.bucket, kind: 'bulk-delete', reason: record.eventName, seenAtMs: hint.seenAtMs }),
      );
      return { kind: 'gap' };
    case 'ignored':
      return hint;
  }
}

async function writeExact(
  parts: FinishParts,
  run: Run,
  bucket: BucketRecord,
  { clock: at, state: told }: ExactHint,
): Promise<Outcome | FollowUp> {
  const { observing, write, clock } = parts;
  const { record, hand } = run;
  const { key } = record;
  // the life begins with the decision, so enrichment is part of it
  const expiresAtMs = clock.monotonicMs() + ANSWER_LIFE_MS;
  const isEnriched = bucket.enrich !== 'none' && told.present;
  const state = isEnriched ? await turningSlow(hand, observing.enricher.ofEvent({ bucket, key, state: told, expiresAtMs })) : told;
  const document = documentOf({
    bucket: record.bucket,
    key,
    state,
    clock: at,
    settled: true,
    source: dialectFacts[record.dialect].documentSource,
    cause: record,
    stateAtMs: record.eventTimeMs ?? clock.nowMs(),
    nowMs: clock.nowMs(),
  });
  const answer = await (isEnriched ? observing.writeEnriched : write)({ document, equalClock: 'refuse', expiresAtMs });
  switch (answer.kind) {
    case 'written':
    case 'superseded':
      return answer;
    case 'equal':
      return afterTie(run, hintOfTie(at));
    case 'expired':
      return () => afterExpiry(run);
    case 'fault':
      return () => afterFault(parts, run, answer.fault, indexCircuits(record.bucket));
  }
}

async function observe(parts: FinishParts, run: Run, bucket: BucketRecord, hint: ResolveHint | ObserveHint): Promise<Outcome | FollowUp> {
  const { observing } = parts;
  const { record, byListing } = run;
  const ids = (): readonly CircuitId[] => observationCircuits(bucket);
  const mayBegin = (): boolean => mayTry(parts, run, ids);
  if (!mayBegin()) return () => blocked(parts, run, ids());
  const answer = await observing.observe({
    bucket,
    key: record.key,
    hint,
    cause: record,
    source: dialectFacts[record.dialect].documentSource,
    reportsDeletion: reportsDeletion(record.change),
    byListing,
    // asked again when the turn of the HEAD request has come, because a circuit may open while it waits
    mayBegin,
  });
  switch (answer.kind) {
    case 'written':
    case 'superseded':
      return answer.verdict.final ? { kind: answer.kind } : { kind: 'provisional', dueInS: answer.verdict.dueInS };
    case 'equal':
      return afterTie(run, hintOfTie(answer.clock, hint.kind === 'observe' ? hint : undefined));
    case 'expired':
      return () => afterExpiry(run);
    case 'blocked':
      return () => blocked(parts, run, ids());
    case 'fault':
      return () => afterFault(parts, run, answer.fault, ids());
  }
}

/** While no circuit is open, as is usual, the ids are not made. At its last receive a record is always tried: no letter without an attempt. */
function mayTry({ circuits }: FinishParts, { turns, hand }: Run, idsOf: () => readonly CircuitId[]): boolean {
  return circuits.isQuiet || hand.isLastReceive || circuits.mayTry(idsOf(), turns, hand.message.receiveCount === 1);
}

/** Nothing was sent, so the turns go to another record. */
function blocked(parts: FinishParts, run: Run, ids: readonly CircuitId[]): Promise<Outcome | undefined> {
  parts.circuits.notTried(run.turns);
  return waitFor(parts, run, ids);
}

function afterTie(run: Run, hint: ObserveHint): FollowUp {
  run.tie = hint;
  return decideAgain;
}

async function afterExpiry({ record: { bucket }, hand }: Run): Promise<Outcome | undefined> {
  return hand.holdLeftMs() > 0 ? undefined : { kind: 'deferred', fault: ANSWERS_EXPIRED, delayS: 0, bucket };
}

/** What the fault means for the record: observe by LIST, wait for a circuit, try again soon, be deferred alone, or be rejected. */
async function afterFault(parts: FinishParts, run: Run, fault: Fault, ids: readonly CircuitId[]): Promise<Outcome | undefined> {
  const { buckets, circuits, waiting } = parts;
  const { record, hand } = run;
  run.failures += 1;
  const level = circuitOf(fault.code);
  if (level === 'never') return { kind: 'rejected', fault, bucket: record.bucket };
  if (shouldList(parts, run, fault, ids)) {
    run.byListing = true;
    return undefined;
  }
  if (fault.code === 'bucket.missing') buckets.readRegionAgain(record.bucket);
  if (circuits.openOf(ids) !== undefined) return waitFor(parts, run, ids);
  // an index that answered others in the meantime refuses this record alone
  const isStores = level === 'cluster' || level === 'index';
  if (isStores && run.failures < ATTEMPTS_MAX) return tryAgainSoon(parts, run, fault);
  return waiting.failedAlone(record, fault, hand);
}

function shouldList({ circuits }: FinishParts, { byListing, hand }: Run, { code }: Fault, ids: readonly CircuitId[]): boolean {
  const isServers = code === 's3.unavailable' || code === 's3.throttled';
  return isServers && !byListing && hand.message.receiveCount >= LIST_FROM_RECEIVE && circuits.openOf(ids) === undefined;
}

async function tryAgainSoon({ clock }: FinishParts, { record: { bucket }, hand }: Run, fault: Fault): Promise<Outcome | undefined> {
  if (hand.holdLeftMs() <= 0) return { kind: 'deferred', fault, delayS: deferDelayS(hand.message.receiveCount), bucket };
  hand.turnSlow();
  // with jitter: a record whose write fails its whole request must not share it with the same others each time
  await clock.sleep(RETRY_MS * (0.5 + Math.random()), hand.signal);
  return undefined;
}

async function waitFor({ waiting }: FinishParts, run: Run, ids: readonly CircuitId[]): Promise<Outcome | undefined> {
  const outcome = await waiting.hideOrHandOver(run.record, ids, run.hand);
  run.failures = 0;
  return outcome;
}

/** Waits for the store or S3 with the message in the held set. */
function turningSlow<Result>(hand: InHand, work: Promise<Result>): Promise<Result> {
  hand.turnSlow();
  return work;
}
