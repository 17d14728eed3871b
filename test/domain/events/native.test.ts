import { describe, expect, test } from 'vitest';
import { faultOf, nativeBody, recordOf } from '../../support/event-fixtures.ts';

describe('a native record', () => {
  test('is known by a source that ends in :s3, or by having a version', () => {
    for (const over of [
      { eventSource: 'minio:s3' },
      { eventSource: 'aws:s3', eventVersion: undefined },
      { eventSource: undefined },
      { eventSource: 's3.amazonaws.com' },
    ]) {
      expect(recordOf(nativeBody({}, over)).dialect).toBe('native');
    }
  });

  test.each(['2.1', '2.17', '2'])('of version %s is read', (eventVersion) => {
    expect(recordOf(nativeBody({}, { eventVersion })).key).toBe('a');
  });

  test.each(['1.0', '20.1', '2.', 2.1, {}])('of version %j is record.version-unknown', (eventVersion) => {
    expect(faultOf(nativeBody({}, { eventVersion }))).toMatchObject({ code: 'record.version-unknown', bucket: 'media' });
  });

  test('tells all that it says', () => {
    expect(recordOf(nativeBody({ key: 'a+b', versionId: 'v', eTag: '"e"', size: 0 }))).toEqual({
      dialect: 'native',
      bucket: 'media',
      key: 'a b',
      keyUncertain: false,
      eventName: 'ObjectCreated:Put',
      change: { kind: 'created', copied: false },
      eventTimeMs: Date.parse('2026-03-01T08:30:05.123Z'),
      sequencer: '0069A3F9CD1F7CED91',
      etag: 'e',
      sizeBytes: 0,
      versionId: 'v',
    });
  });

  test.each([undefined, null, ''])('leaves out what is %j', (nothing) => {
    const body = nativeBody(
      { versionId: nothing, eTag: nothing, sequencer: nothing, size: nothing === '' ? undefined : nothing },
      { eventTime: nothing },
    );
    expect(Object.keys(recordOf(body)).toSorted()).toEqual(['bucket', 'change', 'dialect', 'eventName', 'key', 'keyUncertain']);
  });

  test.each([
    ['size', '1'],
    ['size', -1],
    ['size', 2 ** 53],
    ['versionId', '\ud800'],
    ['sequencer', 12],
    ['key', ['a']],
  ])('whose %s is %j is record.invalid and says where', (field, value) => {
    const fault = faultOf(nativeBody({ [field]: value }));
    expect(fault).toMatchObject({ code: 'record.invalid', bucket: 'media' });
    expect(fault.reason).toContain(`s3.object.${field}`);
  });

  test('whose version id is longer than S3’s are is record.invalid', () => {
    expect(recordOf(nativeBody({ versionId: 'v'.repeat(1_024) })).versionId).toHaveLength(1_024);
    expect(faultOf(nativeBody({ versionId: 'v'.repeat(1_025) })).code).toBe('record.invalid');
  });

  test.each([
    ['an empty event name', { eventName: '' }],
    ['an event name that is no text', { eventName: 7 }],
    ['an s3 that is null', { s3: null }],
    ['an s3 without object', { s3: { bucket: { name: 'media' } } }],
  ])('with %s is record.invalid', (_, over) => {
    expect(faultOf(nativeBody({}, over)).code).toBe('record.invalid');
  });

  test.each([undefined, null, ''])('whose key is %j is record.key-missing', (key) => {
    expect(faultOf(nativeBody({ key }))).toMatchObject({ code: 'record.key-missing', bucket: 'media' });
  });

  test.each([
    ['longer than 1,024 bytes when encoded as UTF-8', '%C3%BC'.repeat(513)],
    ['ill-formed', 'a\udc00'],
  ])('whose key is %s is record.key-invalid', (_, key) => {
    const fault = faultOf(nativeBody({ key }));
    expect(fault).toMatchObject({ code: 'record.key-invalid', bucket: 'media' });
    expect(fault.reason.length).toBeLessThan(200);
  });

  test('may have a key of 1,024 bytes that is longer while encoded', () => {
    expect(recordOf(nativeBody({ key: '%C3%BC'.repeat(512) })).key).toBe('ü'.repeat(512));
  });

  test.each([undefined, null, '../etc', '_state', 7])('whose bucket is %j is record.bucket-invalid', (name) => {
    const { bucket, ...fault } = faultOf(nativeBody({}, { s3: { bucket: { name }, object: { key: 'a' } } }));
    expect(fault.code).toBe('record.bucket-invalid');
    expect(bucket).toBeUndefined();
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

  test('of an event without effect is ignored, whatever the rest of it looks like', () => {
    expect(recordOf(nativeBody({ size: 'x' }, { eventName: 'ObjectAcl:Put' }))).toMatchObject({
      bucket: 'media',
      key: '',
      change: { kind: 'ignored', reason: 'no-effect' },
    });
    expect(recordOf(nativeBody({}, { eventName: 'ObjectImagined:Put', s3: null }))).toMatchObject({
      bucket: '',
      key: '',
      change: { kind: 'ignored', reason: 'unknown-event' },
    });
  });

  test('keeps at most 128 characters of its event name, and no half character', () => {
    const { eventName } = recordOf(nativeBody({}, { eventName: `${'x'.repeat(127)}😀` }));
    expect(eventName).toHaveLength(128);
    expect(eventName.isWellFormed()).toBe(true);
  });
});
