/** S3's EventBridge events. Shape: “EventBridge event message structure” in the S3 user guide. */
import { isJsonObject, type JsonObject, textOf, valueAt, type Writer } from './fields.ts';
import { eventBridgeChange } from './names.ts';
import { recordsOf, type RecordResult } from './record.ts';

/** Parses an event, or only its detail, which a rule may pass on alone. The record's event name is the event's detail-type. */
export function parseEventBridge(event: JsonObject, writer: Writer): readonly RecordResult[] {
  const detail = isJsonObject(event.detail) ? event.detail : event;
  const eventName = textOf(event['detail-type']);
  const isS3s = event.source === 'aws.s3';
  const object = valueAt(detail, 'object');
  return recordsOf({
    dialect: 'eventbridge',
    bucket: valueAt(detail, 'bucket', 'name'),
    eventName,
    change: eventBridgeChange(eventName, { reason: detail.reason, deletionType: detail['deletion-type'] }),
    key: valueAt(object, 'key'),
    spelling: writer === 'aws' && isS3s ? 'raw' : 'either',
    eventTime: event.time,
    isOwnForm: isS3s,
    etag: valueAt(object, 'etag'),
    sizeBytes: valueAt(object, 'size'),
    versionId: valueAt(object, 'version-id'),
    sequencer: valueAt(object, 'sequencer'),
  });
}
