/**
 * Hints: what a record means for the index. This is ordering rules 3, 4 and 10 as one pure decision.
 *
 *   exact    the record states the result: written as it is, at its sequencer's clock
 *   resolve  the record does not state the result, but its sequencer orders it: HEAD, written at the sequencer's clock
 *   observe  the record only says that the key changed around a time: HEAD, written provisionally, then settled
 *   gap      the record says that objects changed, but not which
 *   ignored  the record changes nothing that the index holds
 */
import type { BucketRecord, BucketSource } from '../records/bucket.ts';
import { clockOfMs, msOfClock, type ObjectState } from './document.ts';
import { EXACT_AGE_MAX_MS, FUTURE_MS, PLAUSIBLE_MS, S3_AHEAD_MAX_MS, VERSIONING_READ_AFTER_MS } from './constants.ts';
import type { Outcome } from '../events/outcome.ts';
import { dialectFacts, isFormOf, type ChangeRecord } from '../events/record.ts';

export interface ExactHint {
  readonly kind: 'exact';
  readonly clock: number;
  readonly state: ObjectState;
}

export interface ResolveHint {
  readonly kind: 'resolve';
  readonly clock: number;
}

/** The change may have happened as late as the latest of clock, settleFromMs and futureMs: that is how old an event is, and not its own time. */
export interface ObserveHint {
  readonly kind: 'observe';
  /** T as a clock: provisional writes use it. */
  readonly clock: number;
  /** T of the settle condition, in ms: an observation is settled when D − M ≥ settleFromMs + S. */
  readonly settleFromMs: number;
  /** The event's own time, if it lies in the future by SQS's clock. It becomes T if the answer's D shows that S3's clock is that far (rule 10). */
  readonly futureMs?: number;
}

export type Hint =
  | ExactHint
  | ResolveHint
  | ObserveHint
  | { readonly kind: 'gap'; readonly seenAtMs: number }
  | Extract<Outcome, { readonly kind: 'ignored' }>;

/** The times of the message that contains the record. */
export interface MessageTimes {
  /** SentTimestamp, by SQS's clock. */
  readonly sentAtMs: number;
  /** This machine's wall clock. It can only make a decision more cautious. */
  readonly nowMs: number;
}

/** The fields of the bucket's record that decide a hint. */
export type BucketFacts = Pick<BucketRecord, 'source' | 'floor' | 'versioning' | 'enrich' | 's3AheadMs'>;

/** Decides a record's hint. Every record has one. */
export function hintOf(record: ChangeRecord, bucket: BucketFacts, times: MessageTimes): Hint {
  const { change } = record;
  switch (change.kind) {
    case 'ignored':
      return { kind: 'ignored', reason: change.reason };
    case 'bulk-deleted':
      return { kind: 'gap', seenAtMs: Math.min(record.eventTimeMs ?? times.sentAtMs, times.sentAtMs + FUTURE_MS) };
    case 'tagged':
      return bucket.enrich === 'tags' ? observed(record, bucket, times) : { kind: 'ignored', reason: 'no-tags' };
    case 'multipart-completed':
    case 'lifecycle-expired':
    case 'lost':
    case 'unknown':
      return observed(record, bucket, times);
    case 'storage-changed':
    case 'created':
    case 'marker-created':
    case 'deleted':
      return ordered(record, bucket, times);
  }
}

/** The hint of a record with a sequencer: exact or resolve if the sequencer is plausible, otherwise observe. */
function ordered(record: ChangeRecord, bucket: BucketFacts, times: MessageTimes): Hint {
  const clock = fitsSource(record, bucket.source) ? plausibleClock(record, times) : undefined;
  if (clock === undefined) return observed(record, bucket, times);
  const state = isCurrent(record, bucket, { ...times, clock }) ? statedResult(record, bucket) : undefined;
  return state === undefined ? { kind: 'resolve', clock } : { kind: 'exact', clock, state };
}

/** The sequencer's clock, if it lies within W of the event's time and neither lies in the future (rules 3 and 10). */
function plausibleClock(record: ChangeRecord, times: MessageTimes): number | undefined {
  if (record.sequencer === undefined || record.eventTimeMs === undefined) return undefined;
  const clock = sequencerClock(record.sequencer);
  if (clock === undefined || Math.abs(clock - clockOfMs(record.eventTimeMs)) > PLAUSIBLE_MS * 1_000) return undefined;
  const latest = clockOfMs(times.sentAtMs + FUTURE_MS);
  return clock > latest || clockOfMs(record.eventTimeMs) > latest ? undefined : clock;
}

const FRACTION_UNITS = 4_294_967_296; // 2^32: the fraction is binary

/**
 * The clock in a sequencer, or undefined if its format is unknown. Observed format: two hex digits (usually 00,
 * sometimes 80), eight of Unix seconds, eight of binary fraction; older sequencers lack the first two digits. Seconds and
 * fraction are read separately, because together they exceed 2^53.
 */
