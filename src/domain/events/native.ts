/**
 * S3's own notifications. Keys are form-url-encoded. Shape: “Event message structure” in the S3 user guide, which
 * guarantees that a minor version only adds fields.
 */
import { z } from 'zod';
import { nativeChange } from './names.ts';
import { decodeFormKey } from './keys.ts';
import {
  idSchema,
  ignoredRecord,
  invalidRecord,
  isAbsent,
  isEventName,
  quoted,
  recordOf,
  rejectedRecord,
  timeOf,
  valueAt,
} from './fields.ts';
import type { JsonObject } from './fields.ts';
import type { RecordResult } from './record.ts';

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
