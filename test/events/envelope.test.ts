import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isBucketName } from '../../src/base/bucket-name.ts';
import { unwrap, type Unwrapped } from '../../src/events/envelope.ts';
import type { RecordResult } from '../../src/events/record.ts';
import { circuitOf, type Fault } from '../../src/base/fault.ts';
import { isValidKey } from '../../src/events/fields.ts';
import { awkwardKeys, eventBridgeBody, fixtureNames, formEncoded, inEnvelope, messagesOf, nativeBody } from '../support/event-fixtures.ts';
import { faultOf, recordOf, syntheticBody, trailBody } from '../support/event-fixtures.ts';
import { anyCharacter } from '../support/random/characters.ts';

const TOPIC = 'arn:aws:sns:us-east-1:111122223333:events';
const OUTER_TOPIC = 'arn:aws-us-gov:sns:us-gov-west-1:111122223333:relay.fifo';
const testEvent = { Service: 'Amazon S3', Event: 's3:TestEvent', Time: '2026-03-01T08:30:05.000Z', Bucket: 'media' };
const confirmation = (over: object = {}): object => ({
  Type: 'SubscriptionConfirmation',
  TopicArn: TOPIC,
  Token: 't0k3n',
  Message: 'You …',
  ...over,
});

function faultOfMessage(body: unknown): Fault {
  const unwrapped = unwrap(typeof body === 'string' ? body : JSON.stringify(body));
  if (unwrapped.kind !== 'rejected') throw new Error(`not rejected: ${JSON.stringify(unwrapped)}`);
  return unwrapped.fault;
}

describe('each envelope', () => {
  const rows = [
    ['a notification', nativeBody(), 'native'],
    ['an EventBridge event', eventBridgeBody(), 'eventbridge'],
    ['an audit-trail event', trailBody(), 'trail'],
    ['synthetic records', syntheticBody(), 'synthetic'],
  ] as const;

  test.each(rows)('%s is known, raw and in an SNS envelope', (_, body, dialect) => {
    expect(recordOf(body).dialect).toBe(dialect);
    expect(unwrap(JSON.stringify(inEnvelope(body)))).toMatchObject({
      kind: 'records',
      records: [{ record: { dialect } }],
      topicArn: TOPIC,
    });
  });

  test('an EventBridge event in an SNS envelope is marked, because others may publish to a topic', () => {
    expect(recordOf(eventBridgeBody())).not.toHaveProperty('throughTopic');
    expect(recordOf(inEnvelope(eventBridgeBody()))).toMatchObject({ dialect: 'eventbridge', throughTopic: true });
    expect(recordOf(inEnvelope(inEnvelope(eventBridgeBody())))).toMatchObject({ throughTopic: true });
    expect(recordOf(inEnvelope(nativeBody()))).not.toHaveProperty('throughTopic');
  });

  test.each(awkwardKeys)('brings the key %j through', (key) => {
    const bodies = [
      nativeBody({ key: formEncoded(key) }),
      nativeBody({ key: encodeURIComponent(key) }),
      eventBridgeBody({ key }),
      trailBody({ key }),
      syntheticBody({ key }),
    ];
    for (const body of bodies) {
      for (const wrapped of [body, inEnvelope(body), inEnvelope(inEnvelope(body))]) {
        expect(recordOf(wrapped)).toMatchObject({ key });
      }
    }
  });

  test('S3’s test event is known, raw and in an envelope', () => {
    expect(unwrap(JSON.stringify(testEvent))).toEqual({ kind: 'test-event', bucket: 'media' });
    expect(unwrap(JSON.stringify(inEnvelope(testEvent)))).toEqual({ kind: 'test-event', bucket: 'media', topicArn: TOPIC });
    expect(unwrap(JSON.stringify({ ...testEvent, Bucket: '../x' }))).toEqual({ kind: 'test-event' });
  });

  test('SNS’s confirmations are known', () => {
    expect(unwrap(JSON.stringify(confirmation()))).toEqual({ kind: 'subscription-confirmation', topicArn: TOPIC, token: 't0k3n' });
    expect(unwrap(JSON.stringify(confirmation({ Type: 'UnsubscribeConfirmation' })))).toEqual({
      kind: 'unsubscribe-confirmation',
      topicArn: TOPIC,
    });
  });

  test.each([
    ['no topic', { TopicArn: undefined }],
    ['a topic that is none', { TopicArn: 'arn:aws:sqs:us-east-1:111122223333:events' }],
    ['a topic with a host in its region', { TopicArn: 'arn:aws:sns:evil.example/:111122223333:events' }],
    ['no token', { Token: undefined }],
    ['an empty token', { Token: '' }],
    ['an endless token', { Token: 't'.repeat(2_049) }],
    ['a token that is no text', { Token: 5 }],
  ])('a subscription confirmation with %s is rejected', (_, over) => {
    expect(faultOfMessage(confirmation(over)).code).toBe('message.unknown-wrapper');
  });

  test('the topic is that of the outermost envelope, and left out when it is none', () => {
    expect(unwrap(JSON.stringify(inEnvelope(inEnvelope(nativeBody()), OUTER_TOPIC)))).toMatchObject({ topicArn: OUTER_TOPIC });
    expect(unwrap(JSON.stringify(inEnvelope(nativeBody(), 'x')))).not.toHaveProperty('topicArn');
    expect(unwrap(JSON.stringify(nativeBody()))).not.toHaveProperty('topicArn');
  });

  test.each([
    ['a record without Records', nativeBody().Records[0]],
    ['Records that are no array', { Records: nativeBody().Records[0] }],
    ['an array of records', nativeBody().Records],
    ['an array of bodies', [nativeBody()]],
    ['an array of SNS envelopes', [inEnvelope(nativeBody())]],
    ['a message that is no text', { ...inEnvelope(''), Message: nativeBody() }],
    ['an envelope without a type', { ...inEnvelope(nativeBody()), Type: undefined }],
    ['a CloudEvent around a record', { specversion: '1.0', type: 'x', data: nativeBody().Records[0] }],
    ['a CloudEvent around a body as text', { specversion: '1.0', type: 'x', data: JSON.stringify(nativeBody()) }],
    ['what Lambda receives from a queue', { Records: [{ messageId: 'x', eventSource: 'aws:sqs', body: JSON.stringify(nativeBody()) }] }],
    ['what Lambda receives from a topic', { Records: [{ EventSource: 'aws:sns', Sns: inEnvelope(nativeBody()) }] }],
    ['JSON that was encoded twice', JSON.stringify(JSON.stringify(nativeBody()))],
    ['a batch of CloudEvents', [{ specversion: '1.0', type: 'x', data: nativeBody().Records[0] }]],
  ])('%s is read', (_, body) => {
    expect(recordOf(body)).toEqual(recordOf(nativeBody()));
  });

  test('eight envelopes are opened, a ninth is message.unknown-wrapper', () => {
    const nested = (depth: number): unknown => Array.from({ length: depth }).reduce((body) => inEnvelope(body), nativeBody());
    expect(recordOf(nested(8)).key).toBe('a');
    expect(faultOfMessage(nested(9)).code).toBe('message.unknown-wrapper');
    expect(faultOf([nested(8)])).toMatchObject({ code: 'record.invalid' });
  });
});

