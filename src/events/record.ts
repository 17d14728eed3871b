/** Records: each is one change that a source reports, in the same shape for all envelopes and dialects. */
import type { BucketSource } from '../records/bucket.ts';
import { isBucketName } from '../base/bucket-name.ts';
import type { Fault, FaultCode } from '../base/fault.ts';
import { idOf, isBlank, keysOf, quoted, type Spelling, textOf, timeOf } from './fields.ts';

/** How a record is written: S3's notification, S3's EventBridge event, an audit-trail event, the synthetic Records of the routing rule, or any of these that was posted to a webhook. */
export const dialects = ['native', 'eventbridge', 'trail', 'synthetic', 'webhook'] as const;
export type Dialect = (typeof dialects)[number];

/** Where a document's content may come from, if an event led to it. */
export const eventSources = ['native', 'eventbridge', 'routed', 'webhook'] as const;

interface DialectFacts {
  /** The sources of the buckets whose events have this form. Empty: a bucket's own events never have it, so such a record is never believed. */
  readonly bucketSources: readonly BucketSource[];
  /** Whether S3 itself writes the records, with sequencers. Only such a record may state its result (rule 3), unless it came another way (`throughTopic`). */
  readonly hasSequencers: boolean;
  /** The field `source` of the documents that its records lead to. */
  readonly documentSource: (typeof eventSources)[number];
}

/** What follows from a record's dialect. */
export const dialectFacts: Readonly<Record<Dialect, DialectFacts>> = {
  native: { bucketSources: ['notification', 'topic'], hasSequencers: true, documentSource: 'native' },
  eventbridge: { bucketSources: ['eventbridge'], hasSequencers: true, documentSource: 'eventbridge' },
  trail: { bucketSources: ['routed'], hasSequencers: false, documentSource: 'routed' },
  synthetic: { bucketSources: ['routed'], hasSequencers: false, documentSource: 'routed' },
  webhook: { bucketSources: ['webhook'], hasSequencers: false, documentSource: 'webhook' },
};

/** Whether a bucket with this source gets events in this dialect. */
export function isFormOf(source: BucketSource, dialect: Dialect): boolean {
  return dialectFacts[dialect].bucketSources.includes(source);
}

/**
 * The change that a record reports. Only `created` and `marker-created` in a native or EventBridge record state the result, and
 * `deleted` in a bucket that never had versioning (`statedResult` in src/ordering/hint.ts); all others only say that the key changed.
 */
export type Change =
  /** Put, Post or Copy. */
  | { readonly kind: 'created'; readonly copied: boolean }
  /** CompleteMultipartUpload, or a creation for an unknown reason. The upload that started last may win, so the record does not say which object is current. */
  | { readonly kind: 'multipart-completed' }
  /** A delete marker became current. */
  | { readonly kind: 'marker-created' }
  /** A delete without a delete marker: of the object of an unversioned bucket, of one version, or of a marker. */
  | { readonly kind: 'deleted' }
  /** DeleteObjects of an audit trail. It names no key, so it becomes a gap. */
  | { readonly kind: 'bulk-deleted' }
  /** A lifecycle rule expired the object. */
  | { readonly kind: 'lifecycle-expired' }
  /** The object was restored, transitioned or moved between access tiers: its storage class may have changed. */
  | { readonly kind: 'storage-changed' }
  /** Tags were put or removed. */
  | { readonly kind: 'tagged' }
  /** The object may be gone: a reduced-redundancy object was lost, or the name of a removal is unknown. */
  | { readonly kind: 'lost' }
  /** The name of the event is missing or unknown. */
  | { readonly kind: 'unknown' }
  /** The event changes nothing that the index holds (ACLs, replication, a failed call …), or is not to be heard about its bucket. */
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'other-bucket' };

/** The changes that event names report, each under a name, so that each event name takes one line. */
export const changes = {
  created: { kind: 'created', copied: false },
  copied: { kind: 'created', copied: true },
  multipartCompleted: { kind: 'multipart-completed' },
  markerCreated: { kind: 'marker-created' },
  deleted: { kind: 'deleted' },
  bulkDeleted: { kind: 'bulk-deleted' },
  lifecycleExpired: { kind: 'lifecycle-expired' },
  storageChanged: { kind: 'storage-changed' },
  tagged: { kind: 'tagged' },
  lost: { kind: 'lost' },
  unknown: { kind: 'unknown' },
  noEffect: { kind: 'ignored', reason: 'no-effect' },
  failedCall: { kind: 'ignored', reason: 'failed-call' },
  otherBucket: { kind: 'ignored', reason: 'other-bucket' },
} as const satisfies Readonly<Record<string, Change>>;

/** Whether the record reports that its object may be gone. */
export function reportsDeletion({ kind }: Change): boolean {
  switch (kind) {
    case 'marker-created':
    case 'deleted':
    case 'bulk-deleted':
    case 'lifecycle-expired':
    case 'lost':
      return true;
    case 'created':
    case 'multipart-completed':
    case 'storage-changed':
    case 'tagged':
    case 'unknown':
    case 'ignored':
      return false;
  }
}

