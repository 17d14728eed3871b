import { describe, expect, test } from 'vitest';
import { faultOf, recordOf, resultsOf, syntheticBody } from '../support/event-fixtures.ts';

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

  test('decodes nothing in its key', () => {
    expect(recordOf(syntheticBody({ key: 'a+b%20c' }))).toMatchObject({ key: 'a+b%20c' });
  });

  test.each(['', undefined, null, 'told-anyway'])('of DeleteObjects with key %j is a bulk delete without a key', (key) => {
    expect(recordOf(syntheticBody({ key }, { eventName: 'DeleteObjects' }))).toMatchObject({
      bucket: 'media',
      key: '',
      change: { kind: 'bulk-deleted' },
    });
  });

  test('with an errorCode is ignored as a failed call', () => {
    const failed = syntheticBody({ key: '' }, { eventName: 'DeleteObject', errorCode: 'AccessDenied' });
    expect(recordOf(failed).change).toEqual({ kind: 'ignored', reason: 'failed-call' });
  });

  test.each([undefined, null, '', 403])('with errorCode %j succeeded', (errorCode) => {
    expect(recordOf(syntheticBody({}, { errorCode })).change.kind).toBe('created');
  });

  test.each([
    ['no key', { key: undefined }, {}, 'record.key-missing'],
    ['a key that is no text', { key: 12 }, {}, 'record.key-missing'],
    ['neither a key nor an event name', { key: '' }, { eventName: '' }, 'record.key-missing'],
  ])('with %s is rejected with its bucket', (_, object, record, code) => {
    expect(faultOf(syntheticBody(object, record))).toMatchObject({ code, bucket: 'media' });
  });

  test.each([
    ['an event name that the transformer did not find', {}, { eventName: '' }, 'unknown'],
    ['an impossible isDeleteMarker', { isDeleteMarker: 'yes' }, { eventName: 'DeleteObject' }, 'deleted'],
    ['a versionId that is no text', { versionId: 3 }, {}, 'created'],
  ])('with %s is read without it', (_, object, record, kind) => {
    const { versionId, change } = recordOf(syntheticBody(object, record));
    expect([versionId, change.kind]).toEqual([undefined, kind]);
  });

  test('without a bucket is record.bucket-invalid, also a bulk delete', () => {
    for (const eventName of ['PutObject', 'DeleteObjects']) {
      expect(faultOf(syntheticBody({}, { eventName, s3: { bucket: { name: '' }, object: { key: 'a' } } })).code).toBe(
        'record.bucket-invalid',
      );
    }
  });
});
