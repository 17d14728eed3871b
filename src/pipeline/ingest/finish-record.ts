/**
 * Brings one record to its one outcome:
 *
 *   circuits ─► bucket record ─► hint ─► exact: write │ resolve, observe: look, then write │ gap: store it │ ignored
 *        ▲
 *        └── decided again after a wait for a circuit, an expired answer, a tie, or a fault that is over
 *
 * What waits for a circuit holds no answer and no decision: it begins again with a fresh bucket record, and a HEAD that is
 * sent after every hint that it serves was received (ordering rules 9 and 11).
 */
import { reportsExpirations, type BucketRecord } from '../../domain/bucket.ts';
import { ANSWER_LIFE_MS } from '../../domain/ordering/constants.ts';
import { documentOf, type ObjectState } from '../../domain/documents/document.ts';
import { circuitOf, faultOf, type Fault } from '../../domain/fault.ts';
import type { ExactHint, ObserveHint, ResolveHint } from '../../domain/ordering/hint.ts';
import { hintOf, hintOfTie, sourceOf } from '../../domain/ordering/hint.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import { deferDelayS } from '../../domain/messages/settlement.ts';
import type { ChangeRecord } from '../../domain/events/record.ts';
import type { BucketAccess } from '../buckets/access.ts';
import type { WriteDocument } from '../looks/bulk-writer.ts';
import type { Enricher } from '../looks/enricher.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { InHand } from './held-set.ts';
import type { LastEvents } from '../buckets/last-events.ts';
import type { LookAnswer, Observe } from '../looks/observer.ts';
import { indexCircuits, lookCircuits, type CircuitId, type Circuits, type Place } from '../serving/circuits.ts';
import type { Clock } from '../ports/clock.ts';
import type { ReportedKeys } from '../gaps/reported-keys.ts';
import type { Waiting } from './waiting.ts';

export type FinishRecord = (record: ChangeRecord, hand: InHand) => Promise<Outcome>;

interface FinishDependencies {
  readonly buckets: BucketAccess;
  readonly write: WriteDocument;
  readonly observe: Observe;
  readonly enricher: Pick<Enricher, 'ofEvent'>;
  readonly gaps: GapReports;
  readonly reportedKeys: ReportedKeys;
  readonly circuits: Circuits;
  readonly lastEvents: Pick<LastEvents, 'seen'>;
  readonly waiting: Waiting;
  readonly clock: Clock;
}

/** One record on its way, and what its attempts have shown so far. */
interface Run {
  readonly record: ChangeRecord;
  readonly hand: InHand;
  /** The places in open circuits that the present attempt has. */
  places: Place[];
  tie: ObserveHint | undefined;
  /** Whether no attempt for this record has failed yet: such a record is the better trial. */
  isNewKey: boolean;
}

/** The bucket record by which a change record is decided, and the message that waits for it. */
interface Context {
  readonly bucket: BucketRecord;
  readonly hand: InHand;
}

/** The result of one attempt: an outcome, or the reason to decide again. `ids`: the circuits that the attempt needs. */
type Attempt =
  | { readonly kind: 'ended'; readonly outcome: Outcome }
  | { readonly kind: 'expired' }
  | { readonly kind: 'tie'; readonly hint: ObserveHint }
  | { readonly kind: 'blocked'; readonly ids: readonly CircuitId[] }
  | { readonly kind: 'fault'; readonly fault: Fault; readonly ids: readonly CircuitId[] };

const EXPIRED: Fault = { code: 'index.overloaded', reason: 'the store was so slow that answers expired before they could be written' };

/** A failure that has not opened its circuit yet may be chance: the record tries again soon, and the third failure opens the circuit. */
const RETRY_MS = 500;

