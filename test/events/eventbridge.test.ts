import { describe, expect, test } from 'vitest';
import { eventBridgeBody, faultOf, recordOf, resultsOf } from '../support/event-fixtures.ts';

describe('an EventBridge record', () => {
  test('tells all that it says, its key as it stands', () => {
    expect(recordOf(eventBridgeBody({ key: 'a+b%20c', 'version-id': 'v', etag: '"e"' }))).toEqual({
      dialect: 'eventbridge',
      bucket: 'media',
      key: 'a+b%20c',
      eventName: 'Object Created',
      change: { kind: 'created', copied: false },
      eventTimeMs: Date.parse('2026-03-01T08:30:05Z'),
      sequencer: '0069A3F9CD1F7CED91',
      etag: 'e',
      sizeBytes: 1,
      versionId: 'v',
    });
  });

  test('leaves out what is empty or absent', () => {
    const body = eventBridgeBody({ 'version-id': '', etag: null, size: null, sequencer: undefined }, {}, { time: null });
    expect(Object.keys(recordOf(body)).toSorted()).toEqual(['bucket', 'change', 'dialect', 'eventName', 'key']);
  });

  test.each([
    ['key', 1, 'record.key-missing'],
    ['key', '', 'record.key-missing'],
    ['key', 'x'.repeat(1_025), 'record.key-invalid'],
  ])('whose %s is %j is %s, with its bucket', (field, value, code) => {
    expect(faultOf(eventBridgeBody({ [field]: value }))).toMatchObject({ code, bucket: 'media' });
  });

  test.each([
    ['size', '1'],
    ['etag', 7],
    ['version-id', []],
    ['sequencer', 1],
  ])('whose %s is %j states nothing', (field, value) => {
    const record = recordOf(eventBridgeBody({ [field]: value }));
    expect(record).toMatchObject({ bucket: 'media', key: 'a' });
    expect(record).not.toHaveProperty('sequencer');
  });

  test('of another source states nothing, and may spell its key in either way', () => {
    for (const source of ['aws.ec2', undefined, 7]) {
      const results = resultsOf(eventBridgeBody({ key: 'a+b' }, {}, { source }));
      expect(results).toMatchObject([{ record: { key: 'a b' } }, { record: { key: 'a+b' } }]);
      for (const result of results) expect(result).not.toHaveProperty('record.sequencer');
    }
  });

  test('may come without its event, and then states nothing', () => {
    const record = recordOf(eventBridgeBody().detail);
    expect(record).toMatchObject({ dialect: 'eventbridge', key: 'a', eventName: '', change: { kind: 'unknown' } });
    expect(record).not.toHaveProperty('sequencer');
  });

  test('of a bucket that is none is record.bucket-invalid', () => {
    expect(faultOf(eventBridgeBody({}, { bucket: { name: '/' } })).code).toBe('record.bucket-invalid');
  });

  test('of an event that is not known says that the key changed', () => {
    expect(recordOf(eventBridgeBody({}, {}, { 'detail-type': 'Object Imagined' }))).toMatchObject({
      key: 'a',
      change: { kind: 'unknown' },
    });
  });
});
