/** Bodies of the kinds that cost a receiver most, each as large as SQS allows. */
import { sequencerOf } from '../../../src/demo/clock.ts';

/** SQS's limit for a body, in bytes. */
const BODY_BYTES_MAX = 1_048_576;

/** Fills a body with as many items as it has room for. */
function filled(before: string, itemOf: (number: number) => string, after: string, bytesMax = BODY_BYTES_MAX): string {
  const items: string[] = [];
  let sizeBytes = Buffer.byteLength(before) + Buffer.byteLength(after);
  for (;;) {
    const item = items.length === 0 ? itemOf(0) : `,${itemOf(items.length)}`;
    sizeBytes += Buffer.byteLength(item);
    if (sizeBytes > bytesMax) return `${before}${items.join('')}${after}`;
    items.push(item);
  }
}

function records(itemOf: (number: number) => string, share = 1): string {
  return filled('{"Records":[', itemOf, ']}', share * BODY_BYTES_MAX);
}

/** What repeats fills the room between the two texts. */
function between(before: string, unit: string, after: string): string {
  return before + unit.repeat((BODY_BYTES_MAX - Buffer.byteLength(before + after)) / Buffer.byteLength(unit)) + after;
}

/** The body in an SNS envelope. */
function inEnvelope(body: string): string {
  return JSON.stringify({ Type: 'Notification', TopicArn: 'arn:aws:sns:us-east-1:000000000000:t', Message: body });
}

const withoutFields = (): string => '{"eventVersion":"2.1","eventName":"ObjectCreated:Put"}';

const PUT = '"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put"';

/** Rejected as a whole, or record by record. None of them names the bucket of somebody. */
export function rejectedBodies(): Readonly<Record<string, string>> {
  const rejected = {
    'records without fields': records(withoutFields),
    'records of other reasons': records((number) => `{"eventVersion":"9.${number}","eventName":"ObjectCreated:Put"}`),
    'records of many buckets': records((number) => `{"eventVersion":"9.0","s3":{"bucket":{"name":"other-${number}"}}}`),
    'records of long reasons': records((number) => `{"eventSource":"${'x'.repeat(60)}${number}","a":1}`),
    'too many records': records(() => '{}'),
    'too many records of many shapes': records((number) => `{"k${number}":0}`),
    'many fields': filled('{', (number) => `"field${number}":${number}`, '}'),
    'many numbered fields': filled('{', (number) => `"${number * 7}":0`, '}'),
    'deep arrays': between('{"Records":', '[', ''),
    'whole deep arrays': `{"Records":${'['.repeat(BODY_BYTES_MAX * 0.47)}${']'.repeat(BODY_BYTES_MAX * 0.47)}}`,
    'deep objects': `${'{"a":'.repeat(BODY_BYTES_MAX * 0.16)}0${'}'.repeat(BODY_BYTES_MAX * 0.16)}`,
    'a huge number': between('{"Records":[', '1', ']}'),
    escapes: between('{"Records":"', '\\"', '"}'),
    quotes: between('', '"', ''),
    'white space': between('', ' ', ''),
    'wide characters': between('', '日', ''),
    'one wide character': between('{"Records":"日', 'a', '"}'),
    'combining marks': between('{"Type":"', '\u0301', '"}'),
    'no JSON': between('H4sIAAAAAAAA', 'Zm9vYmFyMTIz', ''),
    'a long EventBridge event': between('{"source":"aws.s3","detail-type":"Object Created","detail":{"object":{"key":"', 'k', '"}}}'),
    'a small one': 'not json',
  };
  return {
    ...rejected,
    // each quote in an envelope takes a byte more
    'records without fields, enveloped': inEnvelope(records(withoutFields, 0.85)),
    'deep arrays, enveloped': inEnvelope(rejected['whole deep arrays']),
  };
}

/** Read and handled: events of buckets that are not connected, and events that change nothing. */
export function acceptedBodies(): Readonly<Record<string, string>> {
  return {
    'events of another bucket': records(() => `{${PUT},"s3":{"bucket":{"name":"other-bucket"},"object":{"key":"k"}}}`),
    'huge numbers': records(() => `{${PUT},"s3":{"bucket":{"name":"other"},"object":{"key":"k","size":1e400}}}`),
    'events with wrong escapes': records(() => `{${PUT},"s3":{"bucket":{"name":"other"},"object":{"key":"%ed%a0%80"}}}`),
    'events of many buckets': records((number) => `{${PUT},"s3":{"bucket":{"name":"other-${number}"},"object":{"key":"k"}}}`),
    'events without effect': records((number) => `{"eventName":"Nothing${number}","padding":"${'x'.repeat(30)}"}`),
  };
}

/** An event of a connected bucket each, which the index is given: as many as fit, of the longest keys. */
export function heavyBody(bucket: string): string {
  const nowMs = Date.now();
  const eventTime = new Date(nowMs).toISOString();
  return records((number) => {
    const key = `${String(number).padStart(8, '0')}${'k'.repeat(1_016)}`;
    return `{${PUT},"eventTime":"${eventTime}","s3":{"bucket":{"name":"${bucket}"},"object":{"key":"${key}","size":1,"eTag":"e","sequencer":"${sequencerOf(nowMs * 1_000 + number)}"}}}`;
  });
}
