/**
 * Envelopes: what surrounds the records in the body of a message. The field in the first column identifies each one:
 *
 *   Records      S3's notification, or the routing rule's synthetic records (decided for each record)
 *   Event        S3's test event
 *   Type         SNS: a notification that contains any of these envelopes, or a confirmation
 *   detail-type  EventBridge: S3's own event, or an audit-trail event
 */
import { isBucketName } from '../bucket-name.ts';
import type { Fault, FaultCode } from '../fault.ts';
import { parseEventBridge } from './eventbridge.ts';
import { isJsonObject, kindOf, quoted, valueAt, type JsonObject } from './fields.ts';
import { isNative, parseNative } from './native.ts';
import { rejectedRecord, type Dialect, type RecordResult } from './record.ts';
import { isSynthetic, parseSynthetic } from './synthetic.ts';
import { parseTrail } from './trail.ts';

/** The result of reading a message's body. */
export type Unwrapped =
  /** One result per record, at least one, in the message's order; those that are rejected alike share one. `topicArn`: the topic that sent the message. */
  | { readonly kind: 'records'; readonly records: readonly RecordResult[]; readonly topicArn?: string }
  /** S3 sends it to test the destination when notifications are configured: no object changed. */
  | { readonly kind: 'test-event'; readonly bucket?: string }
  | { readonly kind: 'subscription-confirmation'; readonly topicArn: string; readonly token: string }
  | { readonly kind: 'unsubscribe-confirmation'; readonly topicArn: string }
  /** The body as a whole cannot be read, and never will be. */
  | { readonly kind: 'rejected'; readonly fault: Fault };

/** Maximum number of SNS envelopes around the records: one is usual, two occur when a topic is relayed through another topic. */
const ENVELOPES_MAX = 2;

/** A body has at most 1 MiB, and a record with an event name, a bucket and a key needs more than 52 bytes. */
const RECORDS_MAX = 20_000;

