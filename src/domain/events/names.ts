/**
 * Event names: which change each name of each source reports. A name that is not listed is observed if its family says that
 * the object changed, since new members of a family appear without notice; else it is ignored as `unknown-event`.
 */
import type { Change } from './record.ts';

const CREATED: Change = { kind: 'created', copied: false };
const COPIED: Change = { kind: 'created', copied: true };
const MULTIPART_COMPLETED: Change = { kind: 'multipart-completed' };
const MARKER_CREATED: Change = { kind: 'marker-created' };
const DELETED: Change = { kind: 'deleted' };
const BULK_DELETED: Change = { kind: 'bulk-deleted' };
const LIFECYCLE_EXPIRED: Change = { kind: 'lifecycle-expired' };
const STORAGE_CHANGED: Change = { kind: 'storage-changed' };
const TAGGED: Change = { kind: 'tagged' };
const LOST: Change = { kind: 'lost' };
const NO_EFFECT: Change = { kind: 'ignored', reason: 'no-effect' };
const UNKNOWN_EVENT: Change = { kind: 'ignored', reason: 'unknown-event' };

/** S3 notifications, by full name. See “Event notification types and destinations” in the S3 user guide. */
const nativeNames = new Map<string, Change>([
  ['ObjectCreated:Put', CREATED],
  ['ObjectCreated:Post', CREATED],
  ['ObjectCreated:Copy', COPIED],
  ['ObjectCreated:CompleteMultipartUpload', MULTIPART_COMPLETED],
  ['ObjectRemoved:Delete', DELETED],
  ['ObjectRemoved:DeleteMarkerCreated', MARKER_CREATED],
]);

/** S3 notifications where all names of a family (the part before the colon) that are not listed above report the same change. */
const nativeFamilies = new Map<string, Change>([
  // names of compatible stores and of the future (`ObjectCreated:Append`, `ObjectRemoved:DeleteAllVersions`): they do not state the result
  ['ObjectCreated', MULTIPART_COMPLETED],
  ['ObjectRemoved', LOST],
  ['LifecycleExpiration', LIFECYCLE_EXPIRED],
  ['ObjectRestore', STORAGE_CHANGED],
  ['LifecycleTransition', STORAGE_CHANGED],
  ['IntelligentTiering', STORAGE_CHANGED],
  ['ObjectTagging', TAGGED],
  ['ReducedRedundancyLostObject', LOST],
  ['ObjectAcl', NO_EFFECT],
  ['Replication', NO_EFFECT],
  ['ObjectAnnotation', NO_EFFECT],
]);

/** The change that an S3 notification reports by its event name, with or without the prefix `s3:`. */
export function nativeChange(eventName: string): Change {
  const name = eventName.startsWith('s3:') ? eventName.slice(3) : eventName;
  return nativeNames.get(name) ?? nativeFamilies.get(name.split(':', 1)[0] ?? '') ?? UNKNOWN_EVENT;
}

/** S3's EventBridge events whose detail-type alone determines the change. See “EventBridge event types” in the S3 user guide. */
const detailTypes = new Map<string, Change>([
  ['Object Restore Initiated', STORAGE_CHANGED],
  ['Object Restore Completed', STORAGE_CHANGED],
  ['Object Restore Expired', STORAGE_CHANGED],
  ['Object Storage Class Changed', STORAGE_CHANGED],
  ['Object Access Tier Changed', STORAGE_CHANGED],
  ['Object Tags Added', TAGGED],
  ['Object Tags Deleted', TAGGED],
  ['Object ACL Updated', NO_EFFECT],
  ['Async Copy Completion', NO_EFFECT],
]);

/** The reasons of “Object Created” with which the event states the result. */
const creationReasons = new Map<unknown, Change>([
  ['PutObject', CREATED],
  ['POST Object', CREATED],
  ['CopyObject', COPIED],
]);

/** The change that an EventBridge event of S3 reports. */
export function eventBridgeChange(detailType: string, detail: { readonly reason: unknown; readonly deletionType: unknown }): Change {
  if (detailType === 'Object Created') {
    // with a missing or new reason the event does not state the result either: the object is observed, as after a multipart upload
    return creationReasons.get(detail.reason) ?? MULTIPART_COMPLETED;
  }
  if (detailType === 'Object Deleted') {
    if (detail.reason === 'Lifecycle Expiration') return LIFECYCLE_EXPIRED;
    return detail.deletionType === 'Delete Marker Created' ? MARKER_CREATED : DELETED;
  }
  return detailTypes.get(detailType) ?? UNKNOWN_EVENT;
}

/** API calls in audit trails and synthetic records. */
const calls = new Map<string, Change>([
  ['PutObject', CREATED],
  ['PostObject', CREATED],
  ['RenameObject', CREATED],
  ['CopyObject', COPIED],
  ['CompleteMultipartUpload', MULTIPART_COMPLETED],
  ['DeleteObject', DELETED],
  ['DeleteObjects', BULK_DELETED],
  ['PutObjectTagging', TAGGED],
  ['DeleteObjectTagging', TAGGED],
]);

/** Calls that only read, or only change an upload that is not an object yet. */
const CALL_WITHOUT_EFFECT =
  /^(?:(?:Get|Head|List)[A-Z]\w*|SelectObjectContent|CreateMultipartUpload|UploadPart(?:Copy)?|AbortMultipartUpload)$/;

/** The change that a successful API call reports. */
export function callChange(eventName: string): Change {
  return calls.get(eventName) ?? (CALL_WITHOUT_EFFECT.test(eventName) ? NO_EFFECT : UNKNOWN_EVENT);
}

/** The change of an API call, once it is known whether the call created a delete marker. */
export function markedChange(change: Change, deleteMarker: boolean): Change {
  return change.kind === 'deleted' && deleteMarker ? MARKER_CREATED : change;
}
