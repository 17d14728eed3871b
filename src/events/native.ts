/**
 * Records that name their object below `s3`, as S3's own notifications do. Shape: “Event message structure” in the S3 user
 * guide, which guarantees that minor versions only add fields. Records that a routing rule's input transformer makes from
 * audit-trail events look similar (`synthetic`), except that they may have `cloudRegion` and `storage` instead, a path that
 * the transformer did not find is an empty string, and ETags are always empty.
 */
import { isBlank, isJsonObject, type JsonObject, textOf, valueAt, type Spelling, type Writer } from './fields.ts';
import { callChange, isCall, nativeChange } from './names.ts';
import { recordsOf, type RecordResult } from './record.ts';

const KNOWN_VERSION = /^2(?:\.\d+)*$/;

/** Stores that form-url-encode keys as S3 does, by the source that their records name. */
const ENCODERS = new Set(['minio:s3', 'rustfs:s3']);

/** Parses one record of a notification, or a synthetic one, which has neither S3's source nor its version, and the name of a call. */
export function parseNative(value: JsonObject, writer: Writer): readonly RecordResult[] {
  const storage = isJsonObject(value.s3) ? value.s3 : value.storage;
  const object = valueAt(storage, 'object');
  const eventName = textOf(value.eventName);
  const source = textOf(value.eventSource);
  const facts = {
    bucket: valueAt(storage, 'bucket', 'name'),
    key: valueAt(object, 'key'),
    versionId: valueAt(object, 'versionId'),
    eventName,
    eventTime: value.eventTime,
  };
  const isNative = source.endsWith(':s3') || !isBlank(value.eventVersion) || eventName.includes(':');
  if (!isNative) return recordsOf({ ...facts, ...syntheticFacts(value, object, writer) });
  return recordsOf({
    ...facts,
    dialect: 'native',
    change: nativeChange(eventName),
    spelling: spellingOf(source, writer),
    isOwnForm: source.endsWith(':s3') && KNOWN_VERSION.test(textOf(value.eventVersion)),
    etag: valueAt(object, 'eTag'),
    sizeBytes: valueAt(object, 'size'),
    sequencer: valueAt(object, 'sequencer'),
  });
}

function spellingOf(source: string, writer: Writer): Spelling {
  const isEncoder = ENCODERS.has(source) || (writer === 'aws' && source === 'aws:s3');
  return isEncoder && writer !== 'anyone' ? 'form' : 'either';
}

/** The facts that differ in a synthetic record. */
function syntheticFacts({ eventSource, eventName, errorCode }: JsonObject, object: unknown, writer: Writer) {
  const name = textOf(eventName);
  const isRouted = writer === 'aws' && isCall(name) && (isBlank(eventSource) || eventSource === 's3.amazonaws.com');
  const call = { eventName: name, errorCode, key: valueAt(object, 'key'), deleteMarker: valueAt(object, 'isDeleteMarker') };
  return {
    dialect: 'synthetic',
    change: callChange(call),
    spelling: isRouted ? 'raw' : 'either',
    isOwnForm: false,
  } as const;
}
