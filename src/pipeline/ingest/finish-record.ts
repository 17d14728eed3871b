/**
 * One record to its one outcome:
 *
 *   bucket record ─► hint ─► exact: write │ resolve, observe: look, then write │ gap: store it │ ignored
 *        ▲                        │
 *        └── expired, tie, fault waited out: decided anew
 */
import { tellsExpirations, type BucketRecord } from '../../domain/bucket.ts';
import { ANSWER_LIFE_MS } from '../../domain/ordering/constants.ts';
import { documentOf, type ObjectState } from '../../domain/documents/document.ts';
import type { Fault } from '../../domain/fault.ts';
import { faultOf } from '../../domain/fault.ts';
import type { ExactHint, ObserveHint, ResolveHint } from '../../domain/ordering/hint.ts';
import { hintOf, hintOfTie, sourceOf } from '../../domain/ordering/hint.ts';
import type { Outcome } from '../../domain/messages/outcome.ts';
import type { ChangeRecord } from '../../domain/events/record.ts';
import type { BucketAccess } from '../buckets/access.ts';
import type { BulkWriter } from '../looks/bulk-writer.ts';
import type { Enricher } from '../looks/enricher.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { InHand } from './in-hand.ts';
import type { LastEvents } from '../buckets/last-events.ts';
import type { LookAnswer, Observe } from '../looks/observer.ts';
import type { BucketPart, Parking } from './parking.ts';
import type { Clock } from '../ports/clock.ts';
import type { ToldKeys } from '../gaps/told-keys.ts';
import type { WaitOut } from './wait-out.ts';

export type FinishRecord = (record: ChangeRecord, hand: InHand) => Promise<Outcome>;

interface FinishDependencies {
  readonly buckets: BucketAccess;
  readonly writer: BulkWriter;
  readonly observe: Observe;
  readonly enricher: Pick<Enricher, 'ofEvent'>;
  readonly gaps: GapReports;
  readonly toldKeys: ToldKeys;
  readonly parking: Pick<Parking, 'parkedBy' | 'worked'>;
  readonly lastEvents: Pick<LastEvents, 'seen'>;
  readonly waitOut: WaitOut;
  readonly clock: Clock;
}

/** What a record is decided by, and the message that waits for it. */
interface Place {
  readonly bucket: BucketRecord;
  readonly hand: InHand;
}

/** What one attempt came to: an outcome, or what must be decided anew. */
type Step =
  | { readonly kind: 'ended'; readonly outcome: Outcome }
  | { readonly kind: 'expired' }
  | { readonly kind: 'tie'; readonly hint: ObserveHint }
  | { readonly kind: 'fault'; readonly fault: Fault; readonly bucket?: BucketRecord };

const EXPIRED: Fault = { code: 'index.overloaded', reason: 'the store was so slow that answers expired again and again' };

const LOOK_NEEDS: readonly BucketPart[] = ['index', 'storage'];

