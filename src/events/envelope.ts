/**
 * Envelopes: what surrounds the records in a message body. Tally recognises them by their contents, because bridges drop and
 * add fields at will:
 *
 *   Records, or an array   records, or bodies of any of these kinds
 *   s3 or storage          S3's notification of one object, or the routing rule's synthetic record
 *   detail                 EventBridge: S3's own event, or an audit-trail event; either may also come without its envelope
 *   Event                  S3's test event
 *   tallyProbe             what Tally publishes itself to check that a topic delivers
 *   Type, Message          SNS: a notification that contains any of these, or a confirmation
 *   data, data_base64      a CloudEvent that contains any of these
 *   Sns, body              what Lambda receives from a topic or a queue, and passes on
 *   a text                 JSON that was encoded twice
 */
import { isBucketName } from '../base/bucket-name.ts';
import type { Fault, FaultCode } from '../base/fault.ts';
import { parseEventBridge, parseNative, parseTrail } from './dialects.ts';
import { isJsonObject, kindOf, quoted, textOf, type JsonObject, type Writer } from './fields.ts';
import { rejectedRecord, type RecordResult, changes } from './record.ts';
import { z } from 'zod';

/** The result of reading a message's body. */
export type Unwrapped =
  /** One result per record, at least one, in the message's order; records rejected for the same reason share one. `topicArn`: the topic that sent the message. */
  | { readonly kind: 'records'; readonly records: readonly RecordResult[]; readonly topicArn?: string }
  /** S3 sends it to test the destination when notifications are configured: no object changed. */
  | { readonly kind: 'test-event'; readonly bucket?: string; readonly topicArn?: string }
  /** A message that Tally published through one of its topics. */
  | ({ readonly kind: 'probe' } & Probe)
  | { readonly kind: 'subscription-confirmation'; readonly topicArn: string; readonly token: string }
  | { readonly kind: 'unsubscribe-confirmation'; readonly topicArn: string }
  /** The body as a whole cannot be read, and never will be. */
  | { readonly kind: 'rejected'; readonly fault: Fault };

/** Maximum number of envelopes around the records. One is usual; a relayed topic or a bridge adds its own. */
const ENVELOPES_MAX = 8;

/** A body has at most 1 MiB, and a record with an event name, a bucket and a key needs more than 52 bytes. */
const RECORDS_MAX = 20_000;