describe('a body that is none of them', () => {
  test.each([
    ['nothing', ''],
    ['half a JSON text', '{"Records":['],
    ['JSON and more', '{} {}'],
    ['a byte order mark', '\uFEFF{}'],
    ['1 MiB of garbage', '\u0000\u202e{['.repeat(262_144)],
    ['deep nesting that never ends', '['.repeat(100_000)],
  ])('is message.not-json: %s', (_, body) => {
    expect(faultOfMessage(body).code).toBe('message.not-json');
    expect(faultOfMessage(inEnvelope(body)).code).toBe('message.not-json');
  });

  test.each([
    ['null', null],
    ['an empty array', []],
    ['an empty object', {}],
    ['Records that are none', { Records: 7 }],
    ['empty Records', { Records: [] }],
    ['more Records than a body of events can hold', { Records: Array.from({ length: 20_001 }, () => 0) }],
    ['an SNS type that is none', { Type: 'Alarm', Message: '{}' }],
    ['an envelope without a message', { Type: 'Notification' }],
    ['an envelope whose message is a number', { Type: 'Notification', Message: 7 }],
    ['an EventBridge event that names no object', { ...eventBridgeBody({}, {}, { source: 'aws.ec2' }), detail: { state: 'running' } }],
    ['a CloudEvent about something else', { specversion: '1.0', type: 'order.created', data: { order: 5 } }],
    ['an audit-trail event without detail', trailBody({}, {}, { detail: undefined })],
  ])('is message.unknown-wrapper: %s', (_, body) => {
    expect(faultOfMessage(JSON.stringify(body)).code).toBe('message.unknown-wrapper');
    expect(faultOfMessage(inEnvelope(JSON.stringify(body))).code).toBe('message.unknown-wrapper');
  });

  test.each([
    ['arrays in the body', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['objects in the body', '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000)],
    [
      'arrays in a record',
      `{"Records":[{"eventVersion":"2.1","eventName":"ObjectCreated:Put","s3":${'['.repeat(100_000)}${']'.repeat(100_000)}}]}`,
    ],
  ])('may nest 100,000 %s', (_, body) => {
    for (const fault of faultsOf(unwrap(body))) expect(circuitOf(fault.code)).toBe('never');
  });

  test('shows only a piece of itself, and nothing that a terminal would obey', () => {
    const { reason } = faultOfMessage(`\u001b[2J\u202e\n${'x'.repeat(1_000_000)}`);
    expect(reason).toContain(String.raw`\u{1b}[2J\u{202e}\u{a}xxx`);
    expect(reason.length).toBeLessThan(200);
  });
});

describe('records that are rejected alike', () => {
  const rejected = (count: number, over: (number: number) => object = () => ({})): readonly RecordResult[] => {
    const records = Array.from({ length: count }, (_, number) => ({ s3: {}, eventName: `ObjectCreated:${number}`, ...over(number) }));
    const unwrapped = unwrap(JSON.stringify({ Records: records }));
    return unwrapped.kind === 'records' ? unwrapped.records : [];
  };
  const inBucket = (name: string) => ({ s3: { bucket: { name }, object: {} } });

  test('Fix: share one result with the reason of the first, however many they are', () => {
    const results = rejected(19_000);
    expect(results).toHaveLength(19_000);
    expect(new Set(results).size).toBe(1);
    expect(results[0]).toMatchObject({ ok: false, fault: { code: 'record.invalid' } });
  });

  test('are kept apart by their bucket, because each bucket gets its gap', () => {
    const results = rejected(30, (number) => inBucket(`bucket-${number % 3}`));
    expect(new Set(results).size).toBe(3);
    expect(results.map((result) => (result.ok ? '' : result.bucket))).toEqual(
      Array.from({ length: 30 }, (_, number) => `bucket-${number % 3}`),
    );
  });

  test('do not touch the records between them', () => {
    const unwrapped = unwrap(JSON.stringify({ Records: [null, ...nativeBody().Records, null, { s3: {} }, ...nativeBody().Records] }));
    const kinds =
      unwrapped.kind === 'records' ? unwrapped.records.map((result) => (result.ok ? result.record.key : result.fault.code)) : [];
    expect(kinds).toEqual(['record.invalid', 'a', 'record.invalid', 'record.invalid', 'a']);
  });
});

describe('unwrap is total', () => {
  const fixtures = fixtureNames.flatMap((name) => messagesOf(name).map(({ body }) => body));

  test('over any JSON', () => {
    fc.assert(fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => expectSound(unwrap(JSON.stringify(value)))));
  });

  test('over recorded bodies with a piece of the text replaced', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...fixtures),
        fc.nat(),
        fc.nat(30),
        fc.string({ unit: anyCharacter, maxLength: 8 }),
        (body, at, count, put) => {
          const start = at % body.length;
          expectSound(unwrap(body.slice(0, start) + put + body.slice(start + count)));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test('over recorded bodies with any field replaced by anything', () => {
    const strange = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom('\ud800', 'x'.repeat(2_000), -1, 1e308, { toString: 1, valueOf: 1 }, 'DeleteObjects', '3.0', '%'),
    );
    fc.assert(
      fc.property(fc.constantFrom(...fixtures), fc.nat(), strange, (body, at, value) => {
        expectSound(unwrap(JSON.stringify(withField(JSON.parse(body), at, value))));
      }),
      { numRuns: 2_000 },
    );
  });
});

/** The JSON with its field number `at` (counted over all depths, into SNS messages too) replaced. */
function withField(json: unknown, at: number, value: unknown): unknown {
  const places: (() => void)[] = [];
  const root = { json: structuredClone(json) };
  const visit = (parent: Record<string, unknown>): void => {
    for (const [field, child] of Object.entries(parent)) {
      places.push(() => (parent[field] = value));
      if (typeof child === 'object' && child !== null) visit(child as Record<string, unknown>);
      if (field === 'Message' && typeof child === 'string' && child.startsWith('{')) {
        places.push(() => (parent[field] = JSON.stringify(withField(JSON.parse(child), at, value))));
      }
    }
  };
  visit(root);
  places[at % places.length]!();
  return root.json;
}

function faultsOf(unwrapped: Unwrapped): readonly Fault[] {
  if (unwrapped.kind === 'rejected') return [unwrapped.fault];
  return unwrapped.kind === 'records' ? unwrapped.records.flatMap((result) => (result.ok ? [] : [result.fault])) : [];
}

/** What must hold of any answer. */
function expectSound(unwrapped: Unwrapped): void {
  for (const fault of faultsOf(unwrapped)) {
    expect(circuitOf(fault.code)).toBe('never');
    expect(fault.reason).toMatch(/^[^\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]+$/u);
    expect(fault.reason.length).toBeLessThan(800);
  }
  if (unwrapped.kind !== 'records') return;
  expect(unwrapped.records.length).toBeGreaterThan(0);
  unwrapped.records.forEach(expectSoundResult);
}

function expectSoundResult(result: RecordResult): void {
  if (!result.ok) {
    expect(result.bucket === undefined || isBucketName(result.bucket)).toBe(true);
    return;
  }
  const { bucket, key, change, eventName, eventTimeMs, sizeBytes, etag, versionId, sequencer } = result.record;
  const ignored = change.kind === 'ignored';
  expect(isBucketName(bucket) || (ignored && bucket === '')).toBe(true);
  expect(ignored || change.kind === 'bulk-deleted' ? key === '' : isValidKey(key)).toBe(true);
  expect(eventName.length).toBeLessThanOrEqual(128);
  expect(eventTimeMs === undefined || Number.isSafeInteger(eventTimeMs)).toBe(true);
  expect(sizeBytes === undefined || (Number.isSafeInteger(sizeBytes) && sizeBytes >= 0)).toBe(true);
  for (const id of [etag, versionId, sequencer]) expect(id === undefined || (id !== '' && id.isWellFormed())).toBe(true);
}
