/**
 * One attempt to serve a record:
 *
 *   circuits ─► bucket record ─► hint ─► exact: write │ resolve, observe: look, then write │ gap: store it │ ignored
 */
import { reportsExpirations, type BucketRecord } from '../../domain/bucket.ts';
import { ANSWER_LIFE_MS } from '../../domain/ordering/constants.ts';
import { documentOf, type ObjectState } from '../../domain/documents/document.ts';
import { circuitOf, faultOf, type Fault } from '../../domain/fault.ts';
import { hintOf, hintOfTie, sourceOf, type ExactHint, type ObserveHint, type ResolveHint } from '../../domain/ordering/hint.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import { reportsDeletion, type ChangeRecord } from '../../domain/events/record.ts';
import type { Arrival, BucketAccess } from '../buckets/access.ts';
import type { LastEvents } from '../buckets/last-events.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { ReportedKeys } from '../gaps/reported-keys.ts';
import type { WriteDocument } from '../looks/bulk-writer.ts';
import type { Enricher } from '../looks/enricher.ts';
import type { LookAnswer, LookRequest, Observe } from '../looks/observer.ts';
import type { Clock } from '../ports/clock.ts';
import { indexCircuits, lookCircuits, type Circuits } from '../serving/circuits.ts';
import type { CircuitId } from '../serving/waiting-line.ts';
import type { InHand } from './held-set.ts';
import type { Waiting } from './waiting.ts';

export interface AttemptDependencies {
  readonly buckets: BucketAccess;
  readonly waiting: Pick<Waiting, 'enter'>;
  readonly write: WriteDocument;
  readonly observe: Observe;
  readonly enricher: Pick<Enricher, 'ofEvent'>;
  readonly gaps: GapReports;
  readonly reportedKeys: ReportedKeys;
  readonly circuits: Circuits;
  readonly lastEvents: Pick<LastEvents, 'seen'>;
  readonly clock: Clock;
}

/** What an attempt begins with. */
export interface AttemptStart {
  readonly hand: InHand;
  /** The tie that an earlier attempt met. */
  readonly tie: ObserveHint | undefined;
  /** Whether a look asks by LIST, because HEAD keeps failing for this object. */
  readonly byListing: boolean;
}

/** Makes one attempt. Rejects only with the reason of the stop. */
export type AttemptRecord<Start extends AttemptStart> = (record: ChangeRecord, start: Start) => Promise<Attempt>;

/** The bucket record by which a change record is decided, and the message that waits for it. */
interface Context {
  readonly bucket: BucketRecord;
  readonly hand: InHand;
}

/**
 * The result of one attempt: an outcome, or the reason to decide again. `ids`: the circuits that the attempt needs. `atItsTurn`: the
 * circuit opened while the look waited for its turn.
 */
export type Attempt =
  | { readonly kind: 'ended'; readonly outcome: Outcome }
  /** The bucket is not connected, and cannot be connected now. */
  | { readonly kind: 'unconnectable'; readonly fault: Fault }
  | { readonly kind: 'expired' }
  | { readonly kind: 'tie'; readonly hint: ObserveHint }
  | { readonly kind: 'blocked'; readonly ids: readonly CircuitId[]; readonly atItsTurn?: boolean }
  | { readonly kind: 'fault'; readonly fault: Fault; readonly ids: readonly CircuitId[] };

