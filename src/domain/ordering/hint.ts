/**
 * Hints: what a record means to us. The ordering rules 3, 4 and 10 as one pure decision.
 *
 *   exact    the record states the result: written as it is, at its sequencer's clock
 *   resolve  it does not, but its sequencer orders it: HEAD, written at the sequencer's clock
 *   observe  it only says that the key changed around a time: HEAD, written provisionally, then settled
 *   gap      it says that something changed that nobody names
 *   ignored  it changes nothing that the index holds
 */
import type { BucketRecord } from '../bucket.ts';
import { clockOfMs, msOfClock, sequencerClock } from './clock.ts';
import { EXACT_AGE_MAX_MS, FUTURE_MS, PLAUSIBLE_MS, VERSIONING_READ_AFTER_MS } from './constants.ts';
import type { DocumentSource, ObjectState } from '../documents/document.ts';
import type { Dialect, ChangeRecord } from '../events/record.ts';

export interface ExactHint {
  readonly kind: 'exact';
  readonly clock: number;
  readonly state: ObjectState;
}

export interface ResolveHint {
  readonly kind: 'resolve';
  readonly clock: number;
}

export interface ObserveHint {
  readonly kind: 'observe';
  /** T as a clock: what a provisional write is written at. */
  readonly clock: number;
  /** T of the settle condition, in ms: an observation is settled when D − M ≥ this + S. */
  readonly settleFromMs: number;
}

export type Hint =
  | ExactHint
  | ResolveHint
  | ObserveHint
  | { readonly kind: 'gap'; readonly seenAtMs: number }
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'unknown-event' | 'no-tags' };

/** What the message says of time. */
export interface MessageTimes {
  /** SentTimestamp, by SQS's clock. */
  readonly sentAtMs: number;
  /** Wall clock of this machine: only ever makes a decision more careful. */
  readonly nowMs: number;
}

/** What a hint needs of the bucket's record. */
export type BucketFacts = Pick<BucketRecord, 'floor' | 'versioning' | 'enrich'>;

/** Decides what a record means. Total: every record has a hint. */
export function hintOf(record: ChangeRecord, bucket: BucketFacts, times: MessageTimes): Hint {
  const { change } = record;
  switch (change.kind) {
    case 'ignored':
      return { kind: 'ignored', reason: change.reason };
    case 'bulk-deleted':
      return { kind: 'gap', seenAtMs: Math.min(record.eventTimeMs ?? times.sentAtMs, times.sentAtMs + FUTURE_MS) };
    case 'tagged':
      return bucket.enrich === 'tags' ? observed(record, times) : { kind: 'ignored', reason: 'no-tags' };
    case 'multipart-completed':
    case 'lifecycle-expired':
    case 'lost':
      return observed(record, times);
    case 'storage-changed':
    case 'created':
    case 'marker-created':
    case 'deleted':
      return ordered(record, bucket, times);
  }
}

/** Records whose sequencer, where there is a believable one, orders them. */
function ordered(record: ChangeRecord, bucket: BucketFacts, times: MessageTimes): Hint {
  const clock = plausibleClock(record, times);
  if (clock === undefined || record.keyUncertain) return observed(record, times);
  const state = isCurrent(record, bucket, { ...times, clock }) ? statedResult(record, bucket) : undefined;
  return state === undefined ? { kind: 'resolve', clock } : { kind: 'exact', clock, state };
}

/** The sequencer's clock, if it lies within W of the event's time and neither is from the future (rules 3 and 10). */
function plausibleClock(record: ChangeRecord, times: MessageTimes): number | undefined {
  if (!statesResults(record.dialect) || record.sequencer === undefined || record.eventTimeMs === undefined) return undefined;
  const clock = sequencerClock(record.sequencer);
  if (clock === undefined || Math.abs(clock - clockOfMs(record.eventTimeMs)) > PLAUSIBLE_MS * 1_000) return undefined;
  const latest = clockOfMs(times.sentAtMs + FUTURE_MS);
  return clock > latest || clockOfMs(record.eventTimeMs) > latest ? undefined : clock;
}

