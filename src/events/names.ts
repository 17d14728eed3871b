/** What event names mean in each dialect. An unlisted name means only that its key changed. */
import { isBlank } from './fields.ts';
import { type Change, changes } from './record.ts';

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
export function isCall(eventName: string): boolean {
  return calls.has(eventName);
}

/** The facts of an API call, unchecked. */
export interface CallFacts {
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