/** Creates the function. `takePlaces` takes the places that an attempt needs in open circuits, and returns whether it may continue. */
export function createAttemptRecord<Start extends AttemptStart>(
  dependencies: AttemptDependencies,
  takePlaces: (start: Start, ids: readonly CircuitId[]) => boolean,
): AttemptRecord<Start> {
  const { buckets, waiting, write, observe, enricher, circuits, lastEvents, clock } = dependencies;
  const { noteStoreFault, noteSingleDelete, reportBulkDelete, reportLifecycle } = createNotes(dependencies);
  const mayLook = (start: Start, bucket: BucketRecord): boolean => circuits.isQuiet || takePlaces(start, lookCircuits(bucket));

  return async function attemptRecord(record, start) {
    const { hand } = start;
    // usually no circuit is open, and then the ids need not be made
    if (!circuits.isQuiet && !takePlaces(start, indexCircuits(record.bucket)))
      return { kind: 'blocked', ids: indexCircuits(record.bucket) };
    // read after the attempt took its place, so that its failure counts for its own trial and for no earlier one
    const sentAtMs = clock.monotonicMs();
    try {
      // usually its record is cached
      const known = buckets.peek(record, hand.message.sentAtMs);
      if (known !== undefined) return await decide(record, start, known);
      const found = await slowly(hand, buckets.lookup(record, arrivalOf(record, hand)));
      switch (found.kind) {
        case 'connected':
          return await decide(record, start, found.bucket);
        case 'unconnectable':
          return found;
        case 'unconnected':
          buckets.countUnconnected(record.bucket, hand.message.sentAtMs);
          return { kind: 'ended', outcome: found };
      }
    } catch (error) {
      hand.signal.throwIfAborted();
      const fault = faultOf(error);
      noteStoreFault(record.bucket, fault, sentAtMs);
      return { kind: 'fault', fault, ids: indexCircuits(record.bucket) };
    }
  };

  /** The attempt at a record of a bucket that is connected. */
  async function decide(record: ChangeRecord, start: Start, bucket: BucketRecord): Promise<Attempt> {
    const { hand, tie, byListing } = start;
    const { sentAtMs } = hand.message;
    lastEvents.seen(record, hand.message);
    noteSingleDelete(record);
    const hint = tie ?? hintOf(record, bucket, { sentAtMs, nowMs: clock.nowMs() });
    switch (hint.kind) {
      case 'exact':
        return writeExact(record, hint, { bucket, hand });
      case 'resolve':
      case 'observe':
        hand.turnSlow();
        if (!mayLook(start, bucket)) return { kind: 'blocked', ids: lookCircuits(bucket) };
        // asked again when the look's turn has come, because a circuit may open while it waits
        return lookAndWrite(record, hint, { bucket, hand, byListing, mayBegin: () => mayLook(start, bucket) });
      case 'gap':
        await slowly(hand, reportBulkDelete(record, hint.seenAtMs));
        return { kind: 'ended', outcome: { kind: 'gap' } };
      case 'ignored':
        return { kind: 'ended', outcome: hint };
    }
  }

  function arrivalOf({ bucket }: ChangeRecord, hand: InHand): Arrival {
    const { sentAtMs, receivedAtMonotonicMs } = hand.message;
    return { sentAtMs, receivedAtMonotonicMs, signal: hand.signal, enter: () => waiting.enter(bucket, hand) };
  }

  async function writeExact(record: ChangeRecord, hint: ExactHint, at: Context): Promise<Attempt> {
    // the life begins with the decision, so enrichment is part of it
    const expiresAtMs = clock.monotonicMs() + ANSWER_LIFE_MS;
    const state = at.bucket.enrich === 'none' ? hint.state : await enriched(record, hint.state, { ...at, expiresAtMs });
    const document = documentOf({
      bucket: record.bucket,
      key: record.key,
      state,
      clock: hint.clock,
      settled: true,
      source: sourceOf(record.dialect),
      cause: record,
      stateAtMs: record.eventTimeMs ?? clock.nowMs(),
      nowMs: clock.nowMs(),
    });
    const answer = await write({ document, equalClock: 'refuse', expiresAtMs, traces: at.hand.traces });
    switch (answer.kind) {
      case 'written':
      case 'superseded':
        if (document.expires_at !== undefined && !reportsExpirations(at.bucket.source)) await reportLifecycle(record.bucket);
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
  async function enriched(record: ChangeRecord, state: ObjectState, at: Context & { readonly expiresAtMs: number }): Promise<ObjectState> {
    if (!state.present) return state;
    return slowly(
      at.hand,
      enricher.ofEvent({ bucket: { ...at.bucket, traces: at.hand.traces }, key: record.key, state, expiresAtMs: at.expiresAtMs }),
    );
  }

  async function lookAndWrite(
    record: ChangeRecord,
    hint: ResolveHint | ObserveHint,
    at: Context & Required<Pick<LookRequest, 'byListing' | 'mayBegin'>>,
  ): Promise<Attempt> {
    const { bucket, hand, byListing, mayBegin } = at;
    const facts = {
      bucket,
      key: record.key,
      hint,
      cause: record,
      source: sourceOf(record.dialect),
      reportsDeletion: reportsDeletion(record.change),
    };
    const answer = await observe({ ...facts, byListing, mayBegin, traces: hand.traces });
    switch (answer.kind) {
      case 'written':
      case 'superseded':
        if (answer.objectExpires && !reportsExpirations(bucket.source)) await reportLifecycle(record.bucket);
        return { kind: 'ended', outcome: outcomeOfLook(answer) };
      case 'tie':
        return { kind: 'tie', hint: hintOfTie(answer.clock, hint.kind === 'observe' ? hint : undefined) };
      case 'expired':
        return answer;
      case 'blocked':
        return { ...answer, ids: lookCircuits(bucket), atItsTurn: true };
      case 'fault':
        return { ...answer, ids: lookCircuits(bucket) };
    }
  }
}

/** Creates what an attempt tells the circuits and the gaps beside its outcome. */
function createNotes({ circuits, gaps, reportedKeys, clock }: Pick<AttemptDependencies, 'circuits' | 'gaps' | 'reportedKeys' | 'clock'>) {
  /** The faults of reads and of gaps. Those of writes and looks are reported where they are sent. */
  function noteStoreFault(bucket: string, fault: Fault, sentAtMs: number): void {
    const level = circuitOf(fault.code);
    if (level === 'cluster') circuits.clusterFailed(fault);
    if (level === 'index') circuits.indexFailed(bucket, fault, { sentAtMs, isWhole: true });
  }

  function noteSingleDelete({ bucket, dialect, change, requestId }: ChangeRecord): void {
    const isDelete = change.kind === 'deleted' || change.kind === 'marker-created';
    if (isDelete && requestId !== undefined && sourceOf(dialect) === 'routed') reportedKeys.single(bucket, requestId);
  }

  async function reportBulkDelete({ bucket, eventName, requestId }: ChangeRecord, seenAtMs: number): Promise<void> {
    const call = requestId === undefined ? undefined : { bucket, requestId, eventTimeMs: seenAtMs };
    const isReported = call !== undefined && reportedKeys.bulk(call);
    const calls = [{ ...(requestId !== undefined && { requestId }), isReported }];
    await gaps.report({ bucket, kind: 'bulk-delete', reason: eventName, seenAtMs, calls });
    if (call !== undefined && !isReported) reportedKeys.bulkStored(call);
  }

  async function reportLifecycle(bucket: string): Promise<void> {
    const reason = 'S3 answered a HEAD with an expiration date (x-amz-expiration)';
    await gaps.report({ bucket, kind: 'lifecycle', reason, seenAtMs: clock.nowMs(), standing: true });
  }

  return { noteStoreFault, noteSingleDelete, reportBulkDelete, reportLifecycle };
}

/** Waits for the store or S3 with the message in the held set. */
function slowly<Result>(hand: InHand, work: Promise<Result>): Promise<Result> {
  hand.turnSlow();
  return work;
}

function outcomeOfLook(answer: Extract<LookAnswer, { readonly verdict: unknown }>): Outcome {
  return answer.verdict.final ? { kind: answer.kind } : { kind: 'provisional', dueInS: answer.verdict.dueInS };
}
