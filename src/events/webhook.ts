/**
 * What a store has posted to the webhook of a bucket. The receiver writes the body to the bucket queue as it is, with one message
 * attribute that names the bucket:
 *
 *   store ──POST /events/photos──► receiver ──body, tally-webhook=photos──► bucket queue ──► unwrapPosted
 *
 * Anyone with a token can post anything, so Tally believes nothing, not even the time: each record only says that its key
 * changed before it was posted, in either spelling, and a record of another bucket, whose token this is not, says nothing. Others who may
 * send to the queue can write the attribute too, and gain nothing by it: it only takes belief away.
 */
import { unwrap, type Unwrapped } from './envelope.ts';
import { changes, type RecordResult } from './record.ts';

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

/** Reads what was posted to the webhook of this bucket. Messages about topics and subscriptions are rejected: a webhook has neither. */
export function unwrapPosted(body: string, bucket: string): Unwrapped {
  const unwrapped = unwrap(body, 'anyone');
  switch (unwrapped.kind) {
    case 'records': {
      // records that are rejected for the same reason share one result (envelope.ts)
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