/** Above the floor and younger than a day, by both clocks (rule 3). */
function isCurrent(record: ChangeRecord, bucket: BucketFacts, at: MessageTimes & { readonly clock: number }): boolean {
  const eventTimeMs = record.eventTimeMs ?? 0;
  return at.clock > bucket.floor && at.sentAtMs - eventTimeMs < EXACT_AGE_MAX_MS && at.nowMs - eventTimeMs < EXACT_AGE_MAX_MS;
}

/** The result that the record itself states, if it states one (rule 3). */
function statedResult(record: ChangeRecord, bucket: BucketFacts): ObjectState | undefined {
  switch (record.change.kind) {
    case 'created':
      return createdState(record);
    case 'marker-created':
      return { present: false };
    case 'deleted':
      return deleteIsFinal(record, bucket) ? { present: false } : undefined;
    case 'multipart-completed':
    case 'bulk-deleted':
    case 'lifecycle-expired':
    case 'storage-changed':
    case 'tagged':
    case 'lost':
    case 'ignored':
      return undefined;
  }
}

function createdState(record: ChangeRecord): ObjectState | undefined {
  // without these two it does not state the result
  if (record.etag === undefined || record.sizeBytes === undefined) return undefined;
  return {
    present: true,
    etag: record.etag,
    sizeBytes: record.sizeBytes,
    ...(record.versionId !== undefined && { versionId: record.versionId }),
    ...(record.eventTimeMs !== undefined && { lastModifiedMs: record.eventTimeMs, lastModifiedExact: false }),
  };
}

/** A delete without version id is the end of the key only where versioning was read as "never enabled" after it. */
function deleteIsFinal(record: ChangeRecord, bucket: BucketFacts): boolean {
  if (record.versionId !== undefined || bucket.versioning.status !== 'never') return false;
  return bucket.versioning.observedAtMs >= (record.eventTimeMs ?? Infinity) + VERSIONING_READ_AFTER_MS;
}

/** Rule 4's T and its settle condition; rule 10's T for events from the future. */
function observed(record: ChangeRecord, times: MessageTimes): ObserveHint {
  const stated = record.eventTimeMs;
  const timeMs = stated === undefined || stated > times.sentAtMs + FUTURE_MS ? times.sentAtMs : stated;
  const settleFromMs = settlesFromSending(record) ? Math.max(timeMs, times.sentAtMs) : timeMs;
  return { kind: 'observe', clock: clockOfMs(timeMs), settleFromMs };
}

/** Copies and multipart uploads end long after they began, and an implausible sequencer makes its event's time doubtful too. */
function settlesFromSending(record: ChangeRecord): boolean {
  if (record.change.kind === 'multipart-completed') return true;
  if (record.change.kind === 'created' && record.change.copied) return true;
  return statesResults(record.dialect);
}

function statesResults(dialect: Dialect): boolean {
  return dialect === 'native' || dialect === 'eventbridge';
}

/**
 * Rule 12: what an exact or resolve write becomes that met an equal clock with other content. An observe hint that shared
 * the write keeps its own settle condition.
 */
export function hintOfTie(clock: number, sharing?: ObserveHint): ObserveHint {
  const settleFromMs = msOfClock(clock);
  if (sharing === undefined) return { kind: 'observe', clock, settleFromMs };
  return { kind: 'observe', clock: Math.max(clock, sharing.clock), settleFromMs: Math.max(settleFromMs, sharing.settleFromMs) };
}

/** A document's source, by the dialect that led to it. */
export function sourceOf(dialect: Dialect): DocumentSource {
  switch (dialect) {
    case 'native':
      return 'native';
    case 'eventbridge':
      return 'eventbridge';
    case 'trail':
    case 'synthetic':
      return 'routed';
  }
}
