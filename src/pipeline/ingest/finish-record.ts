/**
 * Brings one record to its one outcome:
 *
 *   bucket record ─► hint ─► exact: write │ resolve, observe: look, then write │ gap: store it │ ignored
 *        ▲                        │
 *        └── decided again after an expired answer, a tie, or a fault that is over
 */
import { reportsExpirations, type BucketRecord } from '../../domain/bucket.ts';
import { ANSWER_LIFE_MS } from '../../domain/ordering/constants.ts';
import { documentOf, type ObjectState } from '../../domain/documents/document.ts';
import type { Fault } from '../../domain/fault.ts';
import { faultOf } from '../../domain/fault.ts';
import type { ExactHint, ObserveHint, ResolveHint } from '../../domain/ordering/hint.ts';
import { hintOf, hintOfTie, sourceOf } from '../../domain/ordering/hint.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import type { ChangeRecord } from '../../domain/events/record.ts';
import type { BucketAccess } from '../buckets/access.ts';
import type { WriteDocument } from '../looks/bulk-writer.ts';
import type { Enricher } from '../looks/enricher.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { InHand } from './held-set.ts';
import type { LastEvents } from '../buckets/last-events.ts';
import type { LookAnswer, Observe } from '../looks/observer.ts';
import type { BucketPart, Parking } from '../serving/parking.ts';
import type { Clock } from '../ports/clock.ts';
import type { ReportedKeys } from '../gaps/reported-keys.ts';
import type { WaitOut } from './wait-out.ts';

export type FinishRecord = (record: ChangeRecord, hand: InHand) => Promise<Outcome>;

interface FinishDependencies {
  readonly buckets: BucketAccess;
  readonly write: WriteDocument;
  readonly observe: Observe;
  readonly enricher: Pick<Enricher, 'ofEvent'>;
  readonly gaps: GapReports;
  readonly reportedKeys: ReportedKeys;
  readonly parking: Pick<Parking, 'parkedBy' | 'worked'>;
  readonly lastEvents: Pick<LastEvents, 'seen'>;
  readonly waitOut: WaitOut;
  readonly clock: Clock;
}

/** The bucket record by which a change record is decided, and the message that waits for it. */
interface Context {
  readonly bucket: BucketRecord;
  readonly hand: InHand;
}

/** The result of one attempt: an outcome, or the reason to decide again. */
type Attempt =
  | { readonly kind: 'ended'; readonly outcome: Outcome }
  | { readonly kind: 'expired' }
  | { readonly kind: 'tie'; readonly hint: ObserveHint }
  | { readonly kind: 'fault'; readonly fault: Fault; readonly bucket?: BucketRecord };

const EXPIRED: Fault = { code: 'index.overloaded', reason: 'the store was so slow that answers expired before they could be written' };

const LOOK_NEEDS: readonly BucketPart[] = ['index', 'storage'];

/** Creates the function. It rejects only with the reason of the stop. */
export function createFinishRecord(dependencies: FinishDependencies): FinishRecord {
  const { buckets, write, observe, enricher, gaps, reportedKeys, parking, lastEvents, waitOut, clock } = dependencies;

  return async function finishRecord(record, hand) {
    let tie: ObserveHint | undefined;
    for (;;) {
      const result = await attempt(record, hand, tie);
      switch (result.kind) {
        case 'ended':
          return result.outcome;
        case 'tie':
          tie = result.hint;
          break;
        case 'expired':
          hand.signal.throwIfAborted();
          if (hand.holdLeftMs() <= 0) return { kind: 'deferred', fault: EXPIRED, bucket: record.bucket };
          break;
        case 'fault': {
          const at = { bucket: record.bucket, ...(result.bucket !== undefined && { region: result.bucket.region }) };
          const outcome = await waitOut(result.fault, hand, at);
          if (outcome !== undefined) return outcome;
        }
      }
    }
  };

  async function attempt(record: ChangeRecord, hand: InHand, tie: ObserveHint | undefined): Promise<Attempt> {
    // the event name alone decides, and such a record may not name a bucket
    if (record.change.kind === 'ignored') return { kind: 'ended', outcome: { kind: 'ignored', reason: record.change.reason } };
    try {
      const { sentAtMs, queueUrl } = hand.message;
      const bucket = buckets.peek(record, sentAtMs) ?? (await slowly(hand, buckets.lookup(record, sentAtMs)));
      if (bucket === undefined) return endUnconnected(record.bucket);
      lastEvents.seen(record.bucket, queueUrl);
      noteSingleDelete(record);
      const hint = tie ?? hintOf(record, bucket, { sentAtMs, nowMs: clock.nowMs() });
      switch (hint.kind) {
        case 'exact':
          return await writeExact(record, hint, { bucket, hand });
        case 'resolve':
        case 'observe':
          hand.turnSlow();
          return await lookAndWrite(record, hint, { bucket, hand });
        case 'gap':
          await slowly(hand, reportBulkDelete(record, hint.seenAtMs));
          return { kind: 'ended', outcome: { kind: 'gap' } };
        case 'ignored':
          return { kind: 'ended', outcome: hint };
      }
    } catch (error) {
      hand.signal.throwIfAborted();
      return { kind: 'fault', fault: faultOf(error) };
    }
  }

  /** A bucket that was disconnected while it was parked is no longer parked. */
  function endUnconnected(bucket: string): Attempt {
    for (const part of LOOK_NEEDS) parking.worked(bucket, part);
    return { kind: 'ended', outcome: { kind: 'unconnected' } };
  }

  async function writeExact(record: ChangeRecord, hint: ExactHint, at: Context): Promise<Attempt> {
    const parked = parking.parkedBy(record.bucket, 'index');
    if (parked !== undefined) return { kind: 'fault', fault: parked };
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
        parking.worked(record.bucket, 'index');
        if (document.expires_at !== undefined && !reportsExpirations(at.bucket.source)) await reportLifecycle(record.bucket);
        return { kind: 'ended', outcome: answer };
      case 'tie':
        return { kind: 'tie', hint: hintOfTie(hint.clock) };
      case 'expired':
      case 'fault':
        return answer;
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
    const parked = parking.parkedBy(record.bucket, 'index') ?? parking.parkedBy(record.bucket, 'storage');
    if (parked !== undefined) return { kind: 'fault', fault: parked, bucket };
    const answer = await observe({ bucket, key: record.key, hint, cause: record, source: sourceOf(record.dialect), traces });
    switch (answer.kind) {
      case 'written':
      case 'superseded':
        for (const part of LOOK_NEEDS) parking.worked(record.bucket, part);
        if (answer.objectExpires && !reportsExpirations(bucket.source)) await reportLifecycle(record.bucket);
        return { kind: 'ended', outcome: outcomeOfLook(answer) };
      case 'tie':
        return { kind: 'tie', hint: hintOfTie(answer.clock, hint.kind === 'observe' ? hint : undefined) };
      case 'expired':
        return answer;
      case 'fault':
        return { kind: 'fault', fault: answer.fault, bucket };
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
