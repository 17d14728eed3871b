/**
 * S3's own notifications. Keys are form-url-encoded. Shape: “Event message structure” in the S3 user guide, which
 * guarantees that a minor version only adds fields.
 */
import { z } from 'zod';
import { decodeFormKey, idSchema, isAbsent, isEventName, type JsonObject, quoted, timeOf, valueAt } from './fields.ts';
import { type Change, changes, ignoredRecord, invalidRecord, recordOf, type RecordResult, rejectedRecord } from './record.ts';

/** S3 notifications, by full name. See “Event notification types and destinations” in the S3 user guide. */
const nativeNames = new Map<string, Change>([
  ['ObjectCreated:Put', changes.created],
  ['ObjectCreated:Post', changes.created],
  ['ObjectCreated:Copy', changes.copied],
  ['ObjectCreated:CompleteMultipartUpload', changes.multipartCompleted],
  ['ObjectRemoved:Delete', changes.deleted],
  ['ObjectRemoved:DeleteMarkerCreated', changes.markerCreated],
]);

/** S3 notifications where all names of a family (the part before the colon) that are not listed above report the same change. */
const nativeFamilies = new Map<string, Change>([
  // names of compatible stores and of the future (`ObjectCreated:Append`, `ObjectRemoved:DeleteAllVersions`): they do not state the result
  ['ObjectCreated', changes.multipartCompleted],
  ['ObjectRemoved', changes.lost],
  ['LifecycleExpiration', changes.lifecycleExpired],
  ['ObjectRestore', changes.storageChanged],
  ['LifecycleTransition', changes.storageChanged],
  ['IntelligentTiering', changes.storageChanged],
  ['ObjectTagging', changes.tagged],
  ['ReducedRedundancyLostObject', changes.lost],
  ['ObjectAcl', changes.noEffect],
  ['Replication', changes.noEffect],
  ['ObjectAnnotation', changes.noEffect],
]);

/** The change that an S3 notification reports by its event name, with or without the prefix `s3:`. */
export function nativeChange(eventName: string): Change {
  const name = eventName.startsWith('s3:') ? eventName.slice(3) : eventName;
  return nativeNames.get(name) ?? nativeFamilies.get(name.split(':', 1)[0] ?? '') ?? changes.unknownEvent;
}

const nativeSchema = z.object({
  eventName: z.string().min(1),
  s3: z.object({
    object: z.object({
      key: z.string().nullish(),
      size: z.int().nonnegative().nullish(),
      eTag: idSchema,
      versionId: idSchema,
      sequencer: idSchema,
    }),
  }),
});

const KNOWN_VERSION = /^2(?:\.\d+)*$/;

/** Whether a record is a notification of S3 or of a compatible store (`minio:s3`): its source ends in `:s3`, or it has an eventVersion. */
export function isNative(value: JsonObject): boolean {
  const { eventSource } = value;
  return (typeof eventSource === 'string' && eventSource.endsWith(':s3')) || !isAbsent(value.eventVersion);
}

/** Parses one record of a notification. Version 2.x or a missing version is read; another major version is `record.version-unknown`. */
export function parseNative(value: JsonObject): RecordResult {
  const { eventVersion, eventName } = value;
  const bucket = valueAt(value, 's3', 'bucket', 'name');
  if (!isAbsent(eventVersion) && !(typeof eventVersion === 'string' && KNOWN_VERSION.test(eventVersion))) {
    return rejectedRecord('record.version-unknown', `eventVersion is ${quoted(eventVersion)}, not 2.x`, bucket);
  }
  const facts = { dialect: 'native', bucket, eventTimeMs: timeOf(value.eventTime) } as const;
  if (isEventName(eventName)) {
    const change = nativeChange(eventName);
    if (change.kind === 'ignored') return ignoredRecord({ ...facts, eventName, change });
  }
  const parsed = nativeSchema.safeParse(value);
  if (!parsed.success) return invalidRecord(parsed.error, bucket);
  const { object } = parsed.data.s3;
  return recordOf({
    ...facts,
    eventName: parsed.data.eventName,
    change: nativeChange(parsed.data.eventName),
    key: decodeFormKey(object.key ?? ''),
    etag: object.eTag,
    sizeBytes: object.size,
    versionId: object.versionId,
    sequencer: object.sequencer,
  });
}