export interface ChangeRecord {
  readonly dialect: Dialect;
  /** Empty only for `ignored` records that name no bucket (`ListBuckets`). */
  readonly bucket: string;
  /** Decoded. Empty only for `bulk-deleted` and `ignored` records. */
  readonly key: string;
  /** The name as the source wrote it, at most 128 characters (`ObjectCreated:Put`, `Object Created`, `PutObject`). Empty if there is none. */
  readonly eventName: string;
  readonly change: Change;
  /** When the change happened according to the source; absent if the source gives no valid time. */
  readonly eventTimeMs?: number;
  /** The sequencer as written (hex, not yet validated). Absent if the record is not in S3's own form, or may mean another key: such a record states nothing. */
  readonly sequencer?: string;
  readonly etag?: string;
  readonly sizeBytes?: number;
  /** Absent if the source gives none (an empty string counts as none). */
  readonly versionId?: string;
  /** True for an EventBridge record in an SNS envelope: S3 may not have written it, because others may publish to the topic. */
  readonly throughTopic?: true;
}

/** The result of parsing one record of a message. A rejected record has its `bucket` if known (for the loss gap), and its `dialect` if recognised. */
export type RecordResult =
  | { readonly ok: true; readonly record: ChangeRecord }
  | { readonly ok: false; readonly fault: Fault; readonly bucket?: string; readonly dialect?: Dialect };

/** Event names are cut to this length. */
const EVENT_NAME_LENGTH_MAX = 128;

/** A record that can never succeed. `known.bucket` must be a valid bucket name: it gets a loss gap. */
export function rejectedRecord(
  code: FaultCode,
  reason: string,
  known: { readonly bucket?: string; readonly dialect?: Dialect } = {},
): RecordResult {
  return { ok: false, fault: { code, reason }, ...known };
}

/** A record's fields, unchecked, where its dialect has them. Unreadable ones will be left out. */
export interface RecordFacts {
  readonly dialect: Dialect;
  readonly eventName: string;
  readonly change: Change;
  readonly bucket: unknown;
  readonly key: unknown;
  readonly spelling: Spelling;
  /** ISO 8601 text; anything else, numbers included, counts as no time. */
  readonly eventTime: unknown;
  /** Whether the record is in the form in which S3 itself writes it. Only then may it state its result. */
  readonly isOwnForm: boolean;
  readonly sequencer?: unknown;
  /** With or without the quotes of the ETag header. */
  readonly etag?: unknown;
  readonly sizeBytes?: unknown;
  readonly versionId?: unknown;
}

/** Makes a change's records: one, or two if its key may be spelled in two ways. Rejects a change without a valid bucket or key (`record.invalid`). */
export function recordsOf(facts: RecordFacts): readonly RecordResult[] {
  const { dialect, change, bucket } = facts;
  const isNamed = typeof bucket === 'string' && isBucketName(bucket);
  // an ignored record needs no fields, so none is checked
  if (change.kind === 'ignored') return [{ ok: true, record: recordOf(facts, isNamed ? bucket : '', '') }];
  if (!isNamed) return [rejectedRecord('record.invalid', `the bucket name is not valid: ${quoted(bucket)}`, { dialect })];
  if (change.kind === 'bulk-deleted') return [{ ok: true, record: recordOf(facts, bucket, '') }];
  const text = textOf(facts.key);
  if (text === '') return [rejectedRecord('record.invalid', `${quoted(facts.eventName)} names no key`, { bucket, dialect })];
  const { keys, isCertain } = keysOf(text, facts.spelling);
  if (keys.length === 0) {
    const reason = `the key ${quoted(text)} is not well-formed Unicode or is longer than 1,024 bytes`;
    return [rejectedRecord('record.invalid', reason, { bucket, dialect })];
  }
  return keys.map((key) => ({ ok: true, record: recordOf(isCertain ? facts : { ...facts, isOwnForm: false }, bucket, key) }));
}

type Writable<Fields> = { -readonly [Field in keyof Fields]: Fields[Field] };

function recordOf(facts: RecordFacts, bucket: string, key: string): ChangeRecord {
  const { dialect, change } = facts;
  const eventName = facts.eventName.slice(0, EVENT_NAME_LENGTH_MAX).toWellFormed();
  const record: Writable<ChangeRecord> = { dialect, bucket, key, eventName, change };
  const eventTimeMs = timeOf(facts.eventTime);
  if (eventTimeMs !== undefined) record.eventTimeMs = eventTimeMs;
  if (change.kind !== 'ignored') addStated(record, facts);
  return record;
}

/** Adds the fields one by one, because spreading each would allocate an object for each. */
function addStated(record: Writable<ChangeRecord>, facts: RecordFacts): void {
  const etag = idOf(facts.etag)?.replaceAll('"', '');
  const sizeBytes = sizeOf(facts.sizeBytes);
  const versionId = idOf(facts.versionId);
  const sequencer = facts.isOwnForm && isReadable(facts) ? idOf(facts.sequencer) : undefined;
  if (sequencer !== undefined) record.sequencer = sequencer;
  if (!isBlank(etag)) record.etag = etag;
  if (sizeBytes !== undefined) record.sizeBytes = sizeBytes;
  if (versionId !== undefined) record.versionId = versionId;
}

/** Whether every field that states the result is blank or readable: with an unreadable one, the record is not in S3's own form. */
function isReadable({ etag, versionId, sizeBytes }: RecordFacts): boolean {
  return [etag, versionId].every((id) => isBlank(id) || idOf(id) !== undefined) && (isBlank(sizeBytes) || sizeOf(sizeBytes) !== undefined);
}

function sizeOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
