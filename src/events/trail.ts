/**
 * Audit-trail events (CloudTrail data events), as EventBridge delivers them without an input transformer. Shape: “CloudTrail
 * record contents” in the CloudTrail user guide.
 */
import { isJsonObject, type JsonObject, textOf, timeOf, valueAt, type Writer } from './fields.ts';
import { callChange } from './names.ts';
import { recordsOf, type RecordResult } from './record.ts';

/** Parses the audit-trail record of one S3 API call, in its event or alone. */
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
