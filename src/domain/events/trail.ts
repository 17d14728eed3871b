/**
 * Audit-trail events (CloudTrail data events) as EventBridge delivers them without an input transformer. Keys are not
 * encoded. Shape: “CloudTrail record contents” in the CloudTrail user guide.
 */
import { z } from 'zod';
import {
  decodeFormKey,
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
  type WrittenKey,
} from './fields.ts';
import {
  type Change,
  changes,
  ignoredRecord,
  invalidRecord,
  type RecordFacts,
  recordOf,
  type RecordResult,
  rejectedRecord,
} from './record.ts';

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

/** Calls that only read, or only change an upload that is not an object yet. */
const CALL_WITHOUT_EFFECT =
  /^(?:(?:Get|Head|List)[A-Z]\w*|SelectObjectContent|CreateMultipartUpload|UploadPart(?:Copy)?|AbortMultipartUpload)$/;

/** The change that a successful API call reports. */
export function callChange(eventName: string): Change {
  return calls.get(eventName) ?? (CALL_WITHOUT_EFFECT.test(eventName) ? changes.noEffect : changes.unknownEvent);
}

/** The change of an API call, once it is known whether the call created a delete marker. */
export function markedChange(change: Change, deleteMarker: boolean): Change {
  return change.kind === 'deleted' && deleteMarker ? changes.markerCreated : change;
}

const trailSchema = z.object({
  detail: z.object({
    requestParameters: z.object({
      key: z.string().nullish(),
      renameSource: z.string().nullish(),
      'x-amz-rename-source': z.string().nullish(),
    }),
    responseElements: z.object({ 'x-amz-version-id': idSchema, 'x-amz-delete-marker': deleteMarkerSchema }).nullish(),
  }),
});

/** Parses the audit-trail record of one API call of S3 into one record, or two for a rename that names the old key. */
export function parseTrail(event: JsonObject): readonly RecordResult[] {
  const eventName = valueAt(event, 'detail', 'eventName');
  const bucket = valueAt(event, 'detail', 'requestParameters', 'bucketName');
  if (!isEventName(eventName)) return [rejectedRecord('record.invalid', `detail.eventName is ${quoted(eventName)}`, bucket)];
  const eventTimeMs = timeOf(valueAt(event, 'detail', 'eventTime')) ?? timeOf(event.time);
  const requestId = valueAt(event, 'detail', 'requestID');
  const facts = { dialect: 'trail', bucket, eventName, eventTimeMs, requestId } as const;
  const change = changeOfCall(eventName, valueAt(event, 'detail', 'errorCode'));
  if (change.kind === 'ignored') return [ignoredRecord({ ...facts, change })];
  const parsed = trailSchema.safeParse(event);
  if (!parsed.success) return [invalidRecord(parsed.error, bucket)];
  return recordsOf({ ...facts, change }, parsed.data.detail);
}

/** The change that an API call reports. A call that failed changed nothing, so it is ignored. */
export function changeOfCall(eventName: string, errorCode: unknown): Change {
  return isAbsent(errorCode) ? callChange(eventName) : changes.failedCall;
}

function recordsOf(facts: Omit<RecordFacts, 'key'>, detail: z.infer<typeof trailSchema>['detail']): readonly RecordResult[] {
  const { requestParameters, responseElements } = detail;
  const bulk = facts.change.kind === 'bulk-deleted';
  const record = recordOf({
    ...facts,
    change: markedChange(facts.change, isMarked(responseElements?.['x-amz-delete-marker'])),
    key: rawKey(bulk ? '' : (requestParameters.key ?? '')),
    versionId: responseElements?.['x-amz-version-id'],
  });
  const renameSource = requestParameters.renameSource ?? requestParameters['x-amz-rename-source'];
  if (facts.eventName !== 'RenameObject' || isAbsent(renameSource)) return [record];
  return [record, recordOf({ ...facts, change: changes.deleted, key: renamedKey(renameSource, facts.bucket) })];
}

/** The old key of a rename. The header is percent-encoded, and may begin with the bucket name, as the source of a copy does. */
function renamedKey(renameSource: string, bucket: unknown): WrittenKey {
  // in a header `+` does not stand for a space
  const { key, uncertain } = decodeFormKey(renameSource.replaceAll('+', '%2B'));
  const path = key.startsWith('/') ? key.slice(1) : key;
  const prefixed = typeof bucket === 'string' && path.startsWith(`${bucket}/`);
  return { key: prefixed ? path.slice(bucket.length + 1) : key, uncertain };
}