/** Creates the function. It rejects only with the reason of the stop. */
export function createFinishRecord(dependencies: FinishDependencies): FinishRecord {
  const { buckets, write, observe, enricher, gaps, reportedKeys, circuits, lastEvents, waiting, clock } = dependencies;

  return async function finishRecord(record, hand) {
    // the event name alone decides, and such a record may not name a bucket
    if (record.change.kind === 'ignored') return { kind: 'ignored', reason: record.change.reason };
    const run: Run = { record, hand, places: [], tie: undefined, isNewKey: true };
    for (;;) {
      const result = await attempt(run).finally(() => leavePlaces(run));
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
      case 'blocked':
        return waitFor(run, result.ids);
      case 'fault':
        return afterFault(run, result);
    }
  }

  async function waitFor(run: Run, ids: readonly CircuitId[]): Promise<Outcome | undefined> {
    const next = await waiting.waitOrFold({ record: run.record, attempt: { ids, isNewKey: run.isNewKey } }, run.hand);
    if ('kind' in next) return next;
    run.places = [next];
    return undefined;
  }

  async function afterFault(run: Run, { fault, ids }: Extract<Attempt, { kind: 'fault' }>): Promise<Outcome | undefined> {
    const { record, hand } = run;
    run.isNewKey = false;
    if (fault.code === 'bucket.missing') buckets.readRegionAgain(record.bucket);
    if (fault.code === 'index.rejected') {
      // an index that accepts nothing may be set up wrong, which is not the fault of this document
      if (circuits.hasAccepted(record.bucket)) return { kind: 'rejected', fault, bucket: record.bucket };
      circuits.indexFailed(record.bucket, fault, { sentAtMs: clock.monotonicMs() });
    }
    if (circuits.openOf(ids) === undefined && fault.code === 'index.overloaded') circuits.clusterFailed(fault, { isLasting: true });
    if (circuits.openOf(ids) !== undefined) return waitFor(run, ids);
    switch (circuitOf(fault.code)) {
      case 'cluster':
      case 'index':
        break;
      case 'never':
        if (fault.code !== 'index.rejected') return { kind: 'rejected', fault, bucket: record.bucket };
        break;
      case 'endpoint':
      case 'bucket':
      case 'queue':
      case 'object':
        return waiting.alone({ record, attempt: { ids, isNewKey: false } }, { fault, delayS: deferDelayS(hand.message.receiveCount) }, hand);
    }
    if (hand.holdLeftMs() <= 0) return { kind: 'deferred', fault, delayS: deferDelayS(hand.message.receiveCount), bucket: record.bucket };
    hand.turnSlow();
    await clock.sleep(RETRY_MS, hand.signal);
    return undefined;
  }

  /** Takes the places that the attempt needs in circuits that are open. Returns whether it may go on. */
  function mayGoOn(run: Run, ids: () => readonly CircuitId[]): boolean {
    if (circuits.isQuiet) return true;
    const held = new Set(run.places.flatMap((place) => place.ids));
    const place = circuits.take({ ids: ids().filter((id) => !held.has(id)), isNewKey: run.isNewKey });
    if (place === undefined) return false;
    run.places.push(place);
    return true;
  }

  function leavePlaces(run: Run): void {
    for (const place of run.places.splice(0)) place.leave();
  }

  async function attempt(run: Run): Promise<Attempt> {
    const { record, hand } = run;
    const sentAtMs = clock.monotonicMs();
    const ids = (): readonly CircuitId[] => indexCircuits(record.bucket);
    if (!mayGoOn(run, ids)) return { kind: 'blocked', ids: ids() };
    try {
      const bucket = buckets.peek(record) ?? (await slowly(hand, buckets.lookup(record)));
      if (bucket === undefined) return { kind: 'ended', outcome: { kind: 'unconnected' } };
      lastEvents.seen(record.bucket);
      noteSingleDelete(record);
      const hint = run.tie ?? hintOf(record, bucket, { sentAtMs: hand.message.sentAtMs, nowMs: clock.nowMs() });
      switch (hint.kind) {
        case 'exact':
          return await writeExact(record, hint, { bucket, hand });
        case 'resolve':
        case 'observe':
          hand.turnSlow();
          if (!mayGoOn(run, () => lookCircuits(bucket))) return { kind: 'blocked', ids: lookCircuits(bucket) };
          return await lookAndWrite(record, hint, { bucket, hand });
        case 'gap':
          await slowly(hand, reportBulkDelete(record, hint.seenAtMs));
          return { kind: 'ended', outcome: { kind: 'gap' } };
        case 'ignored':
          return { kind: 'ended', outcome: hint };
      }
    } catch (error) {
      hand.signal.throwIfAborted();
      const fault = faultOf(error);
      noteStoreFault(record.bucket, fault, sentAtMs);
      return { kind: 'fault', fault, ids: ids() };
    }
  }

  /** The faults of reads and of gaps: those of writes and looks are reported where they are sent. */
  function noteStoreFault(bucket: string, fault: Fault, sentAtMs: number): void {
    const level = circuitOf(fault.code);
    if (level === 'cluster') circuits.clusterFailed(fault);
    if (level === 'index') circuits.indexFailed(bucket, fault, { sentAtMs, isWhole: true });
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

  async function lookAndWrite(record: ChangeRecord, hint: ResolveHint | ObserveHint, { bucket, hand }: Context): Promise<Attempt> {
    const { traces } = hand;
    const answer = await observe({ bucket, key: record.key, hint, cause: record, source: sourceOf(record.dialect), traces });
    switch (answer.kind) {
      case 'written':
      case 'superseded':
        if (answer.objectExpires && !reportsExpirations(bucket.source)) await reportLifecycle(record.bucket);
        return { kind: 'ended', outcome: outcomeOfLook(answer) };
      case 'tie':
        return { kind: 'tie', hint: hintOfTie(answer.clock, hint.kind === 'observe' ? hint : undefined) };
      case 'expired':
        return answer;
      case 'fault':
        return { ...answer, ids: lookCircuits(bucket) };
    }
  }

  function noteSingleDelete({ bucket, dialect, change, eventTimeMs }: ChangeRecord): void {
    const isDelete = change.kind === 'deleted' || change.kind === 'marker-created';
    if (isDelete && eventTimeMs !== undefined && sourceOf(dialect) === 'routed') reportedKeys.single(bucket, eventTimeMs);
  }

  async function reportBulkDelete({ bucket, eventName }: ChangeRecord, seenAtMs: number): Promise<void> {
    const keysToldMs = reportedKeys.bulk(bucket, seenAtMs);
    await gaps.report({ bucket, kind: 'bulk-delete', reason: eventName, seenAtMs, ...(keysToldMs !== undefined && { keysToldMs }) });
  }

  async function reportLifecycle(bucket: string): Promise<void> {
    const reason = 'S3 answered a HEAD with an expiration date (x-amz-expiration)';
    await gaps.report({ bucket, kind: 'lifecycle', reason, seenAtMs: clock.nowMs(), standing: true });
  }
}

/** Waits for the store or S3 with the message in the held set. */
function slowly<Result>(hand: InHand, work: Promise<Result>): Promise<Result> {
  hand.turnSlow();
  return work;
}

function outcomeOfLook(answer: Extract<LookAnswer, { readonly verdict: unknown }>): Outcome {
  return answer.verdict.final ? { kind: answer.kind } : { kind: 'provisional', dueInS: answer.verdict.dueInS };
}
