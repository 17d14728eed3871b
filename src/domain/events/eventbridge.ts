/** S3's EventBridge events. Keys are not encoded. Shape: “EventBridge event message structure” in the S3 user guide. */
import { z } from 'zod';
import { idSchema, type JsonObject, rawKey, timeOf, valueAt } from './fields.ts';
import { type Change, changes, ignoredRecord, invalidRecord, recordOf, type RecordResult } from './record.ts';

/** S3's EventBridge events whose detail-type alone determines the change. See “EventBridge event types” in the S3 user guide. */
const detailTypes = new Map<string, Change>([
  ['Object Restore Initiated', changes.storageChanged],
  ['Object Restore Completed', changes.storageChanged],
  ['Object Restore Expired', changes.storageChanged],
  ['Object Storage Class Changed', changes.storageChanged],
  ['Object Access Tier Changed', changes.storageChanged],
  ['Object Tags Added', changes.tagged],
  ['Object Tags Deleted', changes.tagged],
  ['Object ACL Updated', changes.noEffect],
  ['Async Copy Completion', changes.noEffect],
]);

/** The reasons of “Object Created” with which the event states the result. */
const creationReasons = new Map<unknown, Change>([
  ['PutObject', changes.created],
  ['POST Object', changes.created],
  ['CopyObject', changes.copied],
]);

/** The change that an EventBridge event of S3 reports. */
export function eventBridgeChange(detailType: string, detail: { readonly reason: unknown; readonly deletionType: unknown }): Change {
  if (detailType === 'Object Created') {
    // with a missing or new reason the event does not state the result either: the object is observed, as after a multipart upload
    return creationReasons.get(detail.reason) ?? changes.multipartCompleted;
  }
  if (detailType === 'Object Deleted') {
    if (detail.reason === 'Lifecycle Expiration') return changes.lifecycleExpired;
    return detail.deletionType === 'Delete Marker Created' ? changes.markerCreated : changes.deleted;
  }
  return detailTypes.get(detailType) ?? changes.unknownEvent;
}

const eventSchema = z.object({
  detail: z.object({
    object: z.object({
      key: z.string().nullish(),
      size: z.int().nonnegative().nullish(),
      etag: idSchema,
      'version-id': idSchema,
      sequencer: idSchema,
    }),
  }),
});

/** Parses an event whose source is `aws.s3`. The record's event name is the event's detail-type. */
export function parseEventBridge(event: JsonObject, detailType: string): RecordResult {
  const bucket = valueAt(event, 'detail', 'bucket', 'name');
  const change = eventBridgeChange(detailType, {
    reason: valueAt(event, 'detail', 'reason'),
    deletionType: valueAt(event, 'detail', 'deletion-type'),
  });
  const facts = { dialect: 'eventbridge', bucket, eventName: detailType, change, eventTimeMs: timeOf(event.time) } as const;
  if (change.kind === 'ignored') return ignoredRecord(facts);
  const parsed = eventSchema.safeParse(event);
  if (!parsed.success) return invalidRecord(parsed.error, bucket);
  const { object } = parsed.data.detail;
  return recordOf({
    ...facts,
    key: rawKey(object.key ?? ''),
    etag: object.etag,
    sizeBytes: object.size,
    versionId: object['version-id'],
    sequencer: object.sequencer,
  });
}
