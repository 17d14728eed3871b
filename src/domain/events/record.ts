/** Records: one change each, as a source reported it, in one shape for all envelopes and dialects. */
import type { z } from 'zod';
import type { BucketSource } from '../bucket.ts';
import { isBucketName } from '../bucket-name.ts';
import type { DocumentSource } from '../documents/document.ts';
import type { Fault, FaultCode } from '../fault.ts';
import { isAbsent, isKey, quoted, type WrittenKey } from './fields.ts';

/** How a record is written: S3's notification, S3's EventBridge event, an audit-trail event, or the synthetic Records of the routing rule. */
export const dialects = ['native', 'eventbridge', 'trail', 'synthetic'] as const;
export type Dialect = (typeof dialects)[number];

interface DialectFacts {
  /** The sources of the buckets whose events have this form. */
  readonly bucketSources: readonly BucketSource[];
  /** Whether S3 itself writes the records, with sequencers. Such a record may state its result (rule 3), unless it came another way (`throughTopic`). */
  readonly hasSequencers: boolean;
  /** The source of the documents that its records lead to. */
  readonly documentSource: DocumentSource;
}

/** What follows from the dialect of a record. */
export const dialectFacts: Readonly<Record<Dialect, DialectFacts>> = {
  native: { bucketSources: ['notification', 'topic'], hasSequencers: true, documentSource: 'native' },
  eventbridge: { bucketSources: ['eventbridge'], hasSequencers: true, documentSource: 'eventbridge' },
  trail: { bucketSources: ['routed'], hasSequencers: false, documentSource: 'routed' },
  synthetic: { bucketSources: ['routed'], hasSequencers: false, documentSource: 'routed' },
};

/** Whether the events of a bucket with this source have the form of this dialect. */
export function isFormOf(source: BucketSource, dialect: Dialect): boolean {
  return dialectFacts[dialect].bucketSources.includes(source);
}

/**
 * The change that a record reports. Only `created` and `marker-created` of a native or EventBridge record state the
 * result themselves, and `deleted` does in a bucket that never had versioning (`statedResult` in src/domain/ordering/hint.ts); all
 * others only say that the key changed.
 */
export type Change =
  /** Put, Post or Copy. */
  | { readonly kind: 'created'; readonly copied: boolean }
  /** CompleteMultipartUpload, or a creation of a kind that is not known. The upload that started last may win, so the record does not say which object is current. */
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
  /** The object may be gone: a reduced-redundancy object was lost, or a removal has a name that is not known. */
  | { readonly kind: 'lost' }
  /** The event does not change anything that the index holds (ACLs, replication, a failed call …), or its name is unknown. */
  | { readonly kind: 'ignored'; readonly reason: 'no-effect' | 'failed-call' | 'unknown-event' };

/** The changes that event names report, so that each name of a dialect is one line. */
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
  noEffect: { kind: 'ignored', reason: 'no-effect' },
  failedCall: { kind: 'ignored', reason: 'failed-call' },
  unknownEvent: { kind: 'ignored', reason: 'unknown-event' },
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
  /** True when the key's escapes were malformed: `key` is then the undecoded text, and the object must be observed. */
  readonly keyUncertain: boolean;
  /** The name as the source wrote it, at most 128 characters (`ObjectCreated:Put`, `Object Created`, `PutObject`). */
  readonly eventName: string;
  readonly change: Change;
  /** When the change happened according to the source; absent when the source gives no valid time. */
  readonly eventTimeMs?: number;
  /** The sequencer as written (hex, not yet validated). Audit-trail and synthetic records never have one. */
  readonly sequencer?: string;
  readonly etag?: string;
  readonly sizeBytes?: number;
  /** Absent when the source gives none (an empty string counts as none). */
  readonly versionId?: string;
  /** Of deletes that an audit trail reports: the ID of the API request. The events of one DeleteObjects call share it. */
  readonly requestId?: string;
  /** True for an EventBridge record in an SNS envelope: S3 did not necessarily write it, because others may publish to the topic. */
  readonly throughTopic?: true;
}

/** The result of parsing one record of a message. A rejected record has its `bucket` where that is known (for the loss gap), and its `dialect` where that was recognised. */
export type RecordResult =
  | { readonly ok: true; readonly record: ChangeRecord }
  | { readonly ok: false; readonly fault: Fault; readonly bucket?: string; readonly dialect?: Dialect };

/** Longer event names are cut to this length. */
const EVENT_NAME_LENGTH_MAX = 128;

