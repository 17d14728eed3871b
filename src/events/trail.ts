/**
 * Audit-trail events (CloudTrail data events), as EventBridge delivers them without an input transformer. Shape: “CloudTrail
 * record contents” in the CloudTrail user guide.
 */
import { decodeFormKey, isJsonObject, type JsonObject, textOf, timeOf, valueAt, type Writer } from './fields.ts';
import { callChange } from './names.ts';
import { changes, recordsOf, type RecordFacts, type RecordResult } from './record.ts';

/** Parses the audit-trail record of one S3 API call, in its event or alone. A rename that names the old key yields a record for each of the two keys. */
export function parseTrail(event: JsonObject, writer: Writer): readonly RecordResult[] {
  const detail = isJsonObject(event.detail) ? event.detail : event;
  const { requestParameters, responseElements } = detail;
  const eventName = textOf(detail.eventName);
  const key = valueAt(requestParameters, 'key');
  const deleteMarker = valueAt(responseElements, 'x-amz-delete-marker');
  const facts: RecordFacts = {
    dialect: 'trail',
    bucket: valueAt(requestParameters, 'bucketName'),
    eventName,
    change: callChange({ eventName, errorCode: detail.errorCode, key, deleteMarker }),
    key,
    spelling: writer === 'aws' && detail.eventSource === 's3.amazonaws.com' ? 'raw' : 'either',
    eventTime: timeOf(detail.eventTime) === undefined ? event.time : detail.eventTime,
    isOwnForm: false,
    versionId: valueAt(responseElements, 'x-amz-version-id'),
  };
  const source = textOf(valueAt(requestParameters, 'renameSource')) || textOf(valueAt(requestParameters, 'x-amz-rename-source'));
  if (eventName !== 'RenameObject' || source === '' || facts.change.kind === 'ignored') return recordsOf(facts);
  const renamed = {
    ...facts,
    change: changes.deleted,
    key: renamedKey(source, facts.bucket),
    spelling: 'raw',
    versionId: undefined,
  } as const;
  return [...recordsOf(facts), ...recordsOf(renamed)];
}

/** The old key of a rename. The header is percent-encoded, and may begin with the bucket name, like a copy's source. */
function renamedKey(source: string, bucket: unknown): string {
  // in a header `+` does not stand for a space
  const key = decodeFormKey(source.replaceAll('+', '%2B')) ?? source;
  const path = key.startsWith('/') ? key.slice(1) : key;
  return typeof bucket === 'string' && path.startsWith(`${bucket}/`) ? path.slice(bucket.length + 1) : key;
}
