/** What each dialect says: how its keys are spelled, what its names mean, and what is read of a record that is not as S3 writes it. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { callChange, eventBridgeChange, nativeChange } from '../../src/events/dialects.ts';
import { decodeFormKey, isValidKey, keysOf } from '../../src/events/fields.ts';
import {
  eventBridgeBody,
  faultOf,
  formEncoded,
  nativeBody,
  recordOf,
  resultsOf,
  syntheticBody,
  trailBody,
} from '../support/event-fixtures.ts';
import { anyCharacter } from '../support/random/characters.ts';

const atMs = Date.parse('2026-03-01T08:30:05Z');
const stated = { sequencer: '0069A3F9CD1F7CED91', etag: 'e', versionId: 'v' };

test.each([
  [
    nativeBody({ key: 'a+b', versionId: 'v', eTag: '"e"', size: 0 }),
    'a b',
    'ObjectCreated:Put',
    { ...stated, sizeBytes: 0, eventTimeMs: atMs + 123 },
  ],
  [eventBridgeBody({ key: 'a+b%20c', 'version-id': 'v', etag: '"e"' }), 'a+b%20c', 'Object Created', { ...stated, sizeBytes: 1 }],
  [trailBody({ key: 'a+b%20c' }, { responseElements: { 'x-amz-version-id': 'v' } }), 'a+b%20c', 'PutObject', { versionId: 'v' }],
  [syntheticBody({ key: 'a+b' }), 'a+b', 'PutObject', {}],
])('a record tells all that it says, with its key as S3 spells it there (%#)', (body, key, eventName, facts) => {
  expect(recordOf(body)).toEqual({
    dialect: expect.any(String),
    bucket: 'media',
    key,
    eventName,
    change: { kind: 'created', copied: false },
    eventTimeMs: atMs,
    ...facts,
  });
});

describe('a native record', () => {
  test.each(['2.1', '2.17', '2'])('of version %s may state its result', (eventVersion) => {
    expect(recordOf(nativeBody({}, { eventVersion }))).toMatchObject({ key: 'a', sequencer: '0069A3F9CD1F7CED91' });
  });

  test.each([
    ['version', { eventVersion: '0.1' }],
    ['version', { eventVersion: '3.0' }],
    ['version', { eventVersion: '20.1' }],
    ['version', { eventVersion: '2.' }],
    ['version', { eventVersion: 2.1 }],
    ['version', { eventVersion: undefined }],
    ['source', { eventSource: undefined }],
    ['source', { eventSource: 's3.amazonaws.com' }],
    ['source', { eventSource: 7 }],
  ])('of an unknown %s (%j) only says that its key changed', (_, over) => {
    const record = recordOf(nativeBody({}, over));
    expect(record).toMatchObject({ bucket: 'media', key: 'a', change: { kind: 'created' } });
    expect(record).not.toHaveProperty('sequencer');
  });

  test('spells its key as S3 does only if it is S3’s, or that of a store that is known to do so', () => {
    const namedBy = (eventSource: unknown, isAws: boolean) =>
      resultsOf(nativeBody({ key: 'a+b' }, { eventSource }), isAws).map((result) => result.ok && result.record.key);
    expect([namedBy('aws:s3', true), namedBy('minio:s3', false), namedBy('rustfs:s3', false)]).toEqual([['a b'], ['a b'], ['a b']]);
    for (const source of ['ceph:s3', 'aws:s3', undefined]) expect(namedBy(source, false)).toEqual(['a b', 'a+b']);
    expect(namedBy('ceph:s3', true)).toEqual(['a b', 'a+b']);
  });

  test.each([
    ['size', '1'],
    ['size', -1],
    ['size', 2 ** 53],
    ['eTag', 7],
    ['versionId', '\ud800'],
    ['versionId', 'v'.repeat(1_025)],
    ['sequencer', 12],
  ])('whose %s is %j is read without it, and states nothing', (field, value) => {
    const record = recordOf(nativeBody({ [field]: value }));
    expect(record).toMatchObject({ bucket: 'media', key: 'a', change: { kind: 'created' } });
    expect(Object.values(record)).not.toContain(value);
    expect(record).not.toHaveProperty('sequencer');
  });

  test.each([undefined, null, '', 7, ['a']])('whose key is %j is record.invalid', (key) => {
    expect(faultOf(nativeBody({ key }))).toMatchObject({ code: 'record.invalid', bucket: 'media' });
  });

  test.each([
    ['longer than 1,024 bytes when encoded as UTF-8', '%C3%BC'.repeat(513)],
    ['ill-formed', 'a\udc00'],
  ])('whose key is %s is record.invalid', (_, key) => {
    const fault = faultOf(nativeBody({ key }));
    expect(fault).toMatchObject({ code: 'record.invalid', bucket: 'media' });
    expect(fault.reason.length).toBeLessThan(200);
  });

  test.each([
    ['2026-03-01T08:30:05.123456789Z', Date.UTC(2026, 2, 1, 8, 30, 5, 123)],
    ['2026-03-01T10:30:05+02:00', Date.UTC(2026, 2, 1, 8, 30, 5)],
    ['1970-01-01T00:00:00.000Z', 0],
    ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
  ])('of %s happened then', (eventTime, eventTimeMs) => {
    expect(recordOf(nativeBody({}, { eventTime })).eventTimeMs).toBe(eventTimeMs);
  });

  test.each([
    '1969-12-31T23:59:59Z',
    '9999-12-31T23:59:59-01:00',
    '+010000-01-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-03-01',
    '5',
    1_772_353_805,
  ])('of %j happened at no known time, and is no worse for it', (eventTime) => {
    expect(recordOf(nativeBody({}, { eventTime }))).not.toHaveProperty('eventTimeMs');
  });

  test('keeps at most 128 characters of its event name, and no half character', () => {
    const { eventName } = recordOf(nativeBody({}, { eventName: `${'x'.repeat(127)}😀` }));
    expect(eventName).toHaveLength(128);
    expect(eventName.isWellFormed()).toBe(true);
  });
});

describe('an EventBridge record', () => {
  test('leaves out what is empty or absent', () => {
    const body = eventBridgeBody({ 'version-id': '', etag: null, size: null, sequencer: undefined }, {}, { time: null });
    expect(Object.keys(recordOf(body)).toSorted()).toEqual(['bucket', 'change', 'dialect', 'eventName', 'key']);
  });

  test('of another source states nothing, and may spell its key in either way', () => {
    for (const source of ['aws.ec2', undefined, 7]) {
      const results = resultsOf(eventBridgeBody({ key: 'a+b' }, {}, { source }));
      expect(results).toMatchObject([{ record: { key: 'a b' } }, { record: { key: 'a+b' } }]);
      for (const result of results) expect(result).not.toHaveProperty('record.sequencer');
    }
  });
});

describe('an audit-trail record', () => {
  test('without a time of its own has its event’s', () => {
    expect(recordOf(trailBody({}, { eventTime: '' })).eventTimeMs).toBe(Date.parse('2026-03-01T08:30:07Z'));
  });

  test('of a call that names no bucket is ignored, not rejected', () => {
    expect(recordOf(trailBody({}, { eventName: 'ListBuckets', requestParameters: null }))).toMatchObject({
      bucket: '',
      change: { kind: 'ignored', reason: 'no-effect' },
    });
  });
});

const storage = (object: object = {}): object => ({ bucket: { name: 'media' }, object: { eTag: '', key: 'a', ...object } });

describe('a synthetic record', () => {
  test.each([
    ['awsRegion and s3', { awsRegion: 'r', s3: storage() }],
    ['cloudRegion and storage', { awsRegion: undefined, s3: undefined, cloudRegion: 'r', storage: storage() }],
    ['awsRegion and storage', { awsRegion: 'r', s3: undefined, storage: storage() }],
    ['cloudRegion and s3', { awsRegion: undefined, cloudRegion: 'r', s3: storage() }],
    ['the audit trail’s eventSource', { eventSource: 's3.amazonaws.com', s3: storage() }],
    ['empty eventSource and eventVersion', { eventSource: '', eventVersion: '', s3: storage() }],
  ])('is read when it says %s', (_, over) => {
    expect(recordOf(syntheticBody({}, over))).toEqual({
      dialect: 'synthetic',
      bucket: 'media',
      key: 'a',
      eventName: 'PutObject',
      change: { kind: 'created', copied: false },
      eventTimeMs: Date.parse('2026-03-01T08:30:05Z'),
    });
  });

  test.each(['aws:sqs', 's3express.amazonaws.com', 5, {}])(
    'of an unknown eventSource (%j) may spell its key in either way',
    (eventSource) => {
      const keys = resultsOf(syntheticBody({ key: 'a+b' }, { eventSource })).map((result) => result.ok && result.record.key);
      expect(keys).toEqual(['a b', 'a+b']);
    },
  );
});

describe('a form-encoded key', () => {
  test.each([
    ['a bare percent sign', '100%'],
    ['half an escape', 'a+b%2'],
    ['bytes that are no UTF-8', 'a+%FF'],
    ['an overlong form', '%C0%AF'],
    ['an encoded surrogate', '%ED%A0%80'],
  ])('with %s is taken as it stands, and not certain', (_, text) => {
    expect(decodeFormKey(text)).toBeUndefined();
    for (const spelling of ['form', 'either'] as const) expect(keysOf(text, spelling)).toEqual({ keys: [text], isCertain: false });
  });

  test('round-trips any key', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter }), (key) => {
        expect(decodeFormKey(formEncoded(key))).toBe(key);
      }),
    );
  });
});

test('a key that is spelled in an unknown way is that key in one of its two spellings', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, minLength: 1, maxLength: 100 }), (key) => {
      expect(keysOf(key, 'either').keys).toContain(key);
      expect(keysOf(formEncoded(key), 'either').keys).toContain(key);
      expect(keysOf(key, 'raw')).toEqual({ keys: [key], isCertain: true });
      expect(keysOf(formEncoded(key), 'form')).toEqual({ keys: [key], isCertain: true });
    }),
  );
});

test('what can be a key is decided by bytes, of which there is at least one', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 1_100, size: 'max' }), (text) => {
      expect(isValidKey(text)).toBe(text !== '' && Buffer.byteLength(text) <= 1_024);
    }),
    { examples: [['']] },
  );
});

const created = { kind: 'created', copied: false };
const noEffect = { kind: 'ignored', reason: 'no-effect' };
const unknown = { kind: 'unknown' };

// the names that AWS documents are in fixtures.test.ts, each in a body that has it
describe('the event name of a notification', () => {
  const table = [
    ['ObjectAnnotation:Put', noEffect],
    ['ObjectCreated:PutRetention', noEffect],
    ['ObjectCreated:PutLegalHold', noEffect],
    ['ObjectAccessed:Get', noEffect],
    ['BucketRemoved:*', noEffect],
    // whatever is not known is observed: other stores, other cases, later names
    ['ObjectCreated:Append', unknown],
    ['ObjectCreated:PutTagging', unknown],
    ['objectCreated:Put', unknown],
    ['Replication:Create', unknown],
    ['ObjectLifecycle:Expiration:Current', unknown],
    ['ObjectAclX:Put', unknown],
    ['ObjectRemoved:DeleteAllVersions', { kind: 'lost' }],
    ['ObjectRemoved', { kind: 'lost' }],
    ['LifecycleExpiration:Imagined', { kind: 'lifecycle-expired' }],
    ['ObjectRestore:Imagined', { kind: 'storage-changed' }],
    ['ObjectTagging:Imagined', { kind: 'tagged' }],
    ['ObjectAcl:Imagined', unknown],
    ['LifecycleDelMarkerExpiration:Delete', unknown],
    ['', unknown],
    ['constructor', unknown],
    ['__proto__:x', unknown],
  ] as const;

  test.each(table)('%s says what the table says', (eventName, change) => {
    expect(nativeChange(eventName)).toEqual(change);
    expect(nativeChange(`s3:${eventName}`)).toEqual(change);
  });
});

test.each([
  ['Object Created', 's3:ObjectCreated:CompleteMultipartUpload', undefined, { kind: 'multipart-completed' }],
  // not known to state the result, so observed
  ['Object Created', 'SomethingNew', undefined, { kind: 'multipart-completed' }],
  ['Object Created', undefined, undefined, { kind: 'multipart-completed' }],
  ['Object Created', { toString: 1, valueOf: 1 }, undefined, { kind: 'multipart-completed' }],
  // it may be an expiration, whose sequencer is that of midnight
  ['Object Deleted', undefined, undefined, { kind: 'lifecycle-expired' }],
  ['Object Deleted', 'Lifecycle Expiration', 'Delete Marker Created', { kind: 'lifecycle-expired' }],
  ['Object Restore Completed', undefined, undefined, { kind: 'storage-changed' }],
  ['Object Tags Deleted', undefined, undefined, { kind: 'tagged' }],
  ['Async Copy Completion', undefined, undefined, unknown],
  ['Object Imagined', undefined, undefined, unknown],
  ['toString', undefined, undefined, unknown],
])('an EventBridge event of S3: %s (reason %j, %j) says what the table says', (detailType, reason, deletionType, change) => {
  expect(eventBridgeChange(detailType, { reason, deletionType })).toEqual(change);
});

describe('an API call', () => {
  const call = { errorCode: undefined, key: 'a', deleteMarker: undefined };

  test.each([
    ['PostObject', created],
    ['PutObjectTagging', { kind: 'tagged' }],
    ['DeleteObjectTagging', { kind: 'tagged' }],
    ['HeadObject', noEffect],
    ['ListObjectsV2', noEffect],
    ['SelectObjectContent', noEffect],
    ['CreateMultipartUpload', noEffect],
    ['UploadPart', noEffect],
    ['UploadPartCopy', noEffect],
    ['AbortMultipartUpload', noEffect],
    ['PutObjectAcl', noEffect],
    ['PutObjectRetention', noEffect],
    ['PutObjectLegalHold', noEffect],
    ['RestoreObject', unknown],
    ['', unknown],
    ['Getaway', unknown],
    ['constructor', unknown],
  ])('%s says what the table says', (eventName, change) => {
    expect(callChange({ ...call, eventName })).toEqual(change);
  });

  test('that deletes and answers with a delete marker made the marker current', () => {
    const deleted = { ...call, eventName: 'DeleteObject' };
    for (const deleteMarker of [true, 'true']) expect(callChange({ ...deleted, deleteMarker })).toEqual({ kind: 'marker-created' });
    for (const deleteMarker of [false, 'false', '', null, undefined, 'yes', 1])
      expect(callChange({ ...deleted, deleteMarker })).toEqual({ kind: 'deleted' });
    expect(callChange({ ...call, eventName: 'DeleteObjects', deleteMarker: true })).toEqual({ kind: 'bulk-deleted' });
  });

  test('that failed changed nothing, and an error that cannot be read is none', () => {
    expect(callChange({ ...call, eventName: 'PutObject', errorCode: 'AccessDenied' })).toEqual({ kind: 'ignored', reason: 'failed-call' });
    for (const errorCode of ['', null, 7, {}]) expect(callChange({ ...call, eventName: 'PutObject', errorCode })).toEqual(created);
  });

  test('that names no key and is not known concerns the bucket', () => {
    expect(callChange({ ...call, eventName: 'PutBucketPolicy', key: undefined })).toEqual(noEffect);
    expect(callChange({ ...call, eventName: '', key: undefined })).toEqual(unknown);
  });
});
