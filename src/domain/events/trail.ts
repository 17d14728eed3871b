/**
 * Audit-trail events (CloudTrail data events) as EventBridge delivers them without an input transformer. Keys are not
 * encoded. Shape: “CloudTrail record contents” in the CloudTrail user guide.
 */
import { z } from 'zod';
import { callChange, markedChange } from './names.ts';
import { decodeFormKey, rawKey } from './keys.ts';
import type { WrittenKey } from './keys.ts';
import {
  deleteMarkerSchema,
  idSchema,
  ignoredRecord,
  invalidRecord,
  isAbsent,
  isEventName,
  isMarked,
  quoted,
  recordOf,
  rejectedRecord,
  timeOf,
  valueAt,
} from './fields.ts';
import type { JsonObject, RecordFacts } from './fields.ts';
import type { RecordResult } from './record.ts';

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
export function changeOfCall(eventName: string, errorCode: unknown): RecordFacts['change'] {
  return isAbsent(errorCode) ? callChange(eventName) : { kind: 'ignored', reason: 'failed-call' };
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
  return [record, recordOf({ ...facts, change: { kind: 'deleted' }, key: renamedKey(renameSource, facts.bucket) })];
}

/** The old key of a rename. The header is percent-encoded, and may begin with the bucket name, as the source of a copy does. */
function renamedKey(renameSource: string, bucket: unknown): WrittenKey {
  // in a header `+` does not stand for a space
  const { key, uncertain } = decodeFormKey(renameSource.replaceAll('+', '%2B'));
  const path = key.startsWith('/') ? key.slice(1) : key;
  const prefixed = typeof bucket === 'string' && path.startsWith(`${bucket}/`);
  return { key: prefixed ? path.slice(bucket.length + 1) : key, uncertain };
}