const TOPIC_ARN = /^arn:aws[a-z-]{0,20}:sns:[a-z0-9-]{1,40}:\d{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?$/;
/** SNS tokens have about 250 characters. */
const TOKEN_LENGTH_MAX = 2_048;

/** Reads a message's body. It never throws: every text has a result. `writer`: who writes the records. */
export function unwrap(body: string, writer: Writer = 'aws'): Unwrapped {
  return unwrapText(body, { writer, envelopes: 0 });
}

interface Depth {
  readonly writer: Writer;
  readonly envelopes: number;
}

function unwrapText(text: string, depth: Depth): Unwrapped {
  const parsed = parseJson(text);
  if (parsed === undefined) return rejected('message.not-json', `${whatAt(depth)} is not JSON: ${quoted(text)}`);
  return unwrapValue(parsed.value, depth);
}

function unwrapValue(value: unknown, depth: Depth): Unwrapped {
  if (Array.isArray(value)) return unwrapRecords(value, depth);
  if (typeof value === 'string') return unwrapContent(value, undefined, depth);
  if (!isJsonObject(value)) return rejected('message.unknown-wrapper', `${whatAt(depth)} is ${kindOf(value)}, not an object`);
  const records = isFilled(value.Records) ? undefined : parseRecord(value, depth.writer);
  if (records !== undefined) return { kind: 'records', records };
  if (Object.hasOwn(value, 'Records')) return unwrapRecords(isJsonObject(value.Records) ? [value.Records] : value.Records, depth);
  const probe = probeIn(value);
  return probe === undefined ? unwrapEnvelope(value, depth) : { kind: 'probe', ...probe };
}

/** Whether Records holds anything. */
function isFilled(records: unknown): boolean {
  return isJsonObject(records) || (Array.isArray(records) && records.length > 0);
}

function unwrapEnvelope(value: JsonObject, depth: Depth): Unwrapped {
  const { Event: event, Type: type, Bucket: bucket } = value;
  if (event === 's3:TestEvent') return { kind: 'test-event', ...(isBucketName(textOf(bucket)) && { bucket: textOf(bucket) }) };
  if (type === 'SubscriptionConfirmation' || type === 'UnsubscribeConfirmation') return unwrapConfirmation(value, type);
  const content = contentOf(value);
  if (content !== undefined) return unwrapContent(content, topicArnOf(value), depth);
  return rejected('message.unknown-wrapper', `${whatAt(depth)} has neither Records nor a record nor a Message`);
}

function contentOf({ Message: message, data, Sns: sns, body, data_base64: base64 }: JsonObject): unknown {
  return message ?? data ?? sns ?? body ?? base64Of(base64);
}

function base64Of(text: unknown): string | undefined {
  return typeof text === 'string' ? Buffer.from(text, 'base64').toString() : undefined;
}

function whatAt({ envelopes }: Depth): string {
  return envelopes === 0 ? 'the body' : 'the content of the envelope';
}

function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function unwrapRecords(records: unknown, depth: Depth): Unwrapped {
  if (!Array.isArray(records)) return rejected('message.unknown-wrapper', `Records is ${kindOf(records)}, not an array`);
  if (records.length === 0) return rejected('message.unknown-wrapper', 'there are no records');
  if (records.length > RECORDS_MAX)
    return rejected('message.unknown-wrapper', `there are ${records.length} records, too many to be events`);
  // the usual message has one record, which has nothing to share
  if (records.length === 1) return { kind: 'records', records: resultsOf(records[0], depth) };
  const share = sharing();
  return { kind: 'records', records: records.flatMap((record) => resultsOf(record, depth).map(share)) };
}

/**
 * Lets the records of a body that are rejected for the same reason (same code, dialect and bucket) share the first one's result,
 * because 20,000 fit into a body, and their reasons would take twenty times its memory.
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

/** The results of one element of Records or of an array: a record, or a body with records. */
function resultsOf(element: unknown, { writer, envelopes }: Depth): readonly RecordResult[] {
  if (!isJsonObject(element) && !Array.isArray(element))
    return [rejectedRecord('record.invalid', `the record is ${kindOf(element)}, not an object`)];
  const records = isJsonObject(element) ? parseRecord(element, writer) : undefined;
  if (records !== undefined) return records;
  if (envelopes === ENVELOPES_MAX) return [rejectedRecord('record.invalid', 'the record is in too many envelopes')];
  const unwrapped = unwrapValue(element, { writer, envelopes: envelopes + 1 });
  if (unwrapped.kind === 'records') return unwrapped.records;
  return [rejectedRecord('record.invalid', unwrapped.kind === 'rejected' ? unwrapped.fault.reason : `the record is a ${unwrapped.kind}`)];
}

/** The results of a record in one of the dialects; undefined if it is in none of them. */
function parseRecord(value: JsonObject, writer: Writer): readonly RecordResult[] | undefined {
  if (isNative(value)) return parseNative(value, writer);
  if (isTrail(value)) return parseTrail(value, writer);
  if (isEventBridge(value)) return parseEventBridge(value, writer);
  return undefined;
}

function isNative({ s3, storage }: JsonObject): boolean {
  return isJsonObject(s3) || isJsonObject(storage);
}

function isTrail(value: JsonObject): boolean {
  const isRouted = isJsonObject(value.detail) && /^AWS .* via CloudTrail$/.test(textOf(value['detail-type']));
  return isRouted || isJsonObject(detailOf(value).requestParameters);
}

function isEventBridge(value: JsonObject): boolean {
  const { bucket, object } = detailOf(value);
  return isJsonObject(bucket) && isJsonObject(object);
}

function detailOf(value: JsonObject): JsonObject {
  return isJsonObject(value.detail) ? value.detail : value;
}

function unwrapConfirmation(envelope: JsonObject, type: 'SubscriptionConfirmation' | 'UnsubscribeConfirmation'): Unwrapped {
  const topicArn = topicArnOf(envelope);
  if (topicArn === undefined) return rejected('message.unknown-wrapper', `the TopicArn of the ${type} is ${quoted(envelope.TopicArn)}`);
  if (type === 'UnsubscribeConfirmation') return { kind: 'unsubscribe-confirmation', topicArn };
  const { Token: token } = envelope;
  if (!isToken(token)) return rejected('message.unknown-wrapper', 'the SubscriptionConfirmation has no Token that SNS could have made');
  return { kind: 'subscription-confirmation', topicArn, token };
}

/** Reads the content of an envelope, such as the Message of SNS or the data of a CloudEvent. */
function unwrapContent(content: unknown, topicArn: string | undefined, { writer, envelopes }: Depth): Unwrapped {
  if (envelopes === ENVELOPES_MAX)
    return rejected('message.unknown-wrapper', `there are more than ${ENVELOPES_MAX} envelopes around the event`);
  const depth = { writer, envelopes: envelopes + 1 };
  const unwrapped = typeof content === 'string' ? unwrapText(content, depth) : unwrapValue(content, depth);
  if (unwrapped.kind !== 'records' && unwrapped.kind !== 'test-event') return unwrapped;
  // the queue is subscribed to the outermost topic
  const outermost = topicArn ?? unwrapped.topicArn;
  const from = outermost === undefined ? unwrapped : { ...unwrapped, topicArn: outermost };
  return from.kind === 'records' && from.records.some(isOfEventBridge) ? { ...from, records: from.records.map(throughTopic) } : from;
}

/** Marks EventBridge records in an envelope, which anyone who may publish to the topic can forge. Native notifications through a topic stay as they are: a topic is one of their sources. */
function throughTopic(result: RecordResult): RecordResult {
  return isOfEventBridge(result) ? { ...result, record: { ...result.record, throughTopic: true } } : result;
}

function isOfEventBridge(result: RecordResult): result is Extract<RecordResult, { ok: true }> {
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

const probeSchema = z.object({ topicArn: z.string(), sentAtMs: z.number() });
type Probe = z.infer<typeof probeSchema>;

/** The message of a probe, which Tally publishes through its own topic: its arrival proves that the topic delivers to the queue, policies and KMS keys included. */
export function probeText(probe: Probe): string {
  return JSON.stringify({ tallyProbe: probe });
}

/** The probe that a body contains; undefined if it contains none. */
function probeIn({ tallyProbe }: JsonObject): Probe | undefined {
  return tallyProbe === undefined ? undefined : probeSchema.safeParse(tallyProbe).data;
}

// ── what a store posted ────────────────────────────────────────────────────────────────────────────────────────────

const WEBHOOK = 'tally-webhook';

type Attributes = Readonly<Record<string, { readonly dataType: string; readonly stringValue?: string }>>;

/** The attributes of a message with what was posted to the webhook of this bucket. */
export function postedTo(bucket: string): Attributes {
  return { [WEBHOOK]: { dataType: 'String', stringValue: bucket } };
}

/** The bucket to whose webhook the message was posted; undefined if it came another way. */
export function webhookOf(attributes: Attributes): string | undefined {
  return attributes[WEBHOOK]?.stringValue;
}

/**
 * Reads what a store has posted to the webhook of a bucket. The receiver writes the body to the bucket queue as it is, with one message
 * attribute that names the bucket:
 *
 *   store ──POST /events/photos──► receiver ──body, tally-webhook=photos──► bucket queue ──► unwrapPosted
 *
 * Anyone with a token can post anything, so Tally believes nothing, not even the time: each record only says that its key
 * changed before it was posted, in either spelling, and a record of another bucket, whose token this is not, says nothing. Others who may
 * send to the queue can write the attribute too, and gain nothing by it: it only takes belief away. Messages about topics and
 * subscriptions are rejected: a webhook has neither.
 */
export function unwrapPosted(body: string, bucket: string): Unwrapped {
  const unwrapped = unwrap(body, 'anyone');
  switch (unwrapped.kind) {
    case 'records': {
      // records that are rejected for the same reason share one result
      const known = new Map(unwrapped.records.map((result) => [result, posted(result, bucket)]));
      return { kind: 'records', records: unwrapped.records.map((result) => known.get(result) ?? result) };
    }
    case 'rejected':
      return unwrapped;
    case 'test-event':
      return { kind: 'records', records: [{ ok: true, record: { ...NOTHING, bucket, change: changes.noEffect } }] };
    case 'probe':
    case 'subscription-confirmation':
    case 'unsubscribe-confirmation':
      return {
        kind: 'rejected',
        fault: { code: 'message.unknown-wrapper', reason: `a webhook accepts only records, and this is a ${unwrapped.kind}` },
      };
  }
}

const NOTHING = { dialect: 'webhook', key: '', eventName: '' } as const;

/** A rejected record keeps its bucket only if that is this one: a token must not open a gap of another bucket. */
function posted(result: RecordResult, bucket: string): RecordResult {
  if (!result.ok) return { ok: false, fault: result.fault, dialect: 'webhook', ...(result.bucket === bucket && { bucket }) };
  const { key, eventName, change } = result.record;
  if (change.kind !== 'ignored' && result.record.bucket !== bucket)
    return { ok: true, record: { ...NOTHING, bucket, change: changes.otherBucket } };
  return { ok: true, record: { ...NOTHING, bucket, key, eventName, change } };
}