export function sequencerClock(sequencer: string): number | undefined {
  if (!/^([0-9A-Fa-f]{2})?[0-9A-Fa-f]{16}$/.test(sequencer)) return undefined;
  const seconds = Number.parseInt(sequencer.slice(-16, -8), 16);
  const fraction = Number.parseInt(sequencer.slice(-8), 16);
  // both steps are exact: fraction × 10^6 is below 2^53, and the division is by a power of two
  return seconds * 1_000_000 + Math.floor((fraction * 1_000_000) / FRACTION_UNITS);
}

/** Whether the record is above the floor and younger than A, by SQS's clock and by this machine's (rule 3). */
function isCurrent(record: ChangeRecord, bucket: BucketFacts, at: MessageTimes & { readonly clock: number }): boolean {
  const eventTimeMs = record.eventTimeMs ?? 0;
  return at.clock > bucket.floor && at.sentAtMs - eventTimeMs < EXACT_AGE_MAX_MS && at.nowMs - eventTimeMs < EXACT_AGE_MAX_MS;
}

/** The object's state, if the record states it (rule 3). */
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
    case 'unknown':
    case 'ignored':
      return undefined;
  }
}

function createdState(record: ChangeRecord): ObjectState | undefined {
  // without etag and size the record does not state the result
  if (record.etag === undefined || record.sizeBytes === undefined) return undefined;
  return {
    present: true,
    etag: record.etag,
    sizeBytes: record.sizeBytes,
    ...(record.versionId !== undefined && { versionId: record.versionId }),
    ...(record.eventTimeMs !== undefined && { lastModifiedMs: record.eventTimeMs, lastModifiedExact: false }),
  };
}

/** Whether the delete removed the key: it has no version id, and versioning was read as "never enabled" after it. */
function deleteIsFinal(record: ChangeRecord, bucket: BucketFacts): boolean {
  if (record.versionId !== undefined || bucket.versioning.status !== 'never') return false;
  return bucket.versioning.observedAtMs >= (record.eventTimeMs ?? Infinity) + VERSIONING_READ_AFTER_MS;
}

/**
 * The observe hint with rule 4's T and settle condition, and rule 10's T for events in the future. The time of sending is by SQS's
 * clock, and D is by S3's; if S3's clock is known to be ahead, that difference is added, within its bound: a slow process measures
 * hours, for which its messages would be hidden.
 */
function observed({ eventTimeMs, ...record }: ChangeRecord, { s3AheadMs = 0 }: BucketFacts, { sentAtMs }: MessageTimes): ObserveHint {
  const aheadMs = Math.min(S3_AHEAD_MAX_MS, Math.max(0, s3AheadMs));
  const isFuture = eventTimeMs !== undefined && eventTimeMs > sentAtMs + FUTURE_MS;
  const timeMs = isFuture ? sentAtMs : (eventTimeMs ?? sentAtMs);
  const isBySending = isFuture || eventTimeMs === undefined || settlesFromSending(record);
  const settleFromMs = isBySending ? Math.max(timeMs, sentAtMs + aheadMs) : timeMs;
  return { kind: 'observe', clock: clockOfMs(timeMs), settleFromMs, ...(isFuture && { futureMs: eventTimeMs }) };
}

/**
 * Whether the settle condition counts from the message's SentTimestamp if that is later than the event's time: copies and multipart
 * uploads may end long after they began. If a record has no believable sequencer although it should, its time is doubtful too.
 */
function settlesFromSending(record: Pick<ChangeRecord, 'change' | 'dialect'>): boolean {
  if (record.change.kind === 'multipart-completed' || record.change.kind === 'unknown') return true;
  if (record.change.kind === 'created' && record.change.copied) return true;
  return dialectFacts[record.dialect].hasSequencers;
}

/**
 * Whether the bucket's source sends S3's own events in this form (rule 3). Only such records are believed; otherwise anyone who may
 * publish to a topic that receives EventBridge or audit-trail events could forge a document.
 */
function fitsSource({ dialect, throughTopic }: ChangeRecord, source: BucketSource): boolean {
  return dialectFacts[dialect].hasSequencers && isFormOf(source, dialect) && throughTopic !== true;
}

/**
 * Rule 12: the hint after an exact or resolve write met other content at an equal clock. If an observe hint shared the write, its
 * settle condition is kept.
 */
export function hintOfTie(clock: number, sharing?: ObserveHint): ObserveHint {
  const settleFromMs = msOfClock(clock);
  if (sharing === undefined) return { kind: 'observe', clock, settleFromMs };
  return { kind: 'observe', clock: Math.max(clock, sharing.clock), settleFromMs: Math.max(settleFromMs, sharing.settleFromMs) };
}
