import { describe, expect, test } from 'vitest';
import { faultOf, recordOf, resultsOf, syntheticBody, trailBody } from '../support/event-fixtures.ts';

/** What both forms of an audit trail's record say in the same way, each under its own name. */
describe.each([
  [
    'an audit-trail record',
    (said: Said) =>
      trailBody(
        {},
        {
          eventName: said.eventName,
          requestID: said.requestId,
          responseElements: { 'x-amz-delete-marker': said.marker, 'x-amz-version-id': said.version },
        },
      ),
  ],
  [
    'a synthetic record',
    (said: Said) =>
      syntheticBody({ isDeleteMarker: said.marker, versionId: said.version }, { eventName: said.eventName, requestID: said.requestId }),
  ],
])('%s', (_, bodyOf) => {
  test.each([
    [undefined, 'deleted'],
    [null, 'deleted'],
    ['', 'deleted'],
    ['false', 'deleted'],
    [false, 'deleted'],
    ['true', 'marker-created'],
    [true, 'marker-created'],
  ])('of DeleteObject with delete marker %j is %s', (marker, kind) => {
    expect(recordOf(bodyOf({ eventName: 'DeleteObject', marker })).change).toEqual({ kind });
  });

  test.each([undefined, null, '', 'v'])('has the version %j, if that is one', (version) => {
    expect(recordOf(bodyOf({ eventName: 'PutObject', version })).versionId).toBe(version === 'v' ? 'v' : undefined);
  });
});

interface Said {
  readonly eventName: string;
  readonly marker?: unknown;
  readonly version?: unknown;
  readonly requestId?: unknown;
}

describe('an audit-trail record', () => {
  test('tells all that it says, its key as it stands', () => {
    expect(recordOf(trailBody({ key: 'a+b%20c' }, { responseElements: { 'x-amz-version-id': 'v' } }))).toEqual({
      dialect: 'trail',
      bucket: 'media',
      key: 'a+b%20c',
      eventName: 'PutObject',
      change: { kind: 'created', copied: false },
      eventTimeMs: Date.parse('2026-03-01T08:30:05Z'),
      versionId: 'v',
    });
  });

  test('is read from an “AWS Service Event” too', () => {
    expect(recordOf(trailBody({}, {}, { 'detail-type': 'AWS Service Event via CloudTrail' })).dialect).toBe('trail');
  });

  test('without a time of its own has its event’s', () => {
    expect(recordOf(trailBody({}, { eventTime: '' })).eventTimeMs).toBe(Date.parse('2026-03-01T08:30:07Z'));
  });

  test('of a failed call is ignored', () => {
    expect(recordOf(trailBody({}, { eventName: 'DeleteObject', errorCode: 'AccessDenied' })).change).toEqual({
      kind: 'ignored',
      reason: 'failed-call',
    });
  });

  test('of DeleteObjects names no key: a bulk delete', () => {
    expect(recordOf(trailBody({ key: undefined, delete: '' }, { eventName: 'DeleteObjects' }))).toMatchObject({
      bucket: 'media',
      key: '',
      change: { kind: 'bulk-deleted' },
    });
  });

  test('of a change of the bucket itself, which has no key, is ignored', () => {
    expect(recordOf(trailBody({ key: undefined }, { eventName: 'PutBucketPolicy' })).change).toEqual({
      kind: 'ignored',
      reason: 'no-effect',
    });
  });

  test('of a call that names no bucket is ignored, not rejected', () => {
    expect(recordOf(trailBody({}, { eventName: 'ListBuckets', requestParameters: null }))).toMatchObject({
      bucket: '',
      change: { kind: 'ignored', reason: 'no-effect' },
    });
  });

  test.each([
    ['renameSource', 'old%20name%2B+', 'old name++'],
    ['x-amz-rename-source', '/media/old', 'old'],
    ['x-amz-rename-source', 'media/old', 'old'],
    ['renameSource', '100%', '100%'],
  ])('of RenameObject is two: the new key, and the old one from %s %s', (field, source, key) => {
    const results = resultsOf(trailBody({ key: 'new', [field]: source }, { eventName: 'RenameObject' }));
    expect(results).toMatchObject([
      { ok: true, record: { key: 'new', change: { kind: 'created', copied: false } } },
      { ok: true, record: { key, change: { kind: 'deleted' } } },
    ]);
  });

  test('of RenameObject that does not tell the old key is one', () => {
    expect(recordOf(trailBody({ key: 'new' }, { eventName: 'RenameObject' })).key).toBe('new');
  });

  test.each([
    ['no key', {}, { key: '' }, 'record.key-missing'],
    ['a key that is no text', {}, { key: 5 }, 'record.key-missing'],
    ['neither a key nor an event name', { eventName: null }, { key: null }, 'record.key-missing'],
  ])('with %s is rejected with its bucket', (_, detail, parameters, code) => {
    expect(faultOf(trailBody(parameters, detail))).toMatchObject({ code, bucket: 'media' });
  });

  test.each([
    ['no event name', { eventName: null }, 'unknown'],
    ['a name that is not known', { eventName: 'ObjectImagined' }, 'unknown'],
    ['an impossible delete marker', { eventName: 'DeleteObject', responseElements: { 'x-amz-delete-marker': 'maybe' } }, 'deleted'],
    ['a response that is none', { responseElements: 7 }, 'created'],
  ])('with %s is read without it', (_, detail, kind) => {
    expect(recordOf(trailBody({}, detail))).toMatchObject({ key: 'a', change: { kind } });
  });

  test('may come without its event', () => {
    expect(recordOf(trailBody().detail)).toMatchObject({ dialect: 'trail', bucket: 'media', key: 'a', change: { kind: 'created' } });
  });

  test('of a bucket that is none is record.bucket-invalid', () => {
    expect(faultOf(trailBody({ bucketName: '' })).code).toBe('record.bucket-invalid');
  });
});