const TOPIC_ARN = /^arn:aws[a-z-]{0,20}:sns:[a-z0-9-]{1,40}:\d{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?$/;
/** SNS tokens have about 250 characters. */
const TOKEN_LENGTH_MAX = 2_048;

/** Reads the body of a message. It never throws: every text has a result. */
export function unwrap(body: string): Unwrapped {
  return unwrapText(body, 0);
}

function unwrapText(text: string, envelopes: number): Unwrapped {
  const parsed = parseJson(text);
  const what = envelopes === 0 ? 'the body' : 'the Message of the SNS envelope';
  if (parsed === undefined) return rejected('message.not-json', `${what} is not JSON: ${quoted(text)}`);
  const { value } = parsed;
  if (!isJsonObject(value)) return rejected('message.unknown-wrapper', `${what} is ${kindOf(value)}, not an object`);
  if (Object.hasOwn(value, 'Records')) return unwrapRecords(value.Records);
  if (value.Event === 's3:TestEvent')
    return { kind: 'test-event', ...(typeof value.Bucket === 'string' && isBucketName(value.Bucket) && { bucket: value.Bucket }) };
  if (typeof value.Type === 'string') return unwrapSns(value, value.Type, envelopes);
  const detailType = value['detail-type'];
  if (typeof detailType === 'string') return unwrapEvent(value, detailType);
  return rejected('message.unknown-wrapper', `${what} has neither Records nor a Type with a Message nor a detail-type`);
}

function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function unwrapRecords(records: unknown): Unwrapped {
  if (!Array.isArray(records)) return rejected('message.unknown-wrapper', `Records is ${kindOf(records)}, not an array`);
  if (records.length === 0) return rejected('message.unknown-wrapper', 'Records is empty');
  if (records.length > RECORDS_MAX)
    return rejected('message.unknown-wrapper', `Records has ${records.length} entries, too many to be events`);
  // the usual message has one record, which shares its result with none
  if (records.length === 1) return { kind: 'records', records: [parseRecord(records[0])] };
  const share = sharing();
  return { kind: 'records', records: records.map((record) => share(parseRecord(record))) };
}

/**
 * Gives the records of one body that are rejected alike (same code, dialect and bucket) the result of the first of them,
 * because a body has room for 20,000 and their reasons would take twenty times its memory.
 */
function sharing(): (result: RecordResult) => RecordResult {
  const known = new Map<string, RecordResult>();
  return (result) => {
    if (result.ok) return result;
    const likeness = `${result.fault.code} ${result.dialect ?? ''} ${result.bucket ?? ''}`;
    const first = known.get(likeness) ?? result;
    known.set(likeness, first);
    return first;
  };
}

function parseRecord(value: unknown): RecordResult {
  if (!isJsonObject(value)) return rejectedRecord('record.invalid', `the record is ${kindOf(value)}, not an object`);
  if (isNative(value)) return withDialect(parseNative(value), 'native');
  if (isSynthetic(value)) return withDialect(parseSynthetic(value), 'synthetic');
  return rejectedRecord('record.invalid', `eventSource is ${quoted(value.eventSource)}, not S3`, valueAt(value, 's3', 'bucket', 'name'));
}

/** A record that cannot be read is still counted under its dialect. */
function withDialect(result: RecordResult, dialect: Dialect): RecordResult {
  return result.ok ? result : { ...result, dialect };
}

function unwrapEvent(event: JsonObject, detailType: string): Unwrapped {
  if (/^AWS .* via CloudTrail$/.test(detailType)) {
    const eventSource = valueAt(event, 'detail', 'eventSource');
    if (eventSource === 's3.amazonaws.com')
      return { kind: 'records', records: parseTrail(event).map((result) => withDialect(result, 'trail')) };
    return rejected('message.unknown-wrapper', `the audit-trail event's eventSource is ${quoted(eventSource)}, not s3.amazonaws.com`);
  }
  if (event.source === 'aws.s3') return { kind: 'records', records: [withDialect(parseEventBridge(event, detailType), 'eventbridge')] };
  return rejected('message.unknown-wrapper', `the EventBridge event's source is ${quoted(event.source)}, not aws.s3`);
}

function unwrapSns(envelope: JsonObject, type: string, envelopes: number): Unwrapped {
  const topicArn = topicArnOf(envelope);
  if (type === 'Notification') return unwrapNotification(envelope, topicArn, envelopes);
  if (type !== 'SubscriptionConfirmation' && type !== 'UnsubscribeConfirmation') {
    return rejected('message.unknown-wrapper', `the Type of the SNS envelope is ${quoted(type)}`);
  }
  if (topicArn === undefined) return rejected('message.unknown-wrapper', `the TopicArn of the ${type} is ${quoted(envelope.TopicArn)}`);
  if (type === 'UnsubscribeConfirmation') return { kind: 'unsubscribe-confirmation', topicArn };
  const { Token: token } = envelope;
  if (!isToken(token)) return rejected('message.unknown-wrapper', 'the SubscriptionConfirmation has no Token that SNS could have made');
  return { kind: 'subscription-confirmation', topicArn, token };
}

function unwrapNotification(envelope: JsonObject, topicArn: string | undefined, envelopes: number): Unwrapped {
  const { Message: message } = envelope;
  if (typeof message !== 'string') {
    return rejected('message.unknown-wrapper', `the Message of the SNS envelope is ${kindOf(message)}, not a text`);
  }
  if (envelopes === ENVELOPES_MAX) {
    return rejected('message.too-deep', `there are more than ${ENVELOPES_MAX} SNS envelopes around the event`);
  }
  const unwrapped = unwrapText(message, envelopes + 1);
  if (unwrapped.kind !== 'records') return unwrapped;
  const records = unwrapped.records.some(isEventBridges) ? unwrapped.records.map(throughTopic) : unwrapped.records;
  // the queue is subscribed to the outermost topic
  const outermost = topicArn ?? unwrapped.topicArn;
  return outermost === undefined ? { kind: 'records', records } : { kind: 'records', records, topicArn: outermost };
}

/** Marks EventBridge records, which anyone who may publish to the topic can forge. Native notifications through a topic stay as they are: a topic is one of their sources. */
function throughTopic(result: RecordResult): RecordResult {
  return isEventBridges(result) ? { ...result, record: { ...result.record, throughTopic: true } } : result;
}

function isEventBridges(result: RecordResult): result is Extract<RecordResult, { ok: true }> {
  return result.ok && result.record.dialect === 'eventbridge';
}

function topicArnOf({ TopicArn: topicArn }: JsonObject): string | undefined {
  return typeof topicArn === 'string' && TOPIC_ARN.test(topicArn) ? topicArn : undefined;
}

function isToken(token: unknown): token is string {
  return typeof token === 'string' && token !== '' && token.length <= TOKEN_LENGTH_MAX;
}

function rejected(code: FaultCode, reason: string): Unwrapped {
  return { kind: 'rejected', fault: { code, reason } };
}