/** A record that can never succeed. `bucket` is kept if it is a valid bucket name: a loss gap is opened for it. */
export function rejectedRecord(code: FaultCode, reason: string, bucket?: unknown): RecordResult {
  const known = typeof bucket === 'string' && isBucketName(bucket) ? { bucket } : {};
  return { ok: false, fault: { code, reason }, ...known };
}

/** A record that does not match its schema. The reason names the first mistake by path and kind, never by its value. */
export function invalidRecord(error: z.ZodError, bucket: unknown): RecordResult {
  const issue = error.issues[0];
  return rejectedRecord('record.invalid', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`, bucket);
}

/** A record that changes nothing in the index. None of its fields are needed, so none are checked: the key is empty, and so is the bucket if the record has no valid one. */
export function ignoredRecord(
  facts: Pick<RecordFacts, 'dialect' | 'eventName' | 'bucket' | 'eventTimeMs'> & { readonly change: Change },
): RecordResult {
  const { bucket, eventTimeMs } = facts;
  return {
    ok: true,
    record: {
      dialect: facts.dialect,
      bucket: typeof bucket === 'string' && isBucketName(bucket) ? bucket : '',
      key: '',
      keyUncertain: false,
      eventName: shortName(facts.eventName),
      change: facts.change,
      ...(eventTimeMs !== undefined && { eventTimeMs }),
    },
  };
}

/** The fields of a record as its dialect gives them. */
export interface RecordFacts {
  readonly dialect: Dialect;
  readonly eventName: string;
  readonly change: Change;
  readonly bucket: unknown;
  readonly key: WrittenKey;
  readonly eventTimeMs: number | undefined;
  readonly sequencer?: string | null | undefined;
  /** With or without the quotes of the ETag header. */
  readonly etag?: string | null | undefined;
  readonly sizeBytes?: number | null | undefined;
  readonly versionId?: string | null | undefined;
  /** Of an audit trail, unchecked. */
  readonly requestId?: unknown;
}

/** Makes the record of a change. It is rejected when its bucket or key is not valid (`record.bucket-invalid`, `record.key-missing`, `record.key-invalid`). */
export function recordOf(facts: RecordFacts): RecordResult {
  const { dialect, change, bucket, key } = facts;
  if (typeof bucket !== 'string' || !isBucketName(bucket)) {
    return rejectedRecord('record.bucket-invalid', `the bucket name is not valid: ${quoted(bucket)}`);
  }
  if (key.key === '' && change.kind !== 'bulk-deleted') {
    return rejectedRecord('record.key-missing', `${quoted(facts.eventName)} names no key`, bucket);
  }
  if (key.key !== '' && !isKey(key.key)) {
    return rejectedRecord(
      'record.key-invalid',
      `the key ${quoted(key.key)} is not well-formed Unicode or is longer than 1,024 bytes`,
      bucket,
    );
  }
  const eventName = shortName(facts.eventName);
  const record: Writable<ChangeRecord> = { dialect, bucket, key: key.key, keyUncertain: key.uncertain, eventName, change };
  addOptionalFields(record, facts);
  return { ok: true, record };
}

type Writable<Fields> = { -readonly [Field in keyof Fields]: Fields[Field] };

/** Adds the fields one by one, because a spread for each optional field makes an object for each of them. */
function addOptionalFields(record: Writable<ChangeRecord>, facts: RecordFacts): void {
  const { eventTimeMs, sequencer, sizeBytes, versionId } = facts;
  const etag = facts.etag?.replaceAll('"', '');
  const requestId = requestIdOf(facts);
  if (eventTimeMs !== undefined) record.eventTimeMs = eventTimeMs;
  if (!isAbsent(sequencer)) record.sequencer = sequencer;
  if (!isAbsent(etag)) record.etag = etag;
  if (!isAbsent(sizeBytes)) record.sizeBytes = sizeBytes;
  if (!isAbsent(versionId)) record.versionId = versionId;
  if (requestId !== undefined) record.requestId = requestId;
}

/** A request ID as S3 and CloudTrail write them. It only ever proves something, so any other value counts as absent. */
const REQUEST_ID = /^[\w-]{8,128}$/;

function requestIdOf({ change, requestId }: RecordFacts): string | undefined {
  const isDelete = change.kind === 'deleted' || change.kind === 'marker-created' || change.kind === 'bulk-deleted';
  return isDelete && typeof requestId === 'string' && REQUEST_ID.test(requestId) ? requestId : undefined;
}

function shortName(eventName: string): string {
  return eventName.slice(0, EVENT_NAME_LENGTH_MAX).toWellFormed();
}
