import { describe, expect, test } from 'vitest';
import { faultOf, nativeBody, recordOf, resultsOf } from '../support/event-fixtures.ts';

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
    const keysOf = (eventSource: unknown, isAws: boolean) =>
      resultsOf(nativeBody({ key: 'a+b' }, { eventSource }), isAws).map((result) => result.ok && result.record.key);
    expect([keysOf('aws:s3', true), keysOf('minio:s3', false), keysOf('rustfs:s3', false)]).toEqual([['a b'], ['a b'], ['a b']]);
    for (const source of ['ceph:s3', 'aws:s3', undefined]) expect(keysOf(source, false)).toEqual(['a b', 'a+b']);
    expect(keysOf('ceph:s3', true)).toEqual(['a b', 'a+b']);
  });

  test('tells all that it says', () => {
    expect(recordOf(nativeBody({ key: 'a+b', versionId: 'v', eTag: '"e"', size: 0 }))).toEqual({
      dialect: 'native',
      bucket: 'media',
      key: 'a b',
      eventName: 'ObjectCreated:Put',
      change: { kind: 'created', copied: false },
      eventTimeMs: Date.parse('2026-03-01T08:30:05.123Z'),
      sequencer: '0069A3F9CD1F7CED91',
      etag: 'e',
      sizeBytes: 0,
      versionId: 'v',
    });
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
