/**
 * The records that a routing rule's input transformer makes from audit-trail events. Two spellings are in use:
 * `awsRegion` with `s3`, and `cloudRegion` with `storage`. Keys are not encoded. A path that the transformer did not find
 * is the empty string, and etags are always empty.
 */
import { z } from 'zod';
import {
  deleteMarkerSchema,
  idSchema,
  isAbsent,
  isEventName,
  isMarked,
  type JsonObject,
  quoted,
  rawKey,
  timeOf,
  valueAt,
} from './fields.ts';
import { ignoredRecord, invalidRecord, recordOf, type RecordResult, rejectedRecord } from './record.ts';
import { changeOfCall, markedChange } from './trail.ts';

const storageSchema = z.object({
  object: z.object({ key: z.string().nullish(), versionId: idSchema, isDeleteMarker: deleteMarkerSchema }),
});

/** Whether a record that is not native is synthetic: its source is missing, or is the audit trail's name for S3. */
export function isSynthetic({ eventSource }: JsonObject): boolean {
  return isAbsent(eventSource) || eventSource === 's3.amazonaws.com';
}

/** Parses one synthetic record. A `DeleteObjects` has no key: it is a bulk delete. */
export function parseSynthetic(value: JsonObject): RecordResult {
  const storage = value.s3 ?? value.storage;
  const bucket = valueAt(storage, 'bucket', 'name');
  const { eventName } = value;
  if (!isEventName(eventName)) return rejectedRecord('record.invalid', `eventName is ${quoted(eventName)}`, bucket);
  const change = changeOfCall(eventName, value.errorCode);
  const facts = { dialect: 'synthetic', bucket, eventName, eventTimeMs: timeOf(value.eventTime), change } as const;
  if (change.kind === 'ignored') return ignoredRecord(facts);
  const parsed = storageSchema.safeParse(storage);
  if (!parsed.success) return invalidRecord(parsed.error, bucket);
  const { object } = parsed.data;
  return recordOf({
    ...facts,
    change: markedChange(change, isMarked(object.isDeleteMarker)),
    key: rawKey(change.kind === 'bulk-deleted' ? '' : (object.key ?? '')),
    versionId: object.versionId,
    requestId: value.requestID,
  });
}
