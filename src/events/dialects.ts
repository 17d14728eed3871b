/** The dialects: how each one's records are parsed, and what its event names mean. An unlisted name means only that its key changed. */
import { isBlank, isJsonObject, type JsonObject, textOf, valueAt, type Spelling, type Writer, timeOf } from './fields.ts';
import { type Change, changes, recordsOf, type RecordResult } from './record.ts';

const KNOWN_VERSION = /^2(?:\.\d+)*$/;

/** Stores that form-url-encode keys as S3 does, by the source that their records name. */
const ENCODERS = new Set(['minio:s3', 'rustfs:s3']);

/**
 * Parses a record that names its object below `s3`, as S3's own notifications do. Shape: “Event message structure” in the S3 user
 * guide, which guarantees that minor versions only add fields. Records that a routing rule's input transformer makes from
 * audit-trail events look similar (`synthetic`), except that they have neither S3's source nor its version, and the name of a call;
 * they may have `cloudRegion` and `storage` instead, a path that the transformer did not find is an empty string, and ETags are
 * always empty.
 */
export function parseNative(value: JsonObject, writer: Writer): readonly RecordResult[] {
  const storage = isJsonObject(value.s3) ? value.s3 : value.storage;
  const object = valueAt(storage, 'object');
  const eventName = textOf(value.eventName);
  const source = textOf(value.eventSource);
  const facts = {
    bucket: valueAt(storage, 'bucket', 'name'),
    key: valueAt(object, 'key'),
    versionId: valueAt(object, 'versionId'),
    eventName,
    eventTime: value.eventTime,
  };
  const isNative = source.endsWith(':s3') || !isBlank(value.eventVersion) || eventName.includes(':');
  if (!isNative) return recordsOf({ ...facts, ...syntheticFacts(value, object, writer) });
  return recordsOf({
    ...facts,
    dialect: 'native',
    change: nativeChange(eventName),
    spelling: spellingOf(source, writer),
    isOwnForm: source.endsWith(':s3') && KNOWN_VERSION.test(textOf(value.eventVersion)),
    etag: valueAt(object, 'eTag'),
    sizeBytes: valueAt(object, 'size'),
    sequencer: valueAt(object, 'sequencer'),
  });
}

function spellingOf(source: string, writer: Writer): Spelling {
  const isEncoder = ENCODERS.has(source) || (writer === 'aws' && source === 'aws:s3');
  return isEncoder && writer !== 'anyone' ? 'form' : 'either';
}

/** The facts that differ in a synthetic record. */
function syntheticFacts({ eventSource, eventName, errorCode }: JsonObject, object: unknown, writer: Writer) {
  const name = textOf(eventName);
  const isRouted = writer === 'aws' && isCall(name) && (isBlank(eventSource) || eventSource === 's3.amazonaws.com');
  const call = { eventName: name, errorCode, key: valueAt(object, 'key'), deleteMarker: valueAt(object, 'isDeleteMarker') };
  return {
    dialect: 'synthetic',
    change: callChange(call),
    spelling: isRouted ? 'raw' : 'either',
    isOwnForm: false,
  } as const;
}

/**
 * Parses S3's EventBridge event, or only its detail, which a rule may pass on alone. The record's event name is the event's
 * detail-type. Shape: “EventBridge event message structure” in the S3 user guide.
 */
export function parseEventBridge(event: JsonObject, writer: Writer): readonly RecordResult[] {
  const detail = isJsonObject(event.detail) ? event.detail : event;
  const eventName = textOf(event['detail-type']);
  const isS3s = event.source === 'aws.s3';
  const object = valueAt(detail, 'object');
  return recordsOf({
    dialect: 'eventbridge',
    bucket: valueAt(detail, 'bucket', 'name'),
    eventName,
    change: eventBridgeChange(eventName, { reason: detail.reason, deletionType: detail['deletion-type'] }),
    key: valueAt(object, 'key'),
    spelling: writer === 'aws' && isS3s ? 'raw' : 'either',
    eventTime: event.time,
    isOwnForm: isS3s,
    etag: valueAt(object, 'etag'),
    sizeBytes: valueAt(object, 'size'),
    versionId: valueAt(object, 'version-id'),
    sequencer: valueAt(object, 'sequencer'),
  });
}

/**
 * Parses the audit-trail record of one S3 API call (a CloudTrail data event), in its event, as EventBridge delivers it without an
 * input transformer, or alone. Shape: “CloudTrail record contents” in the CloudTrail user guide.
 */
export function parseTrail(event: JsonObject, writer: Writer): readonly RecordResult[] {
  const detail = isJsonObject(event.detail) ? event.detail : event;
  const { requestParameters, responseElements } = detail;
  const eventName = textOf(detail.eventName);
  const key = valueAt(requestParameters, 'key');
  const deleteMarker = valueAt(responseElements, 'x-amz-delete-marker');
  return recordsOf({
    dialect: 'trail',
    bucket: valueAt(requestParameters, 'bucketName'),
    eventName,
    change: callChange({ eventName, errorCode: detail.errorCode, key, deleteMarker }),
    key,
    spelling: writer === 'aws' && detail.eventSource === 's3.amazonaws.com' ? 'raw' : 'either',
    eventTime: timeOf(detail.eventTime) === undefined ? event.time : detail.eventTime,
    isOwnForm: false,
    versionId: valueAt(responseElements, 'x-amz-version-id'),
  });
}

// ── what event names mean ──────────────────────────────────────────────────────────────────────────────────────────