/** Creates the step from record to outcome. It rejects only with the stop's reason. */
export function createFinishRecord(dependencies: FinishDependencies): FinishRecord {
  const { buckets, writer, observe, enricher, gaps, toldKeys, parking, lastEvents, waitOut, clock } = dependencies;

  return async function finishRecord(record, hand) {
    let tie: ObserveHint | undefined;
    for (;;) {
      const step = await attempt(record, hand, tie);
      switch (step.kind) {
        case 'ended':
          return step.outcome;
        case 'tie':
          tie = step.hint;
          break;
        case 'expired':
          hand.signal.throwIfAborted();
          if (hand.holdLeftMs() <= 0) return { kind: 'deferred', fault: EXPIRED, bucket: record.bucket };
          break;
        case 'fault': {
          const at = { bucket: record.bucket, ...(step.bucket !== undefined && { region: step.bucket.region }) };
          const outcome = await waitOut(step.fault, hand, at);
          if (outcome !== undefined) return outcome;
        }
      }
    }
  };

  async function attempt(record: ChangeRecord, hand: InHand, tie: ObserveHint | undefined): Promise<Step> {
    // known by its name alone; such a record may name no bucket at all
    if (record.change.kind === 'ignored') return { kind: 'ended', outcome: { kind: 'ignored', reason: record.change.reason } };
    try {
      const bucket = buckets.peek(record) ?? (await slowly(hand, buckets.lookup(record)));
      if (bucket === undefined) return endUnconnected(record.bucket);
      lastEvents.seen(record.bucket);
      noteToldKey(record);
      const hint = tie ?? hintOf(record, bucket, { sentAtMs: hand.message.sentAtMs, nowMs: clock.nowMs() });
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

  /** A bucket that was disconnected while it was parked is out of order no longer. */
  function endUnconnected(bucket: string): Step {
    for (const part of LOOK_NEEDS) parking.worked(bucket, part);
    return { kind: 'ended', outcome: { kind: 'unconnected' } };
  }

  async function writeExact(record: ChangeRecord, hint: ExactHint, at: Place): Promise<Step> {
    const parked = parking.parkedBy(record.bucket, 'index');
    if (parked !== undefined) return { kind: 'fault', fault: parked };
    // counted from the decision: enrichment is part of its life
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
    const answer = await writer.write({ document, equalClock: 'refuse', expiresAtMs, traces: at.hand.traces });
    switch (answer.kind) {
      case 'written':
      case 'stale':
        parking.worked(record.bucket, 'index');
        if (document.expires_at !== undefined && !tellsExpirations(at.bucket.source)) await reportLifecycle(record.bucket);
        return { kind: 'ended', outcome: answer };
      case 'tie':
        return { kind: 'tie', hint: hintOfTie(hint.clock) };
      case 'expired':
      case 'fault':
        return answer;
    }
  }

  /** What waits for S3 goes on in the held set. A tombstone has nothing to add. */
  async function enriched(record: ChangeRecord, state: ObjectState, at: Place & { readonly expiresAtMs: number }): Promise<ObjectState> {
    if (!state.present) return state;
    return slowly(
      at.hand,
      enricher.ofEvent({ bucket: { ...at.bucket, traces: at.hand.traces }, key: record.key, state, expiresAtMs: at.expiresAtMs }),
    );
  }

  async function lookAndWrite(record: ChangeRecord, hint: ResolveHint | ObserveHint, { bucket, hand: { traces } }: Place): Promise<Step> {
    const parked = parking.parkedBy(record.bucket, 'index') ?? parking.parkedBy(record.bucket, 'storage');
    if (parked !== undefined) return { kind: 'fault', fault: parked, bucket };
    const answer = await observe({ bucket, key: record.key, hint, cause: record, source: sourceOf(record.dialect), traces });
    switch (answer.kind) {
      case 'written':
      case 'stale':
        for (const part of LOOK_NEEDS) parking.worked(record.bucket, part);
        if (answer.objectExpires && !tellsExpirations(bucket.source)) await reportLifecycle(record.bucket);
        return { kind: 'ended', outcome: outcomeOfLook(answer) };
      case 'tie':
        return { kind: 'tie', hint: hintOfTie(answer.clock, hint.kind === 'observe' ? hint : undefined) };
      case 'expired':
        return answer;
      case 'fault':
        return { kind: 'fault', fault: answer.fault, bucket };
    }
  }

  function noteToldKey({ bucket, dialect, change, eventTimeMs }: ChangeRecord): void {
    const isDelete = change.kind === 'deleted' || change.kind === 'marker-created';
    if (isDelete && eventTimeMs !== undefined && sourceOf(dialect) === 'routed') toldKeys.single(bucket, eventTimeMs);
  }

  async function reportBulkDelete({ bucket, eventName }: ChangeRecord, seenAtMs: number): Promise<void> {
    const keysToldMs = toldKeys.bulk(bucket, seenAtMs);
    await gaps.report({ bucket, kind: 'bulk-delete', reason: eventName, seenAtMs, ...(keysToldMs !== undefined && { keysToldMs }) });
  }

  async function reportLifecycle(bucket: string): Promise<void> {
    const sighting = { bucket, kind: 'lifecycle', reason: 'x-amz-expiration seen on a HEAD', seenAtMs: clock.nowMs() } as const;
    await gaps.report({ ...sighting, standing: true });
  }
}

/** Work that waits for the store or S3 goes on in the held set. */
function slowly<Result>(hand: InHand, work: Promise<Result>): Promise<Result> {
  hand.turnSlow();
  return work;
}

function outcomeOfLook(answer: Extract<LookAnswer, { readonly verdict: unknown }>): Outcome {
  return answer.verdict.final ? { kind: answer.kind } : { kind: 'provisional', dueInS: answer.verdict.dueInS };
}
