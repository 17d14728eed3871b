import { readFileSync } from 'node:fs';
import { unwrap } from '../../src/events/envelope.ts';
import type { ChangeRecord, RecordResult } from '../../src/events/record.ts';

export const fixtureNames = [
  'aws-eventbridge',
  'aws-notification',
  'aws-routed',
  'aws-trail',
  'localstack-eventbridge-unversioned',
  'localstack-eventbridge-versioned',
  'localstack-notification-unversioned',
  'localstack-notification-versioned',
  'localstack-routed',
  'localstack-topic',
  'localstack-trail',
  'other-stores',
] as const;

interface FixtureMessage {
  readonly operation: string;
  readonly body: string;
  /** In the files also the store's version, and whether the body was captured, documented or made up. */
  readonly provenance: { readonly store: string };
  /** How the store spells keys, where it is not AWS's. */
  readonly keys?: 'form' | 'raw';
}

/** The messages of one fixture file, in order. */
export function messagesOf(name: (typeof fixtureNames)[number]): readonly FixtureMessage[] {
  const text = readFileSync(new URL(`../fixtures/events/${name}.json`, import.meta.url), 'utf8');
  type Stored = Omit<FixtureMessage, 'body'> & { readonly body: unknown };
  const { provenance, messages } = JSON.parse(text) as Pick<FixtureMessage, 'provenance'> & { readonly messages: readonly Stored[] };
  return messages.map(({ body, ...message }) => ({
    ...message,
    provenance: message.provenance ?? provenance,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  }));
}

/** The results of a body that must hold records. */
export function resultsOf(body: unknown, isAws = true): readonly RecordResult[] {
  const unwrapped = unwrap(typeof body === 'string' ? body : JSON.stringify(body), isAws ? 'aws' : 'store');
  if (unwrapped.kind !== 'records') throw new Error(`no records: ${JSON.stringify(unwrapped)}`);
  return unwrapped.records;
}

/** The one record of a body that must hold exactly one good one. */
export function recordOf(body: unknown): ChangeRecord {
  const [result, ...others] = resultsOf(body);
  if (result === undefined || !result.ok || others.length > 0)
    throw new Error(`not one good record: ${JSON.stringify([result, ...others])}`);
  return result.record;
}

/** The fault of a body that must hold exactly one bad record; with its bucket if it is known. */
export function faultOf(body: unknown): { readonly code: string; readonly reason: string; readonly bucket?: string } {
  const [result, ...others] = resultsOf(body);
  if (result === undefined || result.ok || others.length > 0) throw new Error(`not one bad record: ${JSON.stringify([result, ...others])}`);
  return { ...result.fault, ...(result.bucket !== undefined && { bucket: result.bucket }) };
}

/** `body` in an SNS envelope. */
export function inEnvelope(body: unknown, topicArn = 'arn:aws:sns:us-east-1:111122223333:events'): Record<string, string> {
  return {
    Type: 'Notification',
    MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
    TopicArn: topicArn,
    Subject: 'Amazon S3 Notification',
    Message: typeof body === 'string' ? body : JSON.stringify(body),
    Timestamp: '2026-03-01T08:30:06.000Z',
    SignatureVersion: '1',
    Signature: 'EXAMPLE==',
  };
}

/** A notification of one `ObjectCreated:Put`, with `object` and `record` laid over it. */
export function nativeBody(object: object = {}, record: object = {}): { Records: Record<string, unknown>[] } {
  return {
    Records: [
      {
        eventVersion: '2.1',
        eventSource: 'aws:s3',
        eventTime: '2026-03-01T08:30:05.123Z',
        eventName: 'ObjectCreated:Put',
        s3: { bucket: { name: 'media' }, object: { key: 'a', size: 1, eTag: 'e', sequencer: '0069A3F9CD1F7CED91', ...object } },
        ...record,
      },
    ],
  };
}

/** S3's EventBridge event “Object Created”, with `object`, `detail` and `event` laid over it. */
export function eventBridgeBody(object: object = {}, detail: object = {}, event: object = {}): Record<string, unknown> {
  return {
    version: '0',
    'detail-type': 'Object Created',
    source: 'aws.s3',
    time: '2026-03-01T08:30:05Z',
    detail: {
      bucket: { name: 'media' },
      object: { key: 'a', size: 1, etag: 'e', sequencer: '0069A3F9CD1F7CED91', ...object },
      reason: 'PutObject',
      ...detail,
    },
    ...event,
  };
}

/** An audit-trail event of PutObject, with `parameters` and `detail` laid over it. */
export function trailBody(parameters: object = {}, detail: object = {}, event: object = {}): Record<string, unknown> {
  return {
    version: '0',
    'detail-type': 'AWS API Call via CloudTrail',
    source: 'aws.s3',
    time: '2026-03-01T08:30:07Z',
    detail: {
      eventVersion: '1.11',
      eventSource: 's3.amazonaws.com',
      eventName: 'PutObject',
      eventTime: '2026-03-01T08:30:05Z',
      requestParameters: { bucketName: 'media', key: 'a', ...parameters },
      responseElements: null,
      ...detail,
    },
    ...event,
  };
}

/** A synthetic record of PutObject, with `object` and `record` laid over it. */
export function syntheticBody(object: object = {}, record: object = {}): { Records: Record<string, unknown>[] } {
  return {
    Records: [
      {
        awsRegion: 'us-west-2',
        eventName: 'PutObject',
        eventTime: '2026-03-01T08:30:05Z',
        s3: { bucket: { name: 'media' }, object: { eTag: '', isDeleteMarker: '', key: 'a', versionId: '', ...object } },
        ...record,
      },
    ],
  };
}

/** The keys that have been seen to go wrong somewhere. */
export const awkwardKeys = [
  '..',
  '../x',
  './a',
  '\u0001',
  'a b',
  'a+b',
  '100%',
  'a%20b',
  'a//b',
  'trailing/',
  'ünï',
  '😀',
  '\uFFFD\u{10000}',
  'x'.repeat(1_024),
  'ü'.repeat(512),
  '"',
  '\\',
  'a\nb',
  'é'.normalize('NFC'),
  'é'.normalize('NFD'),
  '__proto__',
  'constructor',
];

/** Form-url-encoding as S3's notifications do it: slashes are left alone, a space is a plus. */
export function formEncoded(key: string): string {
  return encodeURIComponent(key).replaceAll('%2F', '/').replaceAll('%20', '+');
}

/** The body as the store sends it of another key: spelled as it spells keys, and wherever it names bucket and key. */
export function bodyOf({ body, keys }: FixtureMessage, named: { readonly bucket: string; readonly key: string }): string {
  const key = keys === 'raw' ? named.key : formEncoded(named.key);
  return JSON.stringify(JSON.parse(body), (name, value: unknown) => {
    // SNS sends what it was given as a text
    if (name === 'Message' && typeof value === 'string') return bodyOf({ body: value, keys } as FixtureMessage, named);
    if (name !== 's3') return value;
    const { bucket, object, ...more } = value as { readonly bucket: object; readonly object: object };
    return { ...more, bucket: { ...bucket, name: named.bucket }, object: { ...object, key } };
  });
}