/**
 * The names of events that change no document, the only ones that are ignored: ACLs, annotations, reads, retention, legal holds,
 * replication progress, and calls on incomplete uploads. Ceph's `Replication:Create` is not one: it means that an object arrived.
 */
const WITHOUT_EFFECT = [
  /^ObjectAcl:Put$/,
  /^ObjectAnnotation:/,
  /^ObjectAccessed:/,
  /^ObjectCreated:Put(?:Retention|LegalHold)$/,
  /^Replication:Operation/,
  /^Bucket(?:Created|Removed):/,
  /^Object ACL Updated$/,
  /^PutObject(?:Acl|Retention|LegalHold)$/,
  /^(?:Get|Head|List)[A-Z]\w*$/,
  /^(?:SelectObjectContent|CreateMultipartUpload|UploadPart(?:Copy)?|AbortMultipartUpload)$/,
];

/** S3's notifications, by full name. See “Event notification types and destinations” in the S3 user guide. */
const nativeNames = new Map<string, Change>([
  ['ObjectCreated:Put', changes.created],
  ['ObjectCreated:Post', changes.created],
  ['ObjectCreated:Copy', changes.copied],
  ['ObjectCreated:CompleteMultipartUpload', changes.multipartCompleted],
  ['ObjectRemoved:Delete', changes.deleted],
  ['ObjectRemoved:DeleteMarkerCreated', changes.markerCreated],
]);

/** For notification names not listed above: the change that all names of a family (the part before the colon) report. */
const nativeFamilies = new Map<string, Change>([
  // compatible stores' and future names (`ObjectRemoved:DeleteAllVersions`), which do not state the result
  ['ObjectRemoved', changes.lost],
  ['LifecycleExpiration', changes.lifecycleExpired],
  ['ObjectRestore', changes.storageChanged],
  ['LifecycleTransition', changes.storageChanged],
  ['IntelligentTiering', changes.storageChanged],
  ['ObjectTagging', changes.tagged],
  ['ReducedRedundancyLostObject', changes.lost],
]);

/** S3's EventBridge events whose detail-type alone determines the change. See “EventBridge event types” in the S3 user guide. */
const detailTypes = new Map<string, Change>([
  ['Object Restore Initiated', changes.storageChanged],
  ['Object Restore Completed', changes.storageChanged],
  ['Object Restore Expired', changes.storageChanged],
  ['Object Storage Class Changed', changes.storageChanged],
  ['Object Access Tier Changed', changes.storageChanged],
  ['Object Tags Added', changes.tagged],
  ['Object Tags Deleted', changes.tagged],
]);

/** The reasons with which an “Object Created” event states the result. */
const creationReasons = new Map<unknown, Change>([
  ['PutObject', changes.created],
  ['POST Object', changes.created],
  ['CopyObject', changes.copied],
]);

/** API calls in audit trails and synthetic records. */
const calls = new Map<string, Change>([
  ['PutObject', changes.created],
  ['PostObject', changes.created],
  ['RenameObject', changes.created],
  ['CopyObject', changes.copied],
  ['CompleteMultipartUpload', changes.multipartCompleted],
  ['DeleteObject', changes.deleted],
  ['DeleteObjects', changes.bulkDeleted],
  ['PutObjectTagging', changes.tagged],
  ['DeleteObjectTagging', changes.tagged],
]);

/** The change that any other name reports: none, or an unknown one. */
function otherChange(name: string): Change {
  return WITHOUT_EFFECT.some((pattern) => pattern.test(name)) ? changes.noEffect : changes.unknown;
}

/** The change that an S3 notification reports by its event name, with or without the prefix `s3:`. */
export function nativeChange(eventName: string): Change {
  const name = eventName.startsWith('s3:') ? eventName.slice(3) : eventName;
  return nativeNames.get(name) ?? nativeFamilies.get(name.split(':', 1)[0] ?? '') ?? otherChange(name);
}

/** The change that an EventBridge event of S3 reports. */
export function eventBridgeChange(detailType: string, detail: { readonly reason: unknown; readonly deletionType: unknown }): Change {
  // if the reason is missing or new, the event does not state the result
  if (detailType === 'Object Created') return creationReasons.get(detail.reason) ?? changes.multipartCompleted;
  if (detailType === 'Object Deleted') {
    if (detail.reason !== 'DeleteObject') return changes.lifecycleExpired;
    return detail.deletionType === 'Delete Marker Created' ? changes.markerCreated : changes.deleted;
  }
  return detailTypes.get(detailType) ?? otherChange(detailType);
}

/** Whether a name is that of an API call that changes objects. */
function isCall(eventName: string): boolean {
  return calls.has(eventName);
}

/** The facts of an API call, unchecked. */
interface CallFacts {
  readonly eventName: string;
  readonly errorCode: unknown;
  readonly key: unknown;
  readonly deleteMarker: unknown;
}

/** The change that an API call reports. A failed call changed nothing, and an unknown call without a key concerns only the bucket. */
export function callChange({ eventName, errorCode, key, deleteMarker }: CallFacts): Change {
  if (typeof errorCode === 'string' && errorCode !== '') return changes.failedCall;
  const change = calls.get(eventName) ?? otherChange(eventName);
  if (change.kind === 'unknown' && eventName !== '' && isBlank(key)) return changes.noEffect;
  return change.kind === 'deleted' && (deleteMarker === true || deleteMarker === 'true') ? changes.markerCreated : change;
}
